// IncrementalAlterConfigs, versions 0 and 1. Topics, groups, this broker or all of them (the
// empty name), and the levels of its loggers. Each resource changes as a whole or not at all.
#include "broker/api/config_resource.h"
#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "protocol/messages/incremental_alter_configs.gen.h"

namespace broker::api {

Task<Response> incremental_alter_configs(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<protocol::IncrementalAlterConfigsRequest>(request);
  if (!message) co_return malformed();
  std::vector<ResourceChange> resources;
  for (const auto& asked : message->resources) {
    ResourceChange& resource = resources.emplace_back();
    resource.type = asked.resource_type;
    resource.name = asked.resource_name;
    for (const auto& one : asked.configs)
      resource.changes.push_back(
          {one.name, static_cast<ConfigOperation>(one.config_operation), one.value});
  }
  const auto outcomes =
      co_await change_resources(broker, shard, std::move(resources), message->validate_only);
  co_return respond(request,
                    tell_outcomes<protocol::IncrementalAlterConfigsResponse>(*message, outcomes));
}

}  // namespace broker::api
