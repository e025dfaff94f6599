// The topics that Kafka's coordinators keep their state in: internal by their names, whoever makes
// them.
#pragma once
#include <string_view>

namespace protocol {

constexpr std::string_view consumer_offsets_topic = "__consumer_offsets";
constexpr std::string_view transaction_state_topic = "__transaction_state";

constexpr bool is_coordinator_topic(std::string_view name) {
  return name == consumer_offsets_topic || name == transaction_state_topic;
}

}  // namespace protocol
