#include "broker/transactions/records.h"

#include <array>
#include <utility>

#include "protocol/record_frame.h"

namespace broker::transactions {
namespace {

constexpr std::array<std::string_view, 8> state_names = {
    "Empty",          "Ongoing",       "PrepareCommit", "PrepareAbort",
    "CompleteCommit", "CompleteAbort", "Dead",          "PrepareEpochFence"};

base::Buffer transaction_key(std::string_view transactional_id) {
  protocol::TransactionLogKey key;
  key.transactional_id = transactional_id;
  return protocol::frame_key(key);
}

}  // namespace

std::string_view state_name(State state) {
  return state_names.at(static_cast<std::size_t>(state));
}

std::optional<State> parse_state(std::string_view name) {
  for (std::size_t i = 0; i < state_names.size(); ++i)
    if (state_names[i] == name) return static_cast<State>(i);
  return std::nullopt;
}

Record transaction_record(std::string_view transactional_id, const Transaction& transaction) {
  protocol::TransactionLogValue value;
  value.producer_id = transaction.producer.id;
  value.previous_producer_id = transaction.previous_id;
  value.next_producer_id = transaction.next_id;
  value.producer_epoch = transaction.producer.epoch;
  value.transaction_timeout_ms = transaction.timeout_ms;
  value.transaction_status = static_cast<std::int8_t>(transaction.state);
  value.transaction_partitions.reset();
  if (transaction.state != State::empty) {
    auto& topics = value.transaction_partitions.emplace();
    for (const Part& part : transaction.partitions) {
      if (topics.empty() || topics.back().topic != part.topic)
        topics.emplace_back().topic = part.topic;
      topics.back().partition_ids.push_back(part.partition);
    }
  }
  value.transaction_last_update_timestamp_ms = transaction.last_update_ms;
  value.transaction_start_timestamp_ms = transaction.start_ms;
  value.client_transaction_version = transaction.client_version;
  return {transaction_key(transactional_id), protocol::frame_value(value)};
}

Record transaction_tombstone(std::string_view transactional_id) {
  return {transaction_key(transactional_id), std::nullopt};
}

std::optional<Transaction> transaction_of(protocol::TransactionLogValue value) {
  if (value.producer_id < 0 || value.producer_epoch < 0) return std::nullopt;
  if (value.transaction_status < static_cast<std::int8_t>(State::empty) ||
      value.transaction_status > static_cast<std::int8_t>(State::complete_abort))
    return std::nullopt;
  Transaction transaction;
  transaction.producer = {value.producer_id, value.producer_epoch};
  transaction.previous_id = value.previous_producer_id;
  transaction.next_id = value.next_producer_id;
  transaction.timeout_ms = value.transaction_timeout_ms;
  transaction.state = static_cast<State>(value.transaction_status);
  transaction.last_update_ms = value.transaction_last_update_timestamp_ms;
  transaction.start_ms = value.transaction_start_timestamp_ms;
  transaction.client_version = value.client_transaction_version;
  if (transaction.state == State::empty || !value.transaction_partitions) return transaction;
  for (auto& topic : *value.transaction_partitions)
    for (const std::int32_t partition : topic.partition_ids)
      transaction.partitions.insert({topic.topic, partition});
  return transaction;
}

}  // namespace broker::transactions
