#include "broker/api/config_resource.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "broker/broker.h"
#include "broker/error.h"
#include "broker/error_map.h"
#include "broker/group_settings.h"
#include "protocol/base/log.h"

namespace broker::api {

namespace {

using protocol::ErrorCode;
using Refusal = std::optional<ConfigRefusal>;

Refusal refuse_resource(ErrorCode code, std::string message) {
  return ConfigRefusal{code, std::move(message)};
}

Refusal refuse_resource(const base::Error& error) {
  return refuse_resource(kafka_error(error), error.message());
}

Refusal check_node(const std::string& name, base::NodeId node) {
  base::NodeId asked = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), asked);
  if (error != std::errc() || stop != name.data() + name.size())
    return refuse_resource(ErrorCode::invalid_request,
                           fmt::format("'{}' is no broker id: give a number", name));
  if (asked != node)
    return refuse_resource(ErrorCode::invalid_request,
                           fmt::format("this is broker {}, not {}: ask that one", node, asked));
  return std::nullopt;
}

Task<Refusal> change_topic(Broker& broker, Shard& shard, const ResourceChange resource,
                           bool validate_only) {
  if (resource.name.empty())
    co_return refuse_resource(ErrorCode::invalid_request,
                              "topics have no common settings: name a topic");
  if (!is_valid_topic_name(resource.name))
    co_return refuse_resource(ErrorCode::invalid_topic_exception,
                              fmt::format("'{}' is no topic name", resource.name.substr(0, 249)));
  if (resource.name == mirror_state_topic)
    co_return refuse_resource(
        ErrorCode::policy_violation,
        fmt::format("'{}' holds the state of all mirrors; its settings never change",
                    resource.name));
  const SnapshotPtr catalog = shard.catalog();
  const auto change = [&](const TopicConfigs& present) -> std::pair<Refusal, TopicConfigs> {
    TopicConfigs configs = resource.replaces ? TopicConfigs() : present;
    Refusal refused = apply_to_topic(resource.changes, catalog->config(), configs);
    return {std::move(refused), std::move(configs)};
  };
  if (validate_only) {
    const TopicPtr topic = catalog->find(resource.name);
    if (!topic) co_return refuse_resource(BrokerErrc::unknown_topic);
    co_return change(topic->configs).first;
  }
  Refusal refused;
  const auto alter = [&](const TopicConfigs& present) -> std::optional<TopicConfigs> {
    auto [problem, configs] = change(present);
    refused = std::move(problem);
    if (refused) return std::nullopt;
    return std::move(configs);
  };
  const auto altered = co_await broker.catalog().alter_topic(resource.name, alter);
  if (altered.has_error()) co_return refuse_resource(altered.error());
  if (refused) co_return refused;
  TopicConfigs named;
  for (const ConfigChange& one : resource.changes)
    if (const auto at = (*altered)->configs.find(one.name); at != (*altered)->configs.end())
      named.insert(*at);
  log_settings_without_effect(resource.name, named);
  co_return Refusal();
}

Task<Refusal> change_broker(Broker& broker, Shard& shard, const ResourceChange resource,
                            bool validate_only) {
  const bool of_cluster = resource.name.empty();
  if (!of_cluster)
    if (auto refused = check_node(resource.name, broker.node_id())) co_return refused;
  const SnapshotPtr catalog = shard.catalog();
  Refusal refused;
  const auto alter = [&](const ConfigValues& present) -> std::optional<ConfigValues> {
    ConfigValues values = resource.replaces ? ConfigValues() : present;
    refused = apply_to_broker(resource.changes, catalog->config(), values);
    if (refused || validate_only) return std::nullopt;
    return values;
  };
  const auto altered = co_await broker.catalog().alter_broker(of_cluster, alter);
  if (altered.has_error()) co_return refuse_resource(altered.error());
  if (!refused && !validate_only)
    for (const ConfigChange& one : resource.changes)
      base::logger("config").info("{} is {} {}", one.name,
                                  one.value ? fmt::format("'{}'", *one.value) : "no longer set",
                                  of_cluster ? "for all brokers" : "for this broker");
  co_return refused;
}

