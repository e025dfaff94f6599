// Which of the source's committed group offsets are to be committed here, and as what (KIP-1279
// j.3). Pure: group_rounds.h asks the source and commits.
//
// A committed offset must never be ahead of what is durable here: a consumer that failed over to it
// would find it out of range and reset. So it is clamped to the copy, and raised in a later round
// when the copy has grown. Nothing is ever deleted here because it vanished at the source: groups
// and offsets expire there while the copy may be all that is left.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mirror/group_offsets.h"
#include "mirror/states.h"

namespace mirror {

// A partition of the mirror, as far as its offsets are concerned.
struct GroupPartition {
  base::TopicPartition id = {};
  base::Offset log_start = 0;
  base::Offset durable_end = 0;
  // Of the record before durable_end; absent: none, or not known.
  std::optional<base::LeaderEpoch> end_epoch = {};
  base::LeaderEpoch leader_epoch = 0;  // of the partition here
};
// By topic name and partition number: those whose offsets may be taken over now.
using GroupPartitions = std::map<std::pair<std::string, std::int32_t>, GroupPartition>;

// Whether the periodic rounds take over offsets of a partition in this state. In the others the log
// may be about to be cut, or the offsets here are its consumers' own.
bool takes_offsets(MirrorState state);

// Whether a group that the source lists has offsets of consumers: neither a share group nor, say,
// the workers of Kafka Connect. `type` is empty before ListGroups v5 (Kafka 3.8).
bool is_consumer_group(std::string_view protocol_type, std::string_view type);

// What a group that committed `source` is given here.
CommittedOffset clamped(const CommittedOffset& source, const GroupPartition& here);

// What was committed here so far, so that a round commits only what changed. In memory only: the
// first round after a start commits everything once more.
class GroupMemory {
 public:
  bool holds(const std::string& group, const base::TopicPartition& id,
             const CommittedOffset& committed) const;
  // It was renewed too long ago.
  bool is_due(const std::string& group, std::int64_t now_ms) const;
  void remember(const GroupCommit& done, std::int64_t now_ms);
  void forget(const std::string& group) { groups_.erase(group); }
  // The partition is not mirrored any more: what the groups have there is their own from now on.
  void forget(const base::TopicPartition& id);

 private:
  struct Value {
    base::Offset offset = 0;
    base::LeaderEpoch leader_epoch = -1;
    std::size_t metadata_hash = 0;
    bool operator==(const Value&) const = default;
  };
  struct Group {
    std::map<base::TopicPartition, Value> offsets;
    std::int64_t renewed_at_ms = 0;
  };
  static Value value_of(const CommittedOffset& committed);

  std::map<std::string, Group> groups_;
};

// A group whose offsets do not move at the source would expire here, where it has no members, and
// what was deleted here by hand would stay away: everything is committed anew this often.
constexpr std::int64_t group_renewal_ms = 3'600'000;

struct GroupProgress {
  std::int32_t offsets = 0;  // of partitions that are mirrored
  std::int32_t clamped = 0;  // of these, not yet what the source has
  base::Offset behind = 0;   // records by which they are short, in all
  bool operator==(const GroupProgress&) const = default;
};
struct PlannedGroup {
  GroupProgress progress = {};
  GroupCommit commit = {};  // without offsets: nothing changed
};

// One for each group, in order.
std::vector<PlannedGroup> plan_groups(const std::vector<SourceGroup>& groups,
                                      const GroupPartitions& here, const GroupMemory& memory,
                                      std::int64_t now_ms);

}  // namespace mirror
