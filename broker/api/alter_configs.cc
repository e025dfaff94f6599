// AlterConfigs, versions 0 to 2: what is not named goes back to its default. Topics and brokers;
// clients since 2.3 use IncrementalAlterConfigs instead.
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
  protocol::AlterConfigsResponse response;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto& answer = response.responses.emplace_back();
    answer.resource_type = message->resources[i].resource_type;
    answer.resource_name = message->resources[i].resource_name;
    answer.error_message.reset();
    if (!outcomes[i]) continue;
    answer.error_code = static_cast<std::int16_t>(outcomes[i]->code);
    answer.error_message = outcomes[i]->message;
  }
  co_return respond(request, response);
}

}  // namespace broker::api
