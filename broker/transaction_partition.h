// The transactional ids that one partition of __transaction_state keeps: loads them, carries out
// what the pure core decides, wakes it when a transaction has run too long, and sees to it that
// each transaction that is to end gets its markers. On the partition's shard only.
//
// As in GroupPartition nothing else runs between a decision and the moment when its records are
// appended and applied, and answers wait for the disk.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "broker/coordinator_log.h"
#include "broker/transactions/transaction_shard.h"
#include "broker/wake_signal.h"
#include "protocol/base/clock.h"
#include "protocol/error_code.h"

namespace broker {

class Shard;
class TransactionCoordinator;

// An answer, or why there is none.
template <class Answer>
struct TransactionOutcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  Answer value{};
};

class TransactionPartition : public std::enable_shared_from_this<TransactionPartition> {
 public:
  TransactionPartition(TransactionCoordinator& owner, Shard& home,
                       std::shared_ptr<Partition> partition, transactions::Settings settings);

  // Loads, then sees to what has run too long, until the end.
  boost::asio::awaitable<void> run();
  // Nothing is served any more.
  void end();
  bool ended() const { return ended_ || log_.closed(); }

  // none when it serves; coordinator_load_in_progress, not_coordinator.
  protocol::ErrorCode status() const;

  // `f` takes the state and the time and gives a transactions::Decided<Answer>.
  template <class F>
  auto decide(F f) -> boost::asio::awaitable<TransactionOutcome<
      decltype(f(std::declval<transactions::TransactionShard&>(), transactions::Now()).answer)>> {
    const auto self = shared_from_this();
    TransactionOutcome<
        decltype(f(std::declval<transactions::TransactionShard&>(), transactions::Now()).answer)>
        outcome;
    outcome.error = status();
    if (outcome.error != protocol::ErrorCode::none) co_return outcome;
    auto decided = f(*state_, now());
    outcome.value = std::move(decided.answer);
    transactions::Decision decision = std::move(decided);
    outcome.error = co_await carry_out(std::move(decision));
    co_return outcome;
  }
  // `f` only looks. Of what it sees the last may not be on disk yet.
  template <class F>
  auto look(F f) const
      -> TransactionOutcome<decltype(f(std::declval<const transactions::TransactionShard&>(),
                                       transactions::Now()))> {
    TransactionOutcome<decltype(f(*state_, transactions::Now()))> outcome;
    outcome.error = status();
    if (outcome.error == protocol::ErrorCode::none) outcome.value = f(*state_, now());
    return outcome;
  }
  // Waits until the transaction has all its markers, until the deadline at the latest.
  boost::asio::awaitable<void> settled(std::string transactional_id,
                                       base::Clock::time_point deadline);
  // What the clock brings: ids that were not used for long.
  boost::asio::awaitable<void> clean();

 private:
  static transactions::Now now();
  // One turn of run(): loads, or waits and ends what is due.
  boost::asio::awaitable<void> step();
  boost::asio::awaitable<void> load();
  boost::asio::awaitable<protocol::ErrorCode> carry_out(transactions::Decision decision);
  base::Result<void> write(const transactions::Decision& decision);
  // Until the transaction is complete: markers, again and again where they are refused.
  boost::asio::awaitable<void> finish(std::string transactional_id);
  // One attempt; whether there is nothing left to do.
  boost::asio::awaitable<bool> try_to_finish(std::string transactional_id);
  // Whether all partitions have theirs now.
  boost::asio::awaitable<bool> write_markers(std::string transactional_id,
                                             transactions::Ending ending);
  // The state cannot be trusted any more: it is loaded anew.
  void give_up(std::string_view why);

  TransactionCoordinator& owner_;
  Shard& home_;
  CoordinatorLog log_;
  transactions::Settings settings_;
  std::unique_ptr<transactions::TransactionShard> state_;
  // Counts states: what was decided on one that was given up must not touch the next.
  std::uint64_t incarnation_ = 0;
  bool loading_ = true;
  bool ended_ = false;
  Signal wake_;     // run() looks again
  Signal changed_;  // the state is another
};

}  // namespace broker
