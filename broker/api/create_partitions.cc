// CreatePartitions, versions 0 to 3. Mirrored topics get the partitions that their source has, so
// for them it is refused with POLICY_VIOLATION, which released clients know and treat as final.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "broker/error_map.h"
#include "protocol/error_code.h"
#include "protocol/messages/create_partitions.gen.h"

namespace broker::api {

namespace {

using protocol::CreatePartitionsRequest;
using protocol::CreatePartitionsResponse;
using protocol::ErrorCode;
using NewPartitions = CreatePartitionsRequest::Topic;

CreatePartitionsResponse::Result answer(const NewPartitions& wanted, ErrorCode code,
                                        std::string message) {
  CreatePartitionsResponse::Result result;
  result.name = wanted.name;
  result.error_code = static_cast<std::int16_t>(code);
  result.error_message.reset();
  if (!message.empty()) result.error_message = std::move(message);
  return result;
}

std::optional<CreatePartitionsResponse::Result> refusal(const NewPartitions& wanted,
                                                        const Topic* topic, base::NodeId node) {
  if (topic == nullptr) return answer(wanted, ErrorCode::unknown_topic_or_partition, {});
  const auto present = static_cast<std::int32_t>(topic->partitions.size());
  if (topic->name == mirror_state_topic)
    return answer(wanted, ErrorCode::policy_violation,
                  fmt::format("the partition count of '{}' never changes", topic->name));
  if (is_mirrored(*topic))
    return answer(wanted, ErrorCode::policy_violation,
                  fmt::format("'{0}' is a copy that the mirror '{1}' keeps, with the partitions of "
                              "its source: stop it first (calque mirror stop {1} --topics {0})",
                              topic->name, topic->mirror));
  if (wanted.count <= present)
    return answer(
        wanted, ErrorCode::invalid_partitions,
        fmt::format("'{}' has {} partitions; ask for more than that", topic->name, present));
  if (wanted.count > partitions_per_topic_max)
    return answer(wanted, ErrorCode::policy_violation,
                  fmt::format("a topic may have {} partitions at most", partitions_per_topic_max));
  if (!wanted.assignments) return std::nullopt;
  if (std::ssize(*wanted.assignments) != wanted.count - present)
    return answer(wanted, ErrorCode::invalid_replica_assignment,
                  fmt::format("{} partitions are added and {} are assigned", wanted.count - present,
                              wanted.assignments->size()));
  const auto elsewhere = [&](const NewPartitions::Assignment& a) {
    return a.broker_ids.size() != 1 || a.broker_ids[0] != node;
  };
  if (std::ranges::any_of(*wanted.assignments, elsewhere))
    return answer(
        wanted, ErrorCode::invalid_replica_assignment,
        fmt::format("assign each partition to broker {}, the only one of this cluster", node));
  return std::nullopt;
}

std::int64_t added_partitions(const CreatePartitionsRequest& message, const Snapshot& catalog) {
  std::int64_t sum = 0;
  for (const NewPartitions& wanted : message.topics)
    if (const TopicPtr topic = catalog.find(wanted.name))
      sum += std::max<std::int64_t>(
          0, wanted.count - static_cast<std::int64_t>(topic->partitions.size()));
  return sum;
}

}  // namespace

Task<Response> create_partitions(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<CreatePartitionsRequest>(request);
  if (!message) co_return malformed();
  std::map<std::string, int> times;
  for (const NewPartitions& wanted : message->topics) ++times[wanted.name];
  CreatePartitionsResponse response;
  const std::int64_t more = added_partitions(*message, *shard.catalog());
  for (const NewPartitions& wanted : message->topics) {
    if (more > partitions_per_topic_max) {
      response.results.push_back(
          answer(wanted, ErrorCode::policy_violation,
                 fmt::format("{} partitions in one request are too many; send at most {} at a time",
                             more, partitions_per_topic_max)));
      continue;
    }
    int& count = times[wanted.name];
    if (count == 0) continue;
    if (count > 1) {
      response.results.push_back(
          answer(wanted, ErrorCode::invalid_request, "Duplicate topic name."));
      count = 0;  // the same answer once
      continue;
    }
    const TopicPtr topic = shard.catalog()->find(wanted.name);
    if (auto refused = refusal(wanted, topic.get(), broker.node_id())) {
      response.results.push_back(std::move(*refused));
      continue;
    }
    if (!message->validate_only) {
      const auto added = co_await broker.catalog().add_partitions(wanted.name, wanted.count);
      if (added.has_error()) {
        response.results.push_back(
            answer(wanted, kafka_error(added.error()), added.error().message()));
        continue;
      }
    }
    response.results.push_back(answer(wanted, ErrorCode::none, {}));
  }
  co_return respond(request, response);
}

}  // namespace broker::api
