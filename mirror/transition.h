// One step of the machine, in the making. Private to machine.cc (commands, failures, entering
// states) and outcomes.cc (what the driver reports).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "mirror/machine.h"

namespace mirror {

class Transition {
 public:
  Transition(State state, const Settings& settings, std::int32_t jitter_permille)
      : s_(std::move(state)), settings_(settings), jitter_permille_(jitter_permille) {}

  void on(const Restore& e);
  void on(const LeadershipLost& e);
  void on(const Start& e);
  void on(const Pause& e);
  void on(const Resume& e);
  void on(const Stop& e);
  void on(const Recover& e);
  void on(const SourceReturned& e);
  void on(const SourceEpochSeen& e);
  void on(const MarkFailed& e);
  void on(const DeleteMirror& e);

  void on(const LogIs& e);
  void on(const Aligned& e);
  void on(const Fetched& e);
  void on(const NothingNew& e);
  void on(const FetchRefused& e);
  void on(const Appended& e);
  void on(const EpochBumped& e);
  void on(const MarkersWritten& e);
  void on(const ResetWritten& e);
  void on(const Done& e);
  void on(const RetryDue& e);
  void on(const Failed& e);
  void on(const Timeout& e);

  Step finish() { return {std::move(s_), std::move(actions_)}; }

 private:
  // Each ends the list of actions: exactly one of them is called in a step that has any.
  void await(Pending pending, Action action);
  void settle();
  void inspect();
  void align();
  void fetch();
  void bump(LeaderEpoch at_least);
  void open();
  void forget();
  void schedule_retry(std::int64_t cap_ms);

  void enter(MirrorState to);
  void refuse_writes();
  void persist();
  void pause();
  void start_stopping();
  void fail(Failure failure, std::string text);
  void try_again();
  void clear_failure();
  bool will_retry() const;

  void take(const LogIs& e);
  void align_log(const Aligned& e);
  void compare_logs(const Aligned& e);
  bool looks_recreated(const Aligned& e) const;
  void suspect_recreated(const Aligned& e);
  void follow_unclean_election(Offset offset, std::optional<LeaderEpoch> epoch);
  void skip_trimmed();
  void capture_position();
  void bump_for_writing();
  void write_markers();
  void look_again(Failure failure, std::string text);
  void proceed();
  void go_on();
  void fetched_something();
  bool bump_needed() const;
  LeaderEpoch bump_target() const;

  State s_;
  const Settings& settings_;
  std::int32_t jitter_permille_;
  std::vector<Action> actions_;
};

}  // namespace mirror
