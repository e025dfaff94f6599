// DescribeTopicPartitions, version 0: topics in the order of their names, page by page. The cursor
// names the partition to begin with; a page holds response_partition_limit partitions, but at most
// max.request.partition.size.limit and at least one.
#include <algorithm>
#include <set>

#include "broker/api/authorized_operations.h"
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/describe_topic_partitions.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeTopicPartitionsRequest;
using protocol::DescribeTopicPartitionsResponse;
using protocol::ErrorCode;
using DescribedTopic = DescribeTopicPartitionsResponse::Topic;

DescribedTopic refuse(const std::string& name, ErrorCode code) {
  DescribedTopic answer;
  answer.name = name;
  answer.error_code = number(code);
  return answer;
}

// Those that are asked for, sorted; for all topics those that there are.
std::set<std::string> names_of(const DescribeTopicPartitionsRequest& asked,
                               const Snapshot& catalog) {
  std::set<std::string> names;
  for (const auto& one : asked.topics) names.insert(one.name);
  if (asked.topics.empty())
    for (const auto& [name, topic] : catalog.topics()) names.insert(name);
  return names;
}

DescribedTopic describe(const Topic& topic, std::size_t first, std::size_t last,
                        base::NodeId node) {
  DescribedTopic answer;
  answer.name = topic.name;
  answer.topic_id = topic.id;
  answer.is_internal = topic.internal;
  answer.topic_authorized_operations = topic_operations;
  for (std::size_t i = first; i < last; ++i) {
    auto& partition = answer.partitions.emplace_back();
    partition.partition_index = static_cast<std::int32_t>(i);
    partition.leader_id = node;
    partition.leader_epoch = topic.partitions[i].leader_epoch;
    partition.replica_nodes = {node};
    partition.isr_nodes = {node};
    // No replica is ever out of sync, so these are known to be empty, which null would not say.
    partition.eligible_leader_replicas.emplace();
    partition.last_known_elr.emplace();
  }
  return answer;
}

}  // namespace

Task<Response> describe_topic_partitions(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<DescribeTopicPartitionsRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  DescribeTopicPartitionsResponse message;
  message.next_cursor.reset();
  std::set<std::string> names = names_of(*asked, *catalog);
  const auto& cursor = asked->cursor;
  // As Kafka: the cursor's topic must be one that is asked for.
  const bool strange = cursor && (cursor->partition_index < 0 ||
                                  (!asked->topics.empty() && !names.contains(cursor->topic_name)));
  if (strange) {
    for (const std::string& name : names)
      message.topics.push_back(refuse(name, ErrorCode::invalid_request));
    co_return respond(request, message);
  }
  if (cursor) names.erase(names.begin(), names.lower_bound(cursor->topic_name));
  const std::int64_t limit = catalog->config().integer("max.request.partition.size.limit");
  auto left =
      static_cast<std::size_t>(std::clamp<std::int64_t>(asked->response_partition_limit, 1, limit));
  for (const std::string& name : names) {
    if (left == 0) {
      message.next_cursor.emplace().topic_name = name;
      break;
    }
    const TopicPtr topic = catalog->find(name);
    if (!topic) {
      DescribedTopic unknown =
          refuse(name, is_valid_topic_name(name) ? ErrorCode::unknown_topic_or_partition
                                                 : ErrorCode::invalid_topic_exception);
      unknown.topic_authorized_operations = topic_operations;
      message.topics.push_back(std::move(unknown));
      continue;
    }
    const std::size_t count = topic->partitions.size();
    const bool continued = cursor && cursor->topic_name == name;
    const std::size_t first =
        continued ? std::min(static_cast<std::size_t>(cursor->partition_index), count) : 0;
    const std::size_t last = first + std::min(left, count - first);
    message.topics.push_back(describe(*topic, first, last, broker.node_id()));
    left -= last - first;
    if (last < count) {
      auto& next = message.next_cursor.emplace();
      next.topic_name = name;
      next.partition_index = static_cast<std::int32_t>(last);
      break;
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
