// DescribeClusterMirrors of KIP-1279, version 0. Topics come with their partitions when state or
// offsets are asked for. Unknown is -1, never a stale figure.
#include <limits>

#include "broker/api/handlers.h"
#include "broker/api/mirror_answer.h"
#include "broker/broker.h"
#include "broker/shard.h"
#include "protocol/messages/describe_cluster_mirrors.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeClusterMirrorsRequest;
using protocol::DescribeClusterMirrorsResponse;
using Mirror = DescribeClusterMirrorsResponse::Mirror;

// Kafka's bits for CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS.
constexpr std::int32_t all_mirror_operations = 3552;

struct WantedParts {
  bool state = false;
  bool offsets = false;
  bool operations = false;
};

std::string_view desired_name(std::int8_t state) {
  switch (state) {
    case desired_mirroring:
      return "MIRRORING";
    case desired_paused:
      return "PAUSED";
    case desired_stopped:
      return "STOPPED";
    default:
      return "UNKNOWN";
  }
}

Mirror::Topic::Partition partition_line(const mirror::PartitionDescription& p, WantedParts wanted) {
  Mirror::Topic::Partition line;
  line.partition_index = p.partition;
  line.state_value = wanted.state ? p.state : "UNKNOWN";
  line.error_message.reset();
  if (wanted.state) {
    line.error_message = p.error_message;
    line.retry_attempt = p.retry_attempt;
    line.time_in_state_ms = p.in_state.count();
    line.writable = p.writable;
  }
  if (p.last_mirror_position) {
    line.last_mirror_epoch = p.last_mirror_position->epoch;
    line.last_mirror_offset = p.last_mirror_position->offset;
  }
  if (wanted.offsets) {
    line.source_offset = p.source_offset.value_or(-1);
    line.destination_offset = p.destination_offset.value_or(-1);
    line.bytes_copied = static_cast<std::int64_t>(p.bytes_copied);
    line.bytes_per_second = static_cast<std::int64_t>(p.bytes_per_second);
  }
  if (p.skipped) {
    line.skipped_from = p.skipped->from;
    line.skipped_to = p.skipped->until;
  }
  return line;
}

Mirror::Group group_line(const mirror::GroupDescription& group) {
  Mirror::Group line;
  line.group_id = group.name;
  line.offset_count = group.offsets;
  line.clamped_count = group.clamped;
  line.behind = group.behind;
  line.synced_ms = group.synced_ms.value_or(-1);
  line.error_message = group.error_message;
  return line;
}

// A topic that cannot be mirrored at all may have no partition that could say so.
std::optional<std::string> first_error(const mirror::MirrorDescription& mirror) {
  if (mirror.error_message) return mirror.error_message;
  for (const mirror::TopicDescription& topic : mirror.topics)
    if (topic.error_message) return topic.name + ": " + *topic.error_message;
  return std::nullopt;
}

Mirror mirror_line(const mirror::MirrorDescription& description, WantedParts wanted) {
  Mirror line;
  line.mirror_name = description.name;
  set_outcome(line, description.outcome);
  if (!description.outcome.ok()) {
    line.source_bootstrap.reset();
    line.source_cluster_id.reset();
    return line;
  }
  line.source_bootstrap = description.source_bootstrap;
  line.source_cluster_id = description.source_cluster_id;
  line.source_reachable = description.source_reachable;
  line.source_error = first_error(description);
  if (wanted.operations) line.authorized_operations = all_mirror_operations;
  std::int64_t bytes = 0, rate = 0;
  for (const mirror::TopicDescription& topic : description.topics) {
    Mirror::Topic topic_line;
    topic_line.topic_name = topic.name;
    topic_line.topic_id = topic.id;
    topic_line.desired_state = desired_name(topic.desired_state);
    for (const mirror::PartitionDescription& p : topic.partitions) {
      bytes += static_cast<std::int64_t>(p.bytes_copied);
      rate += static_cast<std::int64_t>(p.bytes_per_second);
      if (wanted.state || wanted.offsets)
        topic_line.partitions.push_back(partition_line(p, wanted));
    }
    line.topics.push_back(std::move(topic_line));
  }
  if (wanted.offsets) {
    line.bytes_copied = bytes;
    line.bytes_per_second = rate;
  }
  line.group_error = description.group_error;
  for (const mirror::GroupDescription& group : description.groups)
    line.groups.push_back(group_line(group));
  return line;
}

mirror::DescribeFilter filter_of(const DescribeClusterMirrorsRequest& message) {
  mirror::DescribeFilter filter;
  filter.mirrors = message.mirror_names;
  filter.source_cluster_id = message.cluster_id;
  filter.include_offsets = message.include_mirror_offset;
  filter.include_groups = message.include_groups;
  if (message.topics) {
    filter.topics.emplace();
    for (const auto& topic : *message.topics)
      filter.topics->insert_or_assign(topic.topic_name, topic.partitions);
  }
  return filter;
}

}  // namespace

Task<Response> describe_cluster_mirrors(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<DescribeClusterMirrorsRequest>(request);
  if (!message) co_return malformed();
  auto run = [filter = filter_of(*message)](mirror::Coordinator& mirrors) {
    return mirrors.describe(filter);
  };
  const std::vector<mirror::MirrorDescription> found =
      co_await with_mirrors(broker, std::move(run));
  const WantedParts wanted{.state = message->include_mirror_state,
                           .offsets = message->include_mirror_offset,
                           .operations = message->include_authorized_operations};
  DescribeClusterMirrorsResponse response;
  for (const mirror::MirrorDescription& description : found)
    response.mirrors.push_back(mirror_line(description, wanted));
  co_return respond(request, response);
}

}  // namespace broker::api
