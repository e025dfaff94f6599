// One random world around the mirror machine: a source, our broker with its log and its durable
// record, a driver that performs the machine's actions and sometimes fails, crashes, commands at
// any time. The same seed is the same world. A broken invariant throws Violation.
#pragma once
#include <deque>
#include <optional>
#include <string>

#include "mirror/machine.h"
#include "protocol/base/random.h"
#include "tests/sim/model_source.h"

namespace sim {

struct Violation {
  std::string what;
};

class World {
 public:
  World(std::uint64_t seed, bool verbose);
  void run();

 private:
  // The driver: one action at a time, each atomic here.
  void perform();
  bool fails_before(const mirror::Action& action);
  void perform_last(const mirror::Action& action);
  void do_action(const mirror::RefuseWrites&);
  void do_action(const mirror::AllowWrites&);
  void do_action(const mirror::Persist& a);
  void do_action(const mirror::Forget&);
  void do_action(const mirror::Inspect&);
  void do_action(const mirror::Align& a);
  void do_action(const mirror::Truncate& a);
  void do_action(const mirror::RestartAt& a);
  void do_action(const mirror::Fetch& a);
  void do_action(const mirror::Append&);
  void do_action(const mirror::AdvanceLogStart& a);
  void do_action(const mirror::BumpEpoch& a);
  void do_action(const mirror::SettleGroups&);
  void do_action(const mirror::WriteAbortMarkers&);
  void do_action(const mirror::WriteProducerIdReset&);
  void do_action(const mirror::ScheduleRetry& a);

  // The storm and what comes after it.
  void storm();
  void command();
  void crash();
  void client_writes();
  void finish_by_mirroring();
  void finish_by_stopping();
  bool advance();
  void run_until(mirror::MirrorState state, int limit, const char* what);
  void start_again();

  void feed(const mirror::Event& event);
  void feed_one();
  void check_step(const mirror::State& before, const mirror::Event& event,
                  const mirror::Step& step);
  void report(mirror::Event event);
  mirror::LogIs log_is() const;
  void write_local(Kind kind, std::int64_t producer);
  void check_equal();
  void check(bool held, const char* what) const;
  bool rare(unsigned percent) { return !calm_ && random_.chance(percent); }

  base::Random random_;
  bool verbose_;
  mirror::Settings settings_;
  SourceModel source_;

  // Survives a crash.
  Log log_;
  std::size_t synced_ = 0;  // batches of the log that a crash does not take
  std::optional<mirror::Record> record_;
  LeaderEpoch leader_epoch_ = 0;
  bool groups_settled_ = true;  // since the last batch that was copied

  // Does not.
  bool writable_ = false;
  mirror::State state_;
  std::deque<mirror::Action> todo_;  // of the current ticket
  std::deque<mirror::Event> inbox_;
  std::vector<Batch> held_;  // of the last Fetched
  std::optional<mirror::Ticket> retry_due_;

  bool calm_ = false;         // no failures any more
  bool local_fails_ = false;  // after the storm: only our own disk still fails
  bool adopt_ = false;
  std::uint32_t known_life_ = 0;  // stands for the topic id that the copy has
  bool marked_failed_ = false, looped_ = false, overlapped_ = false;
  int rounds_ = 0;  // questions to the source since something came of them
  int bounded_in_a_row_ = 0;
  bool effect_done_ = false;  // the action failed after its effect
  std::uint64_t next_id_ = 1'000'000;
};

}  // namespace sim
