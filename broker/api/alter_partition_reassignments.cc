// AlterPartitionReassignments, versions 0 and 1. There is one broker, so the only move that can be
// made is the one to where the replica is; it is done when the answer is sent.
#include <fmt/format.h>

#include <algorithm>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/alter_partition_reassignments.gen.h"

namespace broker::api {

namespace {

using protocol::AlterPartitionReassignmentsRequest;
using protocol::AlterPartitionReassignmentsResponse;
using protocol::ErrorCode;
using Asked = AlterPartitionReassignmentsRequest::Topic::Partition;
using ReassignmentAnswer = AlterPartitionReassignmentsResponse::Response::Partition;

void refuse(ReassignmentAnswer& answer, ErrorCode code, std::optional<std::string> message) {
  answer.error_code = number(code);
  answer.error_message = std::move(message);
}

void reassign(const Asked& asked, const std::string& name, const TopicPtr& topic, base::NodeId node,
              ReassignmentAnswer& answer) {
  answer.partition_index = asked.partition_index;
  answer.error_message.reset();
  if (!has_partition(topic, asked.partition_index))
    return refuse(answer, ErrorCode::unknown_topic_or_partition,
                  fmt::format("there is no partition {}-{} here", name, asked.partition_index));
  if (!asked.replicas) return refuse(answer, ErrorCode::no_reassignment_in_progress, std::nullopt);
  const auto& replicas = *asked.replicas;
  if (replicas.empty())
    return refuse(answer, ErrorCode::invalid_replica_assignment, "no broker is named");
  if (const auto other = std::ranges::find_if(replicas, [&](auto id) { return id != node; });
      other != replicas.end())
    return refuse(answer, ErrorCode::invalid_replica_assignment,
                  fmt::format("there is no broker {}: this cluster has one, {}", *other, node));
  if (replicas.size() > 1)
    return refuse(answer, ErrorCode::invalid_replica_assignment,
                  fmt::format("broker {} is named more than once", node));
}

}  // namespace

Task<Response> alter_partition_reassignments(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<AlterPartitionReassignmentsRequest>(request);
  if (!asked) co_return malformed();
  AlterPartitionReassignmentsResponse message;
  message.error_message.reset();
  if (asked->topics.empty()) message.error_message.emplace();  // Kafka's is empty then, not null
  message.allow_replication_factor_change = asked->allow_replication_factor_change;
  for (const auto& from : asked->topics) {
    auto& to = message.responses.emplace_back();
    to.name = from.name;
    const TopicPtr topic = shard.catalog()->find(from.name);
    for (const Asked& one : from.partitions)
      reassign(one, from.name, topic, broker.node_id(), to.partitions.emplace_back());
  }
  co_return respond(request, message);
}

}  // namespace broker::api
