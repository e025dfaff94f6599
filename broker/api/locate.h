// Finding what a request names: shared by the handlers that speak to partitions.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "broker/broker.h"
#include "broker/error.h"
#include "broker/error_map.h"
#include "protocol/base/ids.h"
#include "protocol/error_code.h"

namespace broker::api {

// On the wire -1 is "none".
inline std::optional<base::LeaderEpoch> epoch_of(std::int32_t on_wire) {
  if (on_wire < 0) return std::nullopt;
  return on_wire;
}

inline bool has_partition(const TopicPtr& topic, std::int32_t index) {
  return topic && index >= 0 && static_cast<std::size_t>(index) < topic->partitions.size();
}

// What to answer when the catalog knows the partition and its shard does not have it: its log could
// not be opened, or the topic is being deleted this moment. Clients try again.
constexpr protocol::ErrorCode missing_partition = protocol::ErrorCode::kafka_storage_error;

inline std::int16_t number(protocol::ErrorCode code) {
  return static_cast<std::int16_t>(code);
}
inline std::int16_t number(const base::Error& error) {
  return number(kafka_error(error));
}

}  // namespace broker::api
