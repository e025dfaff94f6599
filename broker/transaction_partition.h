// The transactional ids that one partition of __transaction_state keeps. It also sees to it that
// each transaction that is to end gets its markers. On the partition's shard only.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "broker/coordinator_partition.h"
#include "broker/transactions/transaction_shard.h"
#include "broker/wake_signal.h"
#include "protocol/base/clock.h"
#include "protocol/error_code.h"
#include "protocol/internal_topics.h"

namespace broker {

class TransactionCoordinator;

// A copy of another cluster's states would not be ours.
inline constexpr CoordinatorKind transactions_kind = {
    "transactions", protocol::transaction_state_topic,
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "transactional ids were not used for long", false};

class TransactionPartition final : public CoordinatorPartition<transactions::TransactionShard> {
 public:
  TransactionPartition(TransactionCoordinator& owner, Shard& home,
                       std::shared_ptr<Partition> partition, transactions::Settings settings);

  // `f` only looks. Of what it sees the last may not be on disk yet.
  template <class F>
  auto look(F f) const
      -> CoordinatorOutcome<decltype(f(std::declval<const transactions::TransactionShard&>(),
                                       transactions::Now()))> {
    CoordinatorOutcome<decltype(f(*state_, transactions::Now()))> outcome;
    outcome.error = status();
    if (outcome.error == protocol::ErrorCode::none) outcome.value = f(*state_, now());
    return outcome;
  }
  // Waits until the transaction has all its markers, until the deadline at the latest.
  boost::asio::awaitable<void> settled(std::string transactional_id,
                                       base::Clock::time_point deadline);

 private:
  std::unique_ptr<transactions::TransactionShard> fresh_state() override;
  bool apply(transactions::TransactionShard& state, base::Bytes key,
             std::optional<base::Bytes> value, const groups::Place& place) override;
  boost::asio::awaitable<void> loaded(std::int64_t took_ms) override;
  std::optional<transactions::Decision> due() override;
  boost::asio::awaitable<protocol::ErrorCode> carry_out(transactions::Decision decision) override;
  void end_waits(protocol::ErrorCode error) override;
  // Until the transaction is complete: markers, again and again where they are refused.
  boost::asio::awaitable<void> finish(std::string transactional_id);
  // One attempt; whether there is nothing left to do.
  boost::asio::awaitable<bool> try_to_finish(std::string transactional_id);
  // Whether all partitions have theirs now.
  boost::asio::awaitable<bool> write_markers(std::string transactional_id,
                                             transactions::Ending ending);

  TransactionCoordinator& owner_;
  transactions::Settings settings_;
  Signal changed_;  // the state is another
};

}  // namespace broker
