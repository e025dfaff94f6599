// DescribeConfigs, versions 1 to 4. Resources: topics (2), this broker (4), mirrors (64, KIP-1279).
// v1 adds the source of a value and its synonyms, v3 type and documentation. As in Kafka, a
// resource type that does not exist fails the whole request.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "broker/topic_config.h"
#include "protocol/error_code.h"
#include "protocol/messages/describe_configs.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeConfigsRequest;
using protocol::DescribeConfigsResponse;
using protocol::ErrorCode;
using Resource = DescribeConfigsRequest::Resource;
using Result = DescribeConfigsResponse::Result;
using Shown = DescribeConfigsResponse::Result::Config;

enum class ResourceType : std::int8_t {
  topic = 2,
  broker = 4,
  broker_logger = 8,
  client_metrics = 16,
  group = 32,
  mirror = 64,  // KIP-1279
};

bool is_known(std::int8_t type) {
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

Result empty_result(const Resource& resource) {
  Result result;
  result.resource_type = resource.resource_type;
  result.resource_name = resource.resource_name;
  return result;
}

Result failed(const Resource& resource, ErrorCode code, std::string message) {
  Result result = empty_result(resource);
  result.error_code = static_cast<std::int16_t>(code);
  result.error_message = std::move(message);
  return result;
}

bool is_asked_for(const Resource& resource, std::string_view key) {
  return !resource.configuration_keys ||
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

void add_synonym(Shown& config, std::string name, std::optional<std::string> value,
                 ConfigSource source) {
  Shown::Synonym synonym;
  synonym.name = std::move(name);
  synonym.value = std::move(value);
  synonym.source = static_cast<std::int8_t>(source);
  config.synonyms.push_back(std::move(synonym));
}

Result describe_topic(const Resource& resource, const Snapshot& catalog, const Config& config,
                      Included wanted) {
  if (!is_valid_topic_name(resource.resource_name))
    return failed(resource, ErrorCode::invalid_topic_exception,
                  fmt::format("'{}' is no topic name", resource.resource_name));
  const TopicPtr topic = catalog.find(resource.resource_name);
  if (!topic)
    return failed(resource, ErrorCode::unknown_topic_or_partition, "there is no such topic here");
  Result result = empty_result(resource);
  for (const TopicSetting& setting : topic_settings()) {
    if (!is_asked_for(resource, setting.name)) continue;
    EffectiveValue effective = effective_value(setting, topic->configs, config);
    Shown line = shown(setting.name, effective.value, effective.source, setting.type, wanted,
                       documentation(setting));
    if (wanted.synonyms)
      for (ConfigSynonym& s : effective.synonyms)
        add_synonym(line, std::move(s.name), std::move(s.value), s.source);
    result.configs.push_back(std::move(line));
  }
  return result;
}

Result describe_broker(const Resource& resource, const Config& config, Included wanted) {
  const std::string& name = resource.resource_name;
  // The empty name asks for what is set for all brokers of the cluster at run time: nothing can be.
  if (name.empty()) return empty_result(resource);
  base::NodeId node = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), node);
  if (error != std::errc() || stop != name.data() + name.size())
    return failed(resource, ErrorCode::invalid_request,
                  fmt::format("'{}' is no broker id: give a number", name));
  if (node != config.node_id())
    return failed(resource, ErrorCode::invalid_request,
                  fmt::format("this is broker {}, not {}: ask that one", config.node_id(), node));
  Result result = empty_result(resource);
  for (const Setting& setting : settings()) {
    if (!is_asked_for(resource, setting.name)) continue;
    const bool set = config.is_set(setting.name);
    const auto value = config.value(setting.name);
    const ConfigSource source = set ? ConfigSource::static_broker : ConfigSource::fallback;
    Shown line =
        shown(setting.name, value, source, setting.type, wanted, std::string(setting.sentence));
    line.read_only = !setting.dynamic;
    if (wanted.synonyms && !line.is_sensitive) {
      if (set) add_synonym(line, std::string(setting.name), value, source);
      if (setting.fallback)
        add_synonym(line, std::string(setting.name), std::string(*setting.fallback),
                    ConfigSource::fallback);
    }
    result.configs.push_back(std::move(line));
  }
  return result;
}

// The definition as it was given; what was not set has the defaults of KIP-1279.
Result describe_mirror(const Resource& resource, const Snapshot& catalog, Included wanted) {
  const MirrorPtr mirror = catalog.mirror(resource.resource_name);
  if (!mirror)
    return failed(
        resource, ErrorCode::invalid_request,
        fmt::format("there is no mirror '{}': 'calque mirror list' shows those that there are",
                    resource.resource_name));
  constexpr std::int8_t dynamic_mirror_config = 1;  // set by the operator, at run time
  Result result = empty_result(resource);
  for (const auto& [name, value] : mirror->configs) {
    if (!is_asked_for(resource, name)) continue;
    result.configs.push_back(shown(name, value, static_cast<ConfigSource>(dynamic_mirror_config),
                                   ConfigType::text, wanted, {}));
  }
  return result;
}

Result describe(const Resource& resource, const Snapshot& catalog, const Config& config,
                Included wanted) {
  switch (static_cast<ResourceType>(resource.resource_type)) {
    case ResourceType::topic:
      return describe_topic(resource, catalog, config, wanted);
    case ResourceType::broker:
      return describe_broker(resource, config, wanted);
    case ResourceType::mirror:
      return describe_mirror(resource, catalog, wanted);
    default:
      break;
  }
  return failed(
      resource, ErrorCode::invalid_request,
      fmt::format(
          "resources of type {} have no configuration here: ask for topics, brokers or mirrors",
          resource.resource_type));
}

}  // namespace

Task<Response> describe_configs(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<DescribeConfigsRequest>(request);
  if (!message) co_return malformed();
  const bool sound = std::ranges::all_of(message->resources, is_known, &Resource::resource_type);
  const Included wanted{.synonyms = message->include_synonyms,
                        .documentation = message->include_documentation};
  DescribeConfigsResponse response;
  for (const Resource& resource : message->resources) {
    response.results.push_back(
        sound ? describe(resource, *shard.catalog(), broker.config(), wanted)
              : failed(resource, ErrorCode::invalid_request,
                       "the request names a resource type that does not exist"));
  }
  co_return respond(request, response);
}

}  // namespace broker::api
