// DescribeConfigs, versions 1 to 4. Resources: topics (2), this broker or what was set for all of
// them (4), its loggers (8), groups (32), mirrors (64, KIP-1279). v1 adds the source of a value and
// its synonyms, v3 type and documentation. As in Kafka, a resource type that does not exist fails
// the whole request, and an empty list of keys is all keys.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "broker/api/config_resource.h"
#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "broker/group_settings.h"
#include "broker/topic_config.h"
#include "protocol/base/log.h"
#include "protocol/error_code.h"
#include "protocol/messages/describe_configs.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeConfigsRequest;
using protocol::DescribeConfigsResponse;
using protocol::ErrorCode;
using Resource = DescribeConfigsRequest::Resource;
using ResourceResult = DescribeConfigsResponse::Result;
using Shown = DescribeConfigsResponse::Result::Config;

ResourceResult empty_result(const Resource& resource) {
  ResourceResult result;
  result.resource_type = resource.resource_type;
  result.resource_name = resource.resource_name;
  return result;
}

ResourceResult failed(const Resource& resource, ErrorCode code, std::string message) {
  ResourceResult result = empty_result(resource);
  result.error_code = static_cast<std::int16_t>(code);
  result.error_message = std::move(message);
  return result;
}

bool is_asked_for(const Resource& resource, std::string_view key) {
  return !resource.configuration_keys || resource.configuration_keys->empty() ||
         std::ranges::find(*resource.configuration_keys, key) != resource.configuration_keys->end();
}

// Values that must not be told: a name is enough to say so, whatever the kind of resource.
bool is_secret(std::string_view name) {
  return name.find("password") != std::string_view::npos || name == "sasl.jaas.config" ||
         name == "ssl.keystore.key";
}

struct Included {
  bool synonyms = false;
  bool documentation = false;
};

Shown shown(std::string_view name, std::optional<std::string> value, ConfigSource source,
            ConfigType type, Included wanted, std::string documentation) {
  Shown config;
  config.name = name;
  config.is_sensitive = is_secret(name);
  if (!config.is_sensitive) {
    config.value = std::move(value);
  } else {
    config.value.reset();
  }
  config.config_source = static_cast<std::int8_t>(source);
  config.config_type = static_cast<std::int8_t>(type);
  if (wanted.documentation) {
    config.documentation = std::move(documentation);
  } else {
    config.documentation.reset();
  }
  return config;
}

void add_synonyms(Shown& config, const std::vector<ConfigSynonym>& synonyms) {
  for (const ConfigSynonym& one : synonyms) {
    Shown::Synonym synonym;
    synonym.name = one.name;
    synonym.value = one.value;
    if (config.is_sensitive) synonym.value.reset();
    synonym.source = static_cast<std::int8_t>(one.source);
    config.synonyms.push_back(std::move(synonym));
  }
}

ResourceResult describe_topic(const Resource& resource, const Snapshot& catalog,
                              const Config& config, Included wanted) {
  if (!is_valid_topic_name(resource.resource_name))
    return failed(resource, ErrorCode::invalid_topic_exception,
                  fmt::format("'{}' is no topic name", resource.resource_name));
  const TopicPtr topic = catalog.find(resource.resource_name);
  if (!topic) return failed(resource, ErrorCode::unknown_topic_or_partition, "");
  ResourceResult result = empty_result(resource);
  for (const TopicSetting& setting : topic_settings()) {
    if (!is_asked_for(resource, setting.name)) continue;
    const EffectiveValue effective = effective_value(setting, topic->configs, config);
    Shown line = shown(setting.name, effective.value, effective.source, setting.type, wanted,
                       documentation(setting));
    if (wanted.synonyms) add_synonyms(line, effective.synonyms);
    result.configs.push_back(std::move(line));
  }
  return result;
}

std::optional<ResourceResult> wrong_broker(const Resource& resource, base::NodeId here) {
  const std::string& name = resource.resource_name;
  base::NodeId node = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), node);
  if (error != std::errc() || stop != name.data() + name.size())
    return failed(resource, ErrorCode::invalid_request,
                  fmt::format("'{}' is no broker id: give a number", name));
  if (node != here)
    return failed(resource, ErrorCode::invalid_request,
                  fmt::format("this is broker {}, not {}: ask that one", here, node));
  return std::nullopt;
}

// The empty name asks for what was set for all brokers at run time, and for nothing else.
ResourceResult describe_all_brokers(const Resource& resource, const Config& config,
                                    Included wanted) {
  ResourceResult result = empty_result(resource);
  for (const auto& [name, value] : config.of_cluster()) {
    if (!is_asked_for(resource, name)) continue;
    const Setting& setting = *find_setting(name);
    Shown line = shown(name, value, ConfigSource::dynamic_cluster, setting.type, wanted,
                       std::string(setting.sentence));
    if (wanted.synonyms) add_synonyms(line, {{name, value, ConfigSource::dynamic_cluster}});
    result.configs.push_back(std::move(line));
  }
  return result;
}

