// Records of `__mirror_state` (KIP-1279 c.1). Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mirror/machine.h"
#include "mirror/target.h"

namespace mirror {

struct PartitionKey {
  std::string mirror;
  base::TopicPartition partition;
  auto operator<=>(const PartitionKey&) const = default;
};

// As a Java string hash, over `mirror:topicId:partition`.
std::int32_t state_partition_of(const PartitionKey& key, std::int32_t partition_count);

// What is kept of one partition beside the machine's record.
struct StoredState {
  Record record;
  LeaderEpoch leader_epoch = 0;  // of the partition here, when it was written
  std::int32_t state_epoch = 0;  // grows with each write
};

// Both records, in one batch: the state, and the last mirror position or its tombstone (left out
// where there is nothing to take away).
std::vector<Target::StateRecord> encode_state(const PartitionKey& key, const StoredState& state,
                                              bool had_position);
// Tombstones of both, the state's first.
std::vector<Target::StateRecord> encode_forgotten(const PartitionKey& key);

struct StateChange {
  PartitionKey key;
  std::optional<StoredState> state;  // absent: tombstone. Its record's position means nothing
};
struct PositionChange {
  PartitionKey key;
  std::optional<Position> position;  // absent: tombstone
};
struct Unreadable {
  bool foreign_type = false;  // a record of a type that we do not know: not ours to judge
};
using StateRecordChange = std::variant<Unreadable, StateChange, PositionChange>;
StateRecordChange decode_state(base::Bytes key, std::optional<base::Bytes> value);

}  // namespace mirror