Task<Refusal> change_group(Broker& broker, Shard& shard, const ResourceChange resource,
                           bool validate_only) {
  if (auto refused = check_group_operations(resource.changes)) co_return refused;
  if (resource.name.empty())
    co_return refuse_resource(ErrorCode::invalid_request,
                              "groups have no common settings: name a group");
  const SnapshotPtr catalog = shard.catalog();
  Refusal refused;
  ConfigValues named;
  const auto alter = [&](const ConfigValues& present) -> std::optional<ConfigValues> {
    ConfigValues values = resource.replaces ? ConfigValues() : present;
    refused = apply_to_group(resource.changes, catalog->config(), values);
    if (refused || validate_only) return std::nullopt;
    for (const ConfigChange& one : resource.changes)
      if (const auto at = values.find(one.name); at != values.end()) named.insert(*at);
    return values;
  };
  const auto altered = co_await broker.catalog().alter_group(resource.name, alter);
  if (altered.has_error()) co_return refuse_resource(altered.error());
  log_group_settings_without_effect(resource.name, named);
  co_return refused;
}

Refusal change_loggers(const Broker& broker, const ResourceChange& resource, bool validate_only) {
  if (resource.replaces)
    return refuse_resource(
        ErrorCode::invalid_request,
        "the levels of loggers are changed one by one (IncrementalAlterConfigs)");
  if (auto refused = check_node(resource.name, broker.node_id())) return refused;
  const auto levels = base::logger_levels();
  for (const ConfigChange& one : resource.changes) {
    if (one.operation == ConfigOperation::append || one.operation == ConfigOperation::subtract)
      return refuse_resource(ErrorCode::invalid_request, "the level of a logger is no list");
    if (!levels.contains(one.name))
      return refuse_resource(ErrorCode::invalid_config,
                             fmt::format("there is no logger named '{}'", one.name));
    if (one.name == "root" && one.operation == ConfigOperation::remove)
      return refuse_resource(ErrorCode::invalid_request, "the root logger needs a level");
    constexpr std::string_view known[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    if (one.operation == ConfigOperation::set &&
        std::ranges::find(known, *one.value) == std::end(known))
      return refuse_resource(
          ErrorCode::invalid_config,
          fmt::format("'{}' is no level for {}: use TRACE, DEBUG, INFO, WARN, ERROR or "
                      "FATAL",
                      *one.value, one.name));
  }
  if (validate_only) return std::nullopt;
  for (const ConfigChange& one : resource.changes)
    base::set_logger_level(one.name,
                           one.operation == ConfigOperation::set ? one.value : std::nullopt);
  return std::nullopt;
}

Task<Refusal> change(Broker& broker, Shard& shard, ResourceChange resource, bool validate_only) {
  if (auto refused = check_changes(resource.changes)) co_return refused;
  switch (static_cast<ResourceType>(resource.type)) {
    case ResourceType::topic:
      co_return co_await change_topic(broker, shard, std::move(resource), validate_only);
    case ResourceType::broker:
      co_return co_await change_broker(broker, shard, std::move(resource), validate_only);
    case ResourceType::group:
      co_return co_await change_group(broker, shard, std::move(resource), validate_only);
    case ResourceType::broker_logger:
      co_return change_loggers(broker, resource, validate_only);
    default:
      break;
  }
  co_return refuse_resource(
      ErrorCode::invalid_request,
      fmt::format("resources of type {} have no settings that could be changed here",
                  resource.type));
}

}  // namespace

bool is_known_resource(std::int8_t type) {
  switch (static_cast<ResourceType>(type)) {
    case ResourceType::topic:
    case ResourceType::broker:
    case ResourceType::broker_logger:
    case ResourceType::client_metrics:
    case ResourceType::group:
    case ResourceType::mirror:
      return true;
  }
  return false;
}

Task<std::vector<Refusal>> change_resources(Broker& broker, Shard& shard,
                                            std::vector<ResourceChange> resources,
                                            bool validate_only) {
  std::map<std::pair<std::int8_t, std::string>, int> times;
  for (const ResourceChange& one : resources) ++times[{one.type, one.name}];
  std::vector<Refusal> outcomes;
  for (ResourceChange& one : resources) {
    if (times[{one.type, one.name}] > 1)
      outcomes.push_back(refuse_resource(ErrorCode::invalid_request,
                                         "the resource stands in the request more than once"));
    else
      outcomes.push_back(co_await change(broker, shard, std::move(one), validate_only));
  }
  co_return outcomes;
}

}  // namespace broker::api
