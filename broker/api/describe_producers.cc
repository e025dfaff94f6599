// DescribeProducers, version 0: the idempotent and transactional producers that a partition knows.
#include <fmt/format.h>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/partition.h"
#include "protocol/messages/describe_producers.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeProducersRequest;
using protocol::DescribeProducersResponse;
using protocol::ErrorCode;
using ProducersAnswer = DescribeProducersResponse::Topic::Partition;

void describe(const Partition& partition, ProducersAnswer& answer) {
  for (const storage::ActiveProducer& one : partition.log().active_producers()) {
    auto& producer = answer.active_producers.emplace_back();
    producer.producer_id = one.id;
    producer.producer_epoch = one.epoch.value_or(-1);
    producer.last_sequence = one.last_sequence.value_or(-1);
    producer.last_timestamp = one.last_timestamp_ms;
    producer.coordinator_epoch = one.coordinator_epoch;
    producer.current_txn_start_offset = one.transaction_first_offset.value_or(-1);
  }
}

Task<bool> describe_on_shard(Shard& shard, base::TopicPartition id, ProducersAnswer* answer) {
  if (const auto partition = shard.find(id))
    describe(*partition, *answer);
  else
    answer->error_code = number(missing_partition);
  co_return true;
}

}  // namespace

Task<Response> describe_producers(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<DescribeProducersRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  DescribeProducersResponse message;
  message.topics.resize(asked->topics.size());
  std::vector<Job<bool>> jobs;
  for (std::size_t t = 0; t < asked->topics.size(); ++t) {
    const auto& from = asked->topics[t];
    auto& to = message.topics[t];
    to.name = from.name;
    to.partitions.resize(from.partition_indexes.size());
    const TopicPtr topic = catalog->find(from.name);
    for (std::size_t p = 0; p < from.partition_indexes.size(); ++p) {
      ProducersAnswer& answer = to.partitions[p];
      answer.partition_index = from.partition_indexes[p];
      if (!is_valid_topic_name(from.name)) {
        answer.error_code = number(ErrorCode::invalid_topic_exception);
        answer.error_message = fmt::format("'{}' is no topic name", from.name.substr(0, 249));
      } else if (!has_partition(topic, answer.partition_index)) {
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
        if (!topic) answer.error_message = "there is no such topic here";
      } else {
        const base::TopicPartition id = {topic->id, answer.partition_index};
        Shard* const target = &broker.shard_of(id);
        auto run = [target, id, to_fill = &answer] {
          return describe_on_shard(*target, id, to_fill);
        };
        jobs.push_back({target, std::move(run)});
      }
    }
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
  co_return respond(request, message);
}

}  // namespace broker::api
