// What groups and transactions have in common: the driver of one partition of an internal topic. It
// loads a state from the log, carries out what the pure core decides, wakes it when a timer is due,
// and loads anew when the state cannot be trusted. On the partition's shard only.
//
// Nothing else runs between a decision and the moment when its records are appended and applied, so
// the next decision sees them. Replies wait until the disk has everything that was decided on
// before them, in one sync for all who come in the meantime.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "broker/coordinator_log.h"
#include "broker/groups/types.h"
#include "broker/wake_signal.h"
#include "protocol/error_code.h"

namespace broker {

class Shard;

// An answer, or why there is none.
template <class Answer>
struct CoordinatorOutcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  Answer value{};
};

struct CoordinatorKind {
  const char* keeps;  // the name of its log, too
  std::string_view topic;
  const char* clean_interval;  // the setting of how often clean() is due
  const char* cleaned;         // what has become of what clean() removes
  bool serves_mirrored;        // also what a mirror copies from another cluster
};

// `State` is the pure core.
template <class State>
class CoordinatorPartition : public std::enable_shared_from_this<CoordinatorPartition<State>> {
 public:
  using Decision = decltype(std::declval<State&>().loaded(groups::Now()));

  // Loads, then sees to timers until the end.
  boost::asio::awaitable<void> run();
  // Who waits is told `error`; nothing is served any more.
  void end(protocol::ErrorCode error);
  bool ended() const { return ended_ || log_.closed(); }

  // none when it serves; coordinator_load_in_progress, not_coordinator.
  protocol::ErrorCode status() const;

  // `f` takes the state and the time and gives a Decided<Answer>. Answers with the error when it
  // does not serve.
  template <class F>
  auto decide(F f) -> boost::asio::awaitable<
      CoordinatorOutcome<decltype(f(std::declval<State&>(), groups::Now()).answer)>> {
    const auto self = this->shared_from_this();
    CoordinatorOutcome<decltype(f(std::declval<State&>(), groups::Now()).answer)> outcome;
    outcome.error = status();
    if (outcome.error != protocol::ErrorCode::none) co_return outcome;
    auto decided = f(current_state(), now());
    outcome.value = std::move(decided.answer);
    Decision decision = std::move(decided);
    outcome.error = co_await carry_out(std::move(decision));
    co_return outcome;
  }
  // What the clock brings: what is too old.
  boost::asio::awaitable<void> clean();

 protected:
  CoordinatorPartition(const CoordinatorKind& kind, Shard& home,
                       std::shared_ptr<Partition> partition)
      : kind_(kind), home_(home), log_(home, std::move(partition)) {}
  virtual ~CoordinatorPartition() = default;

  // Without a log there is nothing to wait for. Last in the constructor.
  void begin();
  static groups::Now now();
  base::Result<void> write(const Decision& decision,
                           const std::optional<groups::Producer>& transaction = {});
  // After the attempt to write something: waits for the disk; none, or what a client hears.
  boost::asio::awaitable<protocol::ErrorCode> settle(base::Result<void> written);

  virtual std::unique_ptr<State> fresh_state() = 0;
  // Brought up to date with what else there is to know.
  virtual State& current_state() { return *state_; }
  virtual bool apply(State& state, base::Bytes key, std::optional<base::Bytes> value,
                     const groups::Place& place) = 0;
  virtual void apply_marker(State&, base::ProducerId, bool /*committed*/) {}
  virtual boost::asio::awaitable<void> loaded(std::int64_t took_ms) = 0;
  virtual std::optional<Decision> due() { return current_state().expire(now()); }
  virtual boost::asio::awaitable<protocol::ErrorCode> carry_out(Decision decision) = 0;
  // Those that the state knows to wait are told `error`.
  virtual void end_waits(protocol::ErrorCode error) = 0;
  // All that wait are told; the state may not know of them any more.
  virtual void end_lost_waits() {}

  const CoordinatorKind& kind_;
  Shard& home_;
  CoordinatorLog log_;
  std::unique_ptr<State> state_;
  // Counts states: what was decided on one that was given up must not touch the next.
  std::uint64_t incarnation_ = 0;
  std::optional<std::int64_t> armed_ms_;  // what run() waits for
  Signal wake_;                           // run() looks again

 private:
  // One turn of run(): loads, or waits and carries out what is due.
  boost::asio::awaitable<void> step();
  boost::asio::awaitable<void> load();
  // The state cannot be trusted any more: it is loaded anew.
  void give_up(std::string_view why);

  bool loading_ = true;
  bool ended_ = false;
};

}  // namespace broker
