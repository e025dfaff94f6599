// Metadata v0-13. Answered from this shard's snapshot of the catalog.
//   v0: an empty list means all topics; from v1 on null does and empty means none. v1 controller,
//   rack, internal; v2 cluster id; v4 auto-creation flag (topics are not created by asking);
//   v5 offline replicas; v7 leader epochs; v8 authorized operations; v10 topic ids; v12 topics by
//   id alone; v13 an error for the whole answer.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/metadata.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::MetadataRequest;
using protocol::MetadataResponse;

// Bits by Kafka's numbers of operations, for a broker without ACLs: all that exist for the kind.
constexpr std::int32_t operation(int number) {
  return 1 << number;
}
constexpr std::int32_t topic_operations = operation(3) | operation(4) | operation(5) |
                                          operation(6) | operation(7) | operation(8) |
                                          operation(10) | operation(11);
constexpr std::int32_t cluster_operations = operation(5) | operation(7) | operation(8) |
                                            operation(9) | operation(10) | operation(11) |
                                            operation(12);

MetadataResponse::Topic describe(const Broker& broker, const Topic& topic, bool operations) {
  MetadataResponse::Topic out;
  out.name = topic.name;
  out.topic_id = topic.id;
  out.is_internal = topic.internal;
  if (operations) out.topic_authorized_operations = topic_operations;
  out.partitions.resize(topic.partitions.size());
  for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
    MetadataResponse::Topic::Partition& partition = out.partitions[i];
    partition.partition_index = static_cast<std::int32_t>(i);
    partition.leader_id = broker.node_id();
    partition.leader_epoch = topic.partitions[i].leader_epoch;
    partition.replica_nodes = {broker.node_id()};
    partition.isr_nodes = {broker.node_id()};
  }
  return out;
}

MetadataResponse::Topic refuse(const MetadataRequest::Topic& asked, ErrorCode error) {
  MetadataResponse::Topic out;
  out.error_code = number(error);
  out.name = asked.name;
  out.topic_id = asked.topic_id;
  return out;
}

MetadataResponse::Topic find(const Broker& broker, const Snapshot& catalog,
                             const MetadataRequest::Topic& asked, std::int16_t version,
                             bool operations) {
  if (version >= 12 && !asked.topic_id.is_zero()) {
    const TopicPtr topic = catalog.find(asked.topic_id);
    if (topic) return describe(broker, *topic, operations);
    MetadataResponse::Topic unknown = refuse(asked, ErrorCode::unknown_topic_id);
    unknown.name.reset();
    return unknown;
  }
  const std::string name = asked.name.value_or(std::string());
  if (!is_valid_topic_name(name)) return refuse(asked, ErrorCode::invalid_topic_exception);
  if (const TopicPtr topic = catalog.find(name)) return describe(broker, *topic, operations);
  MetadataResponse::Topic unknown = refuse(asked, ErrorCode::unknown_topic_or_partition);
  unknown.topic_id = base::Uuid();
  return unknown;
}

}  // namespace

Task<Response> metadata(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<MetadataRequest>(request);
  if (!asked) co_return malformed();
  const std::int16_t version = request.version();
  const Snapshot& catalog = *shard.catalog();
  MetadataResponse message;
  message.cluster_id = broker.cluster_id();
  message.controller_id = broker.node_id();
  const Endpoint& here = broker.advertised(request.connection.listener);
  MetadataResponse::Broker& node = message.brokers.emplace_back();
  node.node_id = broker.node_id();
  node.host = here.host;
  node.port = here.port;
  if (asked->include_cluster_authorized_operations)
    message.cluster_authorized_operations = cluster_operations;

  const bool operations = asked->include_topic_authorized_operations;
  const bool all = !asked->topics || (version == 0 && asked->topics->empty());
  if (all) {
    for (const auto& [name, topic] : catalog.topics())
      message.topics.push_back(describe(broker, *topic, operations));
  } else {
    for (const MetadataRequest::Topic& one : *asked->topics)
      message.topics.push_back(find(broker, catalog, one, version, operations));
  }
  co_return respond(request, message);
}

}  // namespace broker::api
