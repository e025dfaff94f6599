// Metadata v0-13. Answered from this shard's snapshot of the catalog.
//   v0: an empty list means all topics; from v1 on null does and empty means none. v1 controller,
//   rack, internal; v2 cluster id; v4 auto-creation flag (before, a client always wants it);
//   v5 offline replicas; v7 leader epochs; v8 authorized operations; v10 topic ids; v12 topics by
//   id alone; v13 an error for the whole answer.
//   A topic that is created by asking is answered with an error this time, as by Kafka: the client
//   asks again (A08).
#include <algorithm>
#include <map>
#include <set>

#include "broker/api/authorized_operations.h"
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/base/log.h"
#include "protocol/messages/metadata.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::MetadataRequest;
using protocol::MetadataResponse;

// Of one request. Who asks again gets the rest.
constexpr std::size_t created_by_asking_max = 100;

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

MetadataResponse::Topic refuse(const MetadataRequest::Topic& asked, ErrorCode error,
                               bool operations) {
  MetadataResponse::Topic out;
  out.error_code = number(error);
  out.name = asked.name;
  // These two are internal whether they are there or not.
  out.is_internal = asked.name == "__consumer_offsets" || asked.name == "__transaction_state";
  if (operations) out.topic_authorized_operations = topic_operations;
  return out;
}

MetadataResponse::Topic find_by_id(const Broker& broker, const Snapshot& catalog,
                                   const base::Uuid& id, bool operations) {
  if (const TopicPtr topic = catalog.find(id)) return describe(broker, *topic, operations);
  MetadataResponse::Topic unknown;
  unknown.error_code = number(ErrorCode::unknown_topic_id);
  unknown.name.reset();
  unknown.topic_id = id;
  return unknown;
}

// While a mirror copies, or has yet to find its topics, a name that is not there may be one of its
// source's: a topic made here would keep the copy away.
bool awaits_topics(const Snapshot& catalog) {
  std::map<std::string_view, bool> mirrors;  // whether all topics of the mirror are stopped
  for (const auto& [name, mirror] : catalog.mirrors()) mirrors[name] = false;
  for (const auto& [name, topic] : catalog.topics())
    if (!topic->mirror.empty()) mirrors[topic->mirror] = true;
  for (const auto& [name, topic] : catalog.topics())
    if (is_mirrored(*topic)) mirrors[topic->mirror] = false;
  return std::ranges::any_of(mirrors, [](const auto& one) { return !one.second; });
}

Task<void> create(Broker& broker, const SnapshotPtr catalog, std::vector<std::string> names) {
  for (std::string& name : names) {
    NewTopic topic;
    topic.name = name;
    topic.partitions = static_cast<std::int32_t>(catalog->config().integer("num.partitions"));
    const auto made = co_await broker.catalog().create_topic(std::move(topic));
    if (made.has_error() && made.error() != BrokerErrc::topic_exists)
      base::logger("broker").warn("topic {} was asked for and not created: {}", name,
                                  made.error().message());
  }
}

// Whether a topic of this name may come into being because somebody asked for it.
bool may_be_created(const Snapshot& catalog, const std::string& name) {
  constexpr std::string_view internal[] = {"__consumer_offsets", "__transaction_state",
                                           "__share_group_state", "__cluster_metadata",
                                           mirror_state_topic};
  return std::ranges::find(internal, name) == std::end(internal) && !find_collision(catalog, name);
}

// As Kafka: a request that names ids in versions that cannot, or neither name nor id, fails whole.
bool is_sound(const MetadataRequest& asked, std::int16_t version) {
  if (!asked.topics) return true;
  return std::ranges::all_of(*asked.topics, [&](const MetadataRequest::Topic& one) {
    if (version < 12) return one.name && one.topic_id.is_zero();
    return one.name || !one.topic_id.is_zero();
  });
}

Response refuse_whole(const Request& request, const MetadataRequest& asked) {
  MetadataResponse message;
  for (const MetadataRequest::Topic& one : *asked.topics) {
    MetadataResponse::Topic& out = message.topics.emplace_back();
    out.error_code = number(ErrorCode::invalid_request);
    out.name = one.name.value_or("");
    out.topic_id = one.topic_id;
  }
  message.error_code = number(ErrorCode::invalid_request);
  return respond(request, message);
}

void describe_here(MetadataResponse& message, const Broker& broker, const Request& request) {
  message.cluster_id = broker.cluster_id();
  message.controller_id = broker.node_id();
  const Endpoint& here = broker.advertised(request.connection.listener);
  MetadataResponse::Broker& node = message.brokers.emplace_back();
  node.node_id = broker.node_id();
  node.host = here.host;
  node.port = here.port;
  node.rack = broker.config().value("broker.rack");
}

}  // namespace

Task<Response> metadata(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<MetadataRequest>(request);
  if (!asked) co_return malformed();
  const std::int16_t version = request.version();
  const SnapshotPtr catalog = shard.catalog();
  if (!is_sound(*asked, version)) co_return refuse_whole(request, *asked);
  MetadataResponse message;
  describe_here(message, broker, request);
  if (asked->include_cluster_authorized_operations)
    message.cluster_authorized_operations = cluster_operations;

  const bool operations = asked->include_topic_authorized_operations;
  const bool all = !asked->topics || (version == 0 && asked->topics->empty());
  if (all) {
    for (const auto& [name, topic] : catalog->topics())
      message.topics.push_back(describe(broker, *topic, operations));
    co_return respond(request, message);
  }
  // As Kafka: where one topic is asked for by id, names alone are passed over.
  const bool by_id =
      std::ranges::any_of(*asked->topics, [](const auto& one) { return !one.topic_id.is_zero(); });
  std::vector<std::string> wanted;
  std::set<std::pair<std::string, base::Uuid>> seen;
  for (const MetadataRequest::Topic& one : *asked->topics) {
    if (by_id && one.topic_id.is_zero()) continue;
    const std::string name = one.topic_id.is_zero() ? one.name.value_or("") : std::string();
    if (!seen.insert({name, one.topic_id}).second) continue;
    if (!one.topic_id.is_zero()) {
      message.topics.push_back(find_by_id(broker, *catalog, one.topic_id, operations));
    } else if (!is_valid_topic_name(name)) {
      message.topics.push_back(refuse(one, ErrorCode::invalid_topic_exception, operations));
    } else if (const TopicPtr topic = catalog->find(name)) {
      message.topics.push_back(describe(broker, *topic, operations));
    } else {
      message.topics.push_back(refuse(one, ErrorCode::unknown_topic_or_partition, operations));
      if (may_be_created(*catalog, name)) wanted.push_back(name);
    }
  }
  const bool creates = asked->allow_auto_topic_creation && !wanted.empty() &&
                       catalog->config().flag("auto.create.topics.enable") &&
                       !awaits_topics(*catalog);
  wanted.resize(std::min(wanted.size(), created_by_asking_max));
  if (creates) co_await create(broker, catalog, std::move(wanted));
  co_return respond(request, message);
}

}  // namespace broker::api
