// DescribeQuorum, versions 0 to 2. The metadata store has the place of Kafka's metadata log: this
// broker is its only voter and leader, and its revision is where the log would end. v1 adds times,
// v2 the nodes and where they are found.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/base/clock.h"
#include "protocol/messages/describe_quorum.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeQuorumRequest;
using protocol::DescribeQuorumResponse;
using protocol::ErrorCode;
using QuorumAnswer = DescribeQuorumResponse::Topic::Partition;

constexpr std::string_view metadata_topic = "__cluster_metadata";
// The leader never changes, so neither does its epoch.
constexpr std::int32_t leader_epoch = 1;

void describe(QuorumAnswer& answer, base::NodeId node, std::int64_t revision) {
  answer.leader_id = node;
  answer.leader_epoch = leader_epoch;
  answer.high_watermark = revision;
  auto& voter = answer.current_voters.emplace_back();
  voter.replica_id = node;
  voter.log_end_offset = revision;
  voter.last_fetch_timestamp = voter.last_caught_up_timestamp = base::wall_clock_ms();
}

}  // namespace

Task<Response> describe_quorum(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<DescribeQuorumRequest>(request);
  if (!asked) co_return malformed();
  auto look = [&broker]() -> Task<std::int64_t> {
    co_return static_cast<std::int64_t>(broker.catalog().store().revision());
  };
  const std::int64_t revision = co_await on(broker.shard(0), std::move(look));
  DescribeQuorumResponse message;
  // As Kafka: the one partition, alone, or nothing.
  const bool described = asked->topics.size() == 1 &&
                         asked->topics[0].topic_name == metadata_topic &&
                         asked->topics[0].partitions.size() == 1 &&
                         asked->topics[0].partitions[0].partition_index == 0;
  for (const auto& from : asked->topics) {
    auto& to = message.topics.emplace_back();
    to.topic_name = from.topic_name;
    for (const auto& one : from.partitions) {
      QuorumAnswer& answer = to.partitions.emplace_back();
      answer.partition_index = one.partition_index;
      if (!described) {
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
        answer.error_message = "ask for partition 0 of __cluster_metadata alone";
        continue;
      }
      describe(answer, broker.node_id(), revision);
    }
  }
  if (described) {
    auto& node = message.nodes.emplace_back();
    node.node_id = broker.node_id();
    const Endpoint& here = broker.advertised(request.connection.listener);
    auto& listener = node.listeners.emplace_back();
    listener.name = here.listener;
    listener.host = here.host;
    listener.port = here.port;
  }
  co_return respond(request, message);
}

}  // namespace broker::api