ResourceResult describe_broker(const Resource& resource, const Config& config, Included wanted) {
  if (resource.resource_name.empty()) return describe_all_brokers(resource, config, wanted);
  if (auto wrong = wrong_broker(resource, config.node_id())) return *wrong;
  ResourceResult result = empty_result(resource);
  for (const Setting& setting : settings()) {
    if (!is_asked_for(resource, setting.name)) continue;
    const auto synonyms = config.synonyms(setting_synonyms(setting.name), setting.name);
    Shown line = shown(setting.name, config.value(setting.name),
                       synonyms.empty() ? ConfigSource::fallback : synonyms[0].source, setting.type,
                       wanted, std::string(setting.sentence));
    line.read_only = !setting.dynamic;
    if (wanted.synonyms) add_synonyms(line, synonyms);
    result.configs.push_back(std::move(line));
  }
  return result;
}

ResourceResult describe_group_settings(const Resource& resource, const Snapshot& catalog,
                                       Included wanted) {
  if (resource.resource_name.empty())
    return failed(resource, ErrorCode::invalid_request, "name a group: '' is none");
  static const ConfigValues nothing;
  const auto at = catalog.groups()->find(resource.resource_name);
  const ConfigValues& own = at == catalog.groups()->end() ? nothing : at->second;
  ResourceResult result = empty_result(resource);
  for (const GroupSetting& one : group_settings()) {
    const Setting& setting = one.setting;
    if (!is_asked_for(resource, setting.name)) continue;
    if (!one.shown_unset && !own.contains(setting.name)) continue;
    const EffectiveValue effective = effective_value(one, own, catalog.config());
    std::string sentence(setting.sentence);
    if (!one.acts) sentence += " This broker does not act on it.";
    Shown line = shown(setting.name, effective.value, effective.source, setting.type, wanted,
                       std::move(sentence));
    if (wanted.synonyms) add_synonyms(line, effective.synonyms);
    result.configs.push_back(std::move(line));
  }
  return result;
}

ResourceResult describe_loggers(const Resource& resource, base::NodeId node) {
  if (auto wrong = wrong_broker(resource, node)) return *wrong;
  ResourceResult result = empty_result(resource);
  for (const auto& [name, level] : base::logger_levels()) {
    if (!is_asked_for(resource, name)) continue;
    Shown line;
    line.name = name;
    line.value = level;
    line.config_source = static_cast<std::int8_t>(ConfigSource::logger);
    result.configs.push_back(std::move(line));
  }
  return result;
}

// The definition as it was given; what was not set has the defaults of KIP-1279.
ResourceResult describe_mirror(const Resource& resource, const Snapshot& catalog, Included wanted) {
  const MirrorPtr mirror = catalog.mirror(resource.resource_name);
  if (!mirror)
    return failed(
        resource, ErrorCode::invalid_request,
        fmt::format("there is no mirror '{}': 'calque mirror list' shows those that there are",
                    resource.resource_name));
  constexpr std::int8_t dynamic_mirror_config = 1;  // set by the operator, at run time
  ResourceResult result = empty_result(resource);
  for (const auto& [name, value] : mirror->configs) {
    if (!is_asked_for(resource, name)) continue;
    result.configs.push_back(shown(name, value, static_cast<ConfigSource>(dynamic_mirror_config),
                                   ConfigType::text, wanted, {}));
  }
  return result;
}

ResourceResult describe(const Resource& resource, const Snapshot& catalog, Included wanted) {
  const Config& config = catalog.config();
  switch (static_cast<ResourceType>(resource.resource_type)) {
    case ResourceType::topic:
      return describe_topic(resource, catalog, config, wanted);
    case ResourceType::broker:
      return describe_broker(resource, config, wanted);
    case ResourceType::broker_logger:
      return describe_loggers(resource, config.node_id());
    case ResourceType::group:
      return describe_group_settings(resource, catalog, wanted);
    case ResourceType::mirror:
      return describe_mirror(resource, catalog, wanted);
    default:
      break;
  }
  return failed(
      resource, ErrorCode::invalid_request,
      fmt::format("resources of type {} have no settings here: ask for topics, brokers, groups or "
                  "mirrors",
                  resource.resource_type));
}

}  // namespace

Task<Response> describe_configs(Broker&, Shard& shard, Request request) {
  const auto message = decode_request<DescribeConfigsRequest>(request);
  if (!message) co_return malformed();
  const bool sound =
      std::ranges::all_of(message->resources, is_known_resource, &Resource::resource_type);
  const Included wanted{.synonyms = message->include_synonyms,
                        .documentation = message->include_documentation};
  DescribeConfigsResponse response;
  for (const Resource& resource : message->resources) {
    response.results.push_back(
        sound ? describe(resource, *shard.catalog(), wanted)
              : failed(resource, ErrorCode::invalid_request,
                       "the request names a resource type that does not exist"));
  }
  co_return respond(request, response);
}

}  // namespace broker::api
