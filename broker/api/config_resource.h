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

}  // namespace broker::api
