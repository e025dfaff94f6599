#include "tools/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_for_leader_epoch.gen.h"

namespace tools {

namespace {

constexpr std::int16_t unknown_topic_or_partition = 3;
// Versions from which on a topic is named by its id alone are not needed here.
constexpr std::int16_t metadata_version_max = 12;

Cluster::Topic topic_of(const protocol::MetadataResponse::Topic& from) {
  Cluster::Topic topic{from.name.value_or(""), from.topic_id, from.is_internal, {}};
  for (const auto& p : from.partitions) {
    Cluster::Partition partition{p.partition_index, {}, {}};
    if (p.leader_id >= 0) partition.leader = p.leader_id;
    if (p.leader_epoch >= 0) partition.leader_epoch = p.leader_epoch;
    topic.partitions.push_back(partition);
  }
  std::ranges::sort(topic.partitions, {}, &Cluster::Partition::index);
  return topic;
}

}  // namespace

Cluster::Cluster(std::vector<Address> bootstrap, std::string option)
    : addresses_(std::move(bootstrap)),
      option_(std::move(option)),
      bootstrap_client_(std::make_unique<Client>(addresses_, option_)) {}

std::vector<Cluster::Topic> Cluster::ask(std::optional<std::vector<std::string>> names) {
  protocol::MetadataRequest request;
  request.allow_auto_topic_creation = false;
  request.topics.reset();
  if (names) {
    request.topics.emplace();
    for (std::string& name : *names) request.topics->push_back({{}, std::move(name)});
  }
  const auto response = any().call<protocol::MetadataResponse>(request, metadata_version_max);
  cluster_id_ = response.cluster_id.value_or("");
  controller_ = response.controller_id;
  for (const auto& broker : response.brokers)
    nodes_[broker.node_id] = {broker.host, static_cast<std::uint16_t>(broker.port)};
  std::vector<Topic> topics;
  for (const auto& from : response.topics) {
    if (from.error_code == unknown_topic_or_partition) continue;
    topics.push_back(topic_of(from));
    for (const Partition& p : topics.back().partitions)
      if (p.leader) leaders_[{topics.back().name, p.index}] = *p.leader;
  }
  std::ranges::sort(topics, {}, &Topic::name);
  return topics;
}

std::vector<Cluster::Topic> Cluster::topics() {
  return ask(std::nullopt);
}

std::optional<Cluster::Topic> Cluster::topic(const std::string& name) {
  std::vector<Topic> found = ask(std::vector{name});
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Client& Cluster::client_of(base::NodeId node) {
  auto& client = clients_[node];
  if (!client) client = std::make_unique<Client>(std::vector{nodes_.at(node)}, option_);
  return *client;
}

Client& Cluster::controller() {
  ask(std::vector<std::string>());
  return nodes_.contains(controller_) ? client_of(controller_) : any();
}

Client& Cluster::leader(const std::string& name, std::int32_t partition) {
  const std::pair key(name, partition);
  if (!leaders_.contains(key)) ask(std::vector{name});
  const auto found = leaders_.find(key);
  const auto node = found == leaders_.end() ? nodes_.end() : nodes_.find(found->second);
  if (node == nodes_.end())
    throw Failure(
        ExitCode::failed,
        fmt::format(
            "partition {} of '{}' has no leader at {}; look whether its brokers are running",
            partition, name, any().address().to_string()));
  return client_of(node->first);
}

void Cluster::forget_leaders() {
  leaders_.clear();
  clients_.clear();
  bootstrap_client_ = std::make_unique<Client>(addresses_, option_);
}

std::optional<Cluster::OffsetAnswer> Cluster::offset_at(const std::string& name,
                                                        std::int32_t partition,
                                                        std::int64_t timestamp) {
  constexpr std::int16_t max_timestamp_version = 7;
  Client& client = leader(name, partition);
  if (timestamp == max_timestamp &&
      !client.serves(protocol::ApiKey::list_offsets, max_timestamp_version))
    return std::nullopt;
  protocol::ListOffsetsRequest request;
  request.replica_id = -1;
  request.timeout_ms = 10'000;
  request.topics.push_back({name, {{partition, -1, timestamp}}});
  const auto response = client.call<protocol::ListOffsetsResponse>(request);
  if (response.topics.size() != 1 || response.topics[0].partitions.size() != 1)
    throw Failure(ExitCode::failed,
                  fmt::format("{} answered ListOffsets for '{}' without the partition that was "
                              "asked for; look at the broker's log",
                              client.address().to_string(), name));
  const OffsetAnswer& answer = response.topics[0].partitions[0];
  if (answer.error_code != 0)
    throw Failure(
        ExitCode::failed,
        fmt::format("{} does not tell offsets of '{}' partition {}: {}; look at the broker's log",
                    client.address().to_string(), name, partition, error_text(answer.error_code)));
  return answer;
}

std::pair<std::int32_t, std::int64_t> Cluster::epoch_end(const std::string& name,
                                                         std::int32_t partition,
                                                         base::LeaderEpoch epoch) {
  Client& client = leader(name, partition);
  protocol::OffsetForLeaderEpochRequest request;
  request.replica_id = -1;
  request.topics.push_back({name, {{partition, -1, epoch}}});
  const auto response = client.call<protocol::OffsetForLeaderEpochResponse>(request);
  if (response.topics.size() != 1 || response.topics[0].partitions.size() != 1 ||
      response.topics[0].partitions[0].error_code != 0)
    throw Failure(
        ExitCode::failed,
        fmt::format(
            "{} does not tell where epoch {} of '{}' partition {} ends; look at the broker's log",
            client.address().to_string(), epoch, name, partition));
  const auto& answer = response.topics[0].partitions[0];
  return {answer.leader_epoch, answer.end_offset};
}

}  // namespace tools
