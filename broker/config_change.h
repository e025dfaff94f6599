// Changes of settings that clients ask for: what AlterConfigs and IncrementalAlterConfigs have in
// common. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/config.h"
#include "broker/topic_config.h"
#include "protocol/error_code.h"

namespace broker {

// The numbers of IncrementalAlterConfigs.
enum class ConfigOperation : std::int8_t { set = 0, remove = 1, append = 2, subtract = 3 };

struct ConfigChange {
  std::string name;
  ConfigOperation operation = ConfigOperation::set;
  std::optional<std::string> value;
};

struct ConfigRefusal {
  protocol::ErrorCode code = protocol::ErrorCode::none;
  std::string message;
};

// Whatever the resource: each key once, a known operation, a value where one is needed.
std::optional<ConfigRefusal> check_changes(const std::vector<ConfigChange>& changes);

// All of the changes, or a refusal and `configs` as they were. `broker`: what lists are appended to
// that the topic does not set itself.
std::optional<ConfigRefusal> apply_to_topic(const std::vector<ConfigChange>& changes,
                                            const Config& broker, TopicConfigs& configs);
// Kafka takes none of a group's settings for a list, and says so before all else.
std::optional<ConfigRefusal> check_group_operations(const std::vector<ConfigChange>& changes);
// Settings of one group, which may hold what the broker allows.
std::optional<ConfigRefusal> apply_to_group(const std::vector<ConfigChange>& changes,
                                            const Config& broker, ConfigValues& values);
// Settings of the broker: those that may change while it runs.
std::optional<ConfigRefusal> apply_to_broker(const std::vector<ConfigChange>& changes,
                                             const Config& broker, ConfigValues& values);

}  // namespace broker
