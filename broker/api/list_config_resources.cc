// ListConfigResources, versions 0 and 1: what has settings. v0 knew client metrics only, which are
// not served here; from v1 on the types are named, none of them meaning Kafka's own five. Mirrors
// (KIP-1279) are listed when they are asked for.
#include <algorithm>
#include <set>

#include "broker/api/config_resource.h"
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/list_config_resources.gen.h"

namespace broker::api {

namespace {

using protocol::ListConfigResourcesRequest;
using protocol::ListConfigResourcesResponse;

std::set<std::int8_t> asked_types(const ListConfigResourcesRequest& asked, std::int16_t version) {
  if (version == 0) return {static_cast<std::int8_t>(ResourceType::client_metrics)};
  if (!asked.resource_types.empty())
    return {asked.resource_types.begin(), asked.resource_types.end()};
  return {static_cast<std::int8_t>(ResourceType::topic),
          static_cast<std::int8_t>(ResourceType::broker),
          static_cast<std::int8_t>(ResourceType::broker_logger),
          static_cast<std::int8_t>(ResourceType::client_metrics),
          static_cast<std::int8_t>(ResourceType::group)};
}

std::vector<std::string> names_of(ResourceType type, const Broker& broker,
                                  const Snapshot& catalog) {
  std::vector<std::string> names;
  switch (type) {
    case ResourceType::topic:
      for (const auto& [name, topic] : catalog.topics()) names.push_back(name);
      break;
    case ResourceType::mirror:
      for (const auto& [name, mirror] : catalog.mirrors()) names.push_back(name);
      break;
    case ResourceType::broker:
    case ResourceType::broker_logger:
      names.push_back(std::to_string(broker.node_id()));
      break;
    case ResourceType::group:
      for (const auto& [name, values] : *catalog.groups()) names.push_back(name);
      break;
    case ResourceType::client_metrics:
      break;
  }
  return names;
}

}  // namespace

Task<Response> list_config_resources(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<ListConfigResourcesRequest>(request);
  if (!asked) co_return malformed();
  ListConfigResourcesResponse message;
  const std::set<std::int8_t> types = asked_types(*asked, request.version());
  if (!std::ranges::all_of(types, is_known_resource)) {
    message.error_code = number(protocol::ErrorCode::unsupported_version);
    co_return respond(request, message);
  }
  for (const std::int8_t type : types)
    for (std::string& name : names_of(static_cast<ResourceType>(type), broker, *shard.catalog())) {
      auto& resource = message.config_resources.emplace_back();
      resource.resource_name = std::move(name);
      resource.resource_type = type;
    }
  co_return respond(request, message);
}

}  // namespace broker::api
