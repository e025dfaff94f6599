// What has settings, by the numbers of DescribeConfigs, and changing them: shared by AlterConfigs
// and IncrementalAlterConfigs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/config_change.h"
#include "broker/handler.h"

namespace broker::api {

enum class ResourceType : std::int8_t {
  topic = 2,
  broker = 4,
  broker_logger = 8,
  client_metrics = 16,
  group = 32,
  mirror = 64,  // KIP-1279
};

bool is_known_resource(std::int8_t type);

struct ResourceChange {
  std::int8_t type = 0;
  std::string name;
  std::vector<ConfigChange> changes;
  bool replaces = false;  // what is not named goes back to its default (AlterConfigs)
};

// For each the refusal, or nothing when it was done. A resource that stands there twice is refused.
Task<std::vector<std::optional<ConfigRefusal>>> change_resources(
    Broker& broker, Shard& shard, std::vector<ResourceChange> resources, bool validate_only);

// What became of the resources that were asked for, in their order.
template <class Reply, class Asked>
Reply tell_outcomes(const Asked& asked, const std::vector<std::optional<ConfigRefusal>>& outcomes) {
  Reply reply;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto& answer = reply.responses.emplace_back();
    answer.resource_type = asked.resources[i].resource_type;
    answer.resource_name = asked.resources[i].resource_name;
    answer.error_message.reset();
    if (!outcomes[i]) continue;
    answer.error_code = static_cast<std::int16_t>(outcomes[i]->code);
    answer.error_message = outcomes[i]->message;
  }
  return reply;
}

}  // namespace broker::api
