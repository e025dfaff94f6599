// AddPartitionsToTxn v0-5: adds partitions to one transaction (v0-3, clients) or to several (v4 and
// later, brokers, who may also ask only whether they are in it).
//   One partition that is not there keeps the others of its transaction from being added.
#include <algorithm>
#include <span>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/group_coordinator.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/add_partitions_to_txn.gen.h"

namespace broker::api {

using protocol::AddPartitionsToTxnRequest;
using protocol::AddPartitionsToTxnResponse;
using protocol::ErrorCode;

namespace {

constexpr std::int16_t several_since = 4;
constexpr std::int16_t fenced_since = 2;  // PRODUCER_FENCED is known

// Only coordinators themselves write there, and to the states of transactions not even they by
// taking part in one: nothing would end it.
bool may_take_part(const std::string& topic, bool from_client) {
  return topic != transaction_state_topic && !(from_client && topic == consumer_offsets_topic);
}

// Why partitions cannot be added, one by one in the order asked; empty: all of them can.
template <class Topics>
std::vector<ErrorCode> refusals(const Snapshot& catalog, const Topics& topics, bool from_client) {
  std::vector<ErrorCode> errors;
  bool all_there = true;
  for (const auto& topic : topics) {
    const TopicPtr there = catalog.find(topic.name);
    const bool allowed = may_take_part(topic.name, from_client);
    for (const std::int32_t index : topic.partitions) {
      ErrorCode error = ErrorCode::operation_not_attempted;
      if (!allowed)
        error = ErrorCode::topic_authorization_failed;
      else if (!has_partition(there, index))
        error = ErrorCode::unknown_topic_or_partition;
      all_there = all_there && error == ErrorCode::operation_not_attempted;
      errors.push_back(error);
    }
  }
  if (all_there) errors.clear();
  return errors;
}

// The partitions of a topic that is there, each once and sorted: a request may name one as often as
// it has room, and each part has the name.
void add_parts(const std::string& topic, std::vector<std::int32_t> indexes,
               std::vector<transactions::Part>& parts) {
  std::ranges::sort(indexes);
  const auto repeated = std::ranges::unique(indexes);
  indexes.erase(repeated.begin(), repeated.end());
  for (const std::int32_t index : indexes) parts.push_back({topic, index});
}

// The error of each partition, in the order asked.
template <class Topics>
Task<std::vector<ErrorCode>> add_to_one(Broker& broker, const Snapshot& catalog,
                                        const Topics& topics, transactions::AddPartitions asked,
                                        bool verify_only, bool from_client) {
  std::vector<ErrorCode> errors = refusals(catalog, topics, from_client);
  if (!errors.empty()) co_return errors;
  std::vector<std::size_t> ends;  // of each topic's parts
  std::size_t count = 0;
  for (const auto& topic : topics) {
    add_parts(topic.name, topic.partitions, asked.partitions);
    ends.push_back(asked.partitions.size());
    count += topic.partitions.size();
  }
  if (!verify_only) {
    errors.assign(count, co_await broker.transactions().add_partitions(std::move(asked)));
    co_return errors;
  }
  const std::vector<transactions::Part> parts = asked.partitions;
  const std::vector<ErrorCode> verified = co_await broker.transactions().verify(std::move(asked));
  std::size_t begin = 0;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    const auto of_topic = std::span(parts).subspan(begin, ends[t] - begin);
    for (const std::int32_t index : topics[t].partitions) {
      const auto at = std::ranges::lower_bound(of_topic, index, {}, &transactions::Part::partition);
      errors.push_back(verified[begin + static_cast<std::size_t>(at - of_topic.begin())]);
    }
    begin = ends[t];
  }
  co_return errors;
}

template <class Topics, class Results>
void tell(const Topics& topics, const std::vector<ErrorCode>& errors, Results& results) {
  auto next = errors.begin();
  for (const auto& topic : topics) {
    auto& to = results.emplace_back();
    to.name = topic.name;
    for (const std::int32_t partition : topic.partitions) {
      auto& result = to.results_by_partition.emplace_back();
      result.partition_index = partition;
      result.partition_error_code = number(*next++);
    }
  }
}

}  // namespace

Task<Response> add_partitions_to_txn(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<AddPartitionsToTxnRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  AddPartitionsToTxnResponse message;
  if (request.version() < several_since) {
    transactions::AddPartitions one;
    one.transactional_id = asked->v3_and_below_transactional_id;
    one.producer = {asked->v3_and_below_producer_id, asked->v3_and_below_producer_epoch};
    one.client_version = transactions::classic_version;
    auto errors = co_await add_to_one(broker, *catalog, asked->v3_and_below_topics, std::move(one),
                                      false, true);
    for (ErrorCode& error : errors)
      if (error == ErrorCode::producer_fenced && request.version() < fenced_since)
        error = ErrorCode::invalid_producer_epoch;
    tell(asked->v3_and_below_topics, errors, message.results_by_topic_v3_and_below);
    co_return respond(request, message);
  }
  for (const auto& from : asked->transactions) {
    transactions::AddPartitions one;
    one.transactional_id = from.transactional_id;
    one.producer = {from.producer_id, from.producer_epoch};
    one.client_version = transactions::epoch_bump_version;
    const auto errors =
        co_await add_to_one(broker, *catalog, from.topics, std::move(one), from.verify_only, false);
    auto& to = message.results_by_transaction.emplace_back();
    to.transactional_id = from.transactional_id;
    tell(from.topics, errors, to.topic_results);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
