// CreateTopics, versions 2 to 7. One node, so the replication factor is 1 or -1 (the default), and
// manual assignments may name this node only. v5 answers partition count and configuration, v7 the
// topic id. timeout_ms is not needed: a topic is whole when its record is durable.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "broker/error_map.h"
#include "broker/group_coordinator.h"
#include "broker/topic_config.h"
#include "broker/transaction_coordinator.h"
#include "protocol/error_code.h"
#include "protocol/messages/create_topics.gen.h"

namespace broker::api {

namespace {

using protocol::CreateTopicsRequest;
using protocol::CreateTopicsResponse;
using protocol::ErrorCode;

// As Kafka: more in one request are refused as a whole.
constexpr std::int64_t partitions_per_request_max = 10'000;

struct TopicRefusal {
  ErrorCode code = ErrorCode::none;
  std::string message;
};
using Verdict = std::optional<TopicRefusal>;

Verdict refuse_topic(ErrorCode code, std::string message) {
  return TopicRefusal{code, std::move(message)};
}

CreateTopicsResponse::Topic refused(const std::string& name, const TopicRefusal& refusal) {
  CreateTopicsResponse::Topic topic;
  topic.name = name;
  topic.error_code = static_cast<std::int16_t>(refusal.code);
  topic.error_message = refusal.message;
  return topic;
}

Verdict check_name(const std::string& name, const Snapshot& catalog) {
  if (!is_valid_topic_name(name))
    return refuse_topic(
        ErrorCode::invalid_topic_exception,
        fmt::format("'{}' is no topic name: use 1 to 249 letters, digits, '.', '_' or "
                    "'-', but not '.' or '..' alone",
                    name.substr(0, 249)));
  if (catalog.find(name))
    return refuse_topic(ErrorCode::topic_already_exists,
                        fmt::format("Topic '{}' already exists.", name));
  if (name == "__cluster_metadata")
    return refuse_topic(ErrorCode::invalid_request,
                        fmt::format("'{}' is the name of Kafka's own log of its metadata", name));
  if (name == mirror_state_topic)
    return refuse_topic(
        ErrorCode::invalid_request,
        fmt::format("'{}' is created by the broker itself with its first mirror", name));
  if (const auto other = find_collision(catalog, name))
    return refuse_topic(
        ErrorCode::invalid_topic_exception,
        fmt::format("Topic '{}' collides with existing topic: {} ('.' and '_' count as the same)",
                    name, *other));
  return std::nullopt;
}

Verdict check_assignments(const CreateTopicsRequest::Topic& topic, base::NodeId node) {
  if (topic.num_partitions != -1)
    return refuse_topic(ErrorCode::invalid_request,
                        "with a manual assignment the number of partitions must be left at -1");
  if (topic.replication_factor != -1)
    return refuse_topic(ErrorCode::invalid_request,
                        "with a manual assignment the replication factor must be left at -1");
  std::set<std::int32_t> partitions;
  for (const auto& assignment : topic.assignments) {
    if (assignment.broker_ids.empty())
      return refuse_topic(
          ErrorCode::invalid_replica_assignment,
          fmt::format("partition {} is assigned to no broker", assignment.partition_index));
    if (std::ranges::any_of(assignment.broker_ids, [&](auto id) { return id != node; }))
      return refuse_topic(
          ErrorCode::invalid_replica_assignment,
          fmt::format(
              "partition {} is assigned to a broker other than {}, the only one of this cluster",
              assignment.partition_index, node));
    if (assignment.broker_ids.size() > 1)
      return refuse_topic(ErrorCode::invalid_replica_assignment,
                          fmt::format("partition {} is assigned to broker {} more than once",
                                      assignment.partition_index, node));
    if (!partitions.insert(assignment.partition_index).second)
      return refuse_topic(
          ErrorCode::invalid_replica_assignment,
          fmt::format("partition {} is assigned twice", assignment.partition_index));
  }
  if (*partitions.begin() != 0 ||
      *partitions.rbegin() != static_cast<std::int32_t>(partitions.size()) - 1)
    return refuse_topic(ErrorCode::invalid_replica_assignment,
                        "assigned partitions must be numbered 0, 1, 2 and so on without a gap");
  return std::nullopt;
}

Verdict check_counts(const CreateTopicsRequest::Topic& topic) {
  if (topic.replication_factor == 0 || topic.replication_factor < -1)
    return refuse_topic(ErrorCode::invalid_replication_factor,
                        "the replication factor must be 1, or -1 for the default");
  if (topic.replication_factor > 1)
    return refuse_topic(
        ErrorCode::invalid_replication_factor,
        fmt::format("a replication factor of {} cannot be reached: this cluster has one "
                    "broker; use 1, or -1 for the default",
                    topic.replication_factor));
  if (topic.num_partitions == 0 || topic.num_partitions < -1)
    return refuse_topic(ErrorCode::invalid_partitions,
                        "the number of partitions must be positive, or -1 for the default");
  return std::nullopt;
}

void describe(CreateTopicsResponse::Topic& answer, const NewTopic& topic, const Config& config) {
  answer.num_partitions = topic.partitions;
  answer.replication_factor = 1;
  for (const TopicSetting& setting : topic_settings()) {
    const EffectiveValue effective = effective_value(setting, topic.configs, config);
    CreateTopicsResponse::Topic::Config shown;
    shown.name = setting.name;
    shown.value = effective.value;
    shown.config_source = static_cast<std::int8_t>(effective.source);
    answer.configs->push_back(std::move(shown));
  }
}

// What coordinators keep their state in is compacted by key whoever makes it, else retention would
// drop states that are still meant.
void keep_compacted(NewTopic& topic, const Config& config) {
  if (!protocol::is_coordinator_topic(topic.name)) return;
  NewTopic made =
      topic.name == transaction_state_topic ? transaction_topic(config) : offsets_topic(config);
  topic.internal = true;
  topic.configs.erase("cleanup.policy");
  topic.configs.merge(std::move(made.configs));
}

// What is to be created, or why not.
boost::system::result<NewTopic, TopicRefusal> plan(const CreateTopicsRequest::Topic& wanted,
                                                   const Snapshot& catalog) {
  const Config& config = catalog.config();
  if (auto refusal = check_name(wanted.name, catalog)) return *refusal;
  std::vector<RequestedConfig> requested;
  for (const auto& c : wanted.configs) requested.push_back({c.name, c.value});
  CheckedConfigs checked = check_topic_configs(requested);
  if (checked.problem) return TopicRefusal{ErrorCode::invalid_config, *checked.problem};
  const bool manual = !wanted.assignments.empty();
  if (auto refusal = manual ? check_assignments(wanted, config.node_id()) : check_counts(wanted))
    return *refusal;
  NewTopic topic;
  topic.name = wanted.name;
  topic.configs = std::move(checked.configs);
  topic.partitions = manual ? static_cast<std::int32_t>(wanted.assignments.size())
                     : wanted.num_partitions == -1
                         ? static_cast<std::int32_t>(config.integer("num.partitions"))
                         : wanted.num_partitions;
  keep_compacted(topic, config);
  return topic;
}

// `catalog` as it was when the request came: names of one request do not collide with each other,
// as in Kafka.
Task<CreateTopicsResponse::Topic> create(Broker& broker, const SnapshotPtr catalog,
                                         const CreateTopicsRequest::Topic wanted,
                                         bool validate_only) {
  auto planned = plan(wanted, *catalog);
  if (planned.has_error()) co_return refused(wanted.name, planned.error());
  CreateTopicsResponse::Topic answer;
  answer.name = wanted.name;
  answer.error_message.reset();
  describe(answer, *planned, catalog->config());
  if (validate_only) co_return answer;
  const auto created = co_await broker.catalog().create_topic(*planned);
  if (created.has_error()) {
    const ErrorCode code = kafka_error(created.error());
    co_return refused(wanted.name, {code, created.error().message()});
  }
  answer.topic_id = (*created)->id;
  log_settings_without_effect(wanted.name, planned->configs);
  co_return answer;
}

std::int64_t partitions_of(const CreateTopicsRequest::Topic& topic) {
  return topic.assignments.empty() ? std::max(topic.num_partitions, 1)
                                   : static_cast<std::int64_t>(topic.assignments.size());
}

}  // namespace

Task<Response> create_topics(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<CreateTopicsRequest>(request);
  if (!message) co_return malformed();
  CreateTopicsResponse response;
  std::map<std::string, int> times;
  std::int64_t partitions = 0;
  for (const auto& topic : message->topics) {
    ++times[topic.name];
    partitions += partitions_of(topic);
  }
  const SnapshotPtr catalog = shard.catalog();
  std::set<std::string> answered;
  for (const auto& topic : message->topics) {
    if (times[topic.name] > 1) {
      if (answered.insert(topic.name).second)
        response.topics.push_back(
            refused(topic.name, {ErrorCode::invalid_request, "Duplicate topic name."}));
    } else if (partitions > partitions_per_request_max) {
      response.topics.push_back(refused(
          topic.name,
          {ErrorCode::policy_violation,
           fmt::format("{} partitions in one request are too many; send at most {} at a time",
                       partitions, partitions_per_request_max)}));
    } else {
      response.topics.push_back(co_await create(broker, catalog, topic, message->validate_only));
    }
  }
  co_return respond(request, response);
}

}  // namespace broker::api
