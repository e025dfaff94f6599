// What clients of the classic protocol put into the opaque bytes of JoinGroup and SyncGroup when
// they are consumers: Kafka's ConsumerProtocol, versions 0 to 3. Later versions only add at the
// end.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"

namespace broker::groups::consumer {

using NamedPartitions = std::map<std::string, std::set<std::int32_t>, std::less<>>;

struct EmbeddedSubscription {
  std::int16_t version = 0;
  std::vector<std::string> topics;
  std::optional<base::Buffer> user_data;
  NamedPartitions owned;            // 1+
  std::int32_t generation = -1;     // 2+
  std::optional<std::string> rack;  // 3+
};
struct EmbeddedAssignment {
  std::int16_t version = 0;
  NamedPartitions partitions;
  std::optional<base::Buffer> user_data;
};

// Nothing: malformed.
std::optional<EmbeddedSubscription> parse_embedded_subscription(base::Bytes bytes);
std::optional<EmbeddedAssignment> parse_embedded_assignment(base::Bytes bytes);
base::Buffer encode_embedded(const EmbeddedSubscription& subscription);
base::Buffer encode_embedded(const EmbeddedAssignment& assignment);

}  // namespace broker::groups::consumer
