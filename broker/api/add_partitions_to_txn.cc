// AddPartitionsToTxn v0-5: adds partitions to one transaction (v0-3, clients) or to several (v4 and
// later, brokers, who may also ask only whether they are in it).
//   One partition that is not there keeps the others of its transaction from being added.
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

// The error of each partition, in the order asked.
Task<std::vector<ErrorCode>> add_to_one(Broker& broker, const Snapshot& catalog,
                                        transactions::AddPartitions asked, bool verify_only,
                                        bool from_client) {
  std::vector<ErrorCode> errors(asked.partitions.size(), ErrorCode::none);
  bool all_there = true;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const transactions::Part& part = asked.partitions[i];
    const TopicPtr topic = catalog.find(part.topic);
    // Only coordinators themselves write there.
    if (from_client &&
        (part.topic == consumer_offsets_topic || part.topic == transaction_state_topic))
      errors[i] = ErrorCode::topic_authorization_failed;
    else if (!has_partition(topic, part.partition))
      errors[i] = ErrorCode::unknown_topic_or_partition;
    all_there = all_there && errors[i] == ErrorCode::none;
  }
  if (!all_there) {
    for (ErrorCode& error : errors)
      if (error == ErrorCode::none) error = ErrorCode::operation_not_attempted;
    co_return errors;
  }
  if (verify_only) co_return co_await broker.transactions().verify(std::move(asked));
  const ErrorCode error = co_await broker.transactions().add_partitions(std::move(asked));
  errors.assign(errors.size(), error);
  co_return errors;
}

template <class Topics>
std::vector<transactions::Part> parts_of(const Topics& topics) {
  std::vector<transactions::Part> parts;
  for (const auto& topic : topics)
    for (const std::int32_t partition : topic.partitions) parts.push_back({topic.name, partition});
  return parts;
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
    one.partitions = parts_of(asked->v3_and_below_topics);
    one.client_version = transactions::classic_version;
    auto errors = co_await add_to_one(broker, *catalog, std::move(one), false, true);
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
    one.partitions = parts_of(from.topics);
    one.client_version = transactions::epoch_bump_version;
    const auto errors =
        co_await add_to_one(broker, *catalog, std::move(one), from.verify_only, false);
    auto& to = message.results_by_transaction.emplace_back();
    to.transactional_id = from.transactional_id;
    tell(from.topics, errors, to.topic_results);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
