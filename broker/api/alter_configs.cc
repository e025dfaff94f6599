// AlterConfigs, versions 0 to 2: what is not named goes back to its default. Topics, groups and
// brokers; clients since 2.3 use IncrementalAlterConfigs instead.
#include "broker/api/config_resource.h"
#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "protocol/messages/alter_configs.gen.h"

namespace broker::api {

Task<Response> alter_configs(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<protocol::AlterConfigsRequest>(request);
  if (!message) co_return malformed();
  std::vector<ResourceChange> resources;
  for (const auto& asked : message->resources) {
    ResourceChange& resource = resources.emplace_back();
    resource.type = asked.resource_type;
    resource.name = asked.resource_name;
    resource.replaces = true;
    for (const auto& one : asked.configs)
      resource.changes.push_back({one.name, ConfigOperation::set, one.value});
  }
  const auto outcomes =
      co_await change_resources(broker, shard, std::move(resources), message->validate_only);
  co_return respond(request, tell_outcomes<protocol::AlterConfigsResponse>(*message, outcomes));
}

}  // namespace broker::api
