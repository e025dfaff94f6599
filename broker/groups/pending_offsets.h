// Offsets that wait for the end of the transaction that they were committed in (KIP-98, KIP-447):
// one for each producer, group and partition of a topic, the last that was written.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "broker/groups/offset_table.h"
#include "protocol/base/ids.h"

namespace broker::groups {

class PendingOffsets {
 public:
  // For each partition of a topic those whose transactions it waits for: at least one.
  using Partitions = std::map<std::int32_t, std::set<base::ProducerId>>;
  using Topics = std::map<std::string, Partitions, std::less<>>;
  using Groups = std::map<std::string, Topics, std::less<>>;

  void stage(base::ProducerId producer, const std::string& group, const std::string& topic,
             std::int32_t partition, CommittedOffset offset);
  // The transaction ended: all that it staged, which is here no more.
  OffsetTable take(base::ProducerId producer);
  // The offset was deleted: whatever was staged before goes as well.
  void forget(const std::string& group, const std::string& topic, std::int32_t partition);

  const Groups& groups() const { return groups_; }
  // Null: nothing of the group waits.
  const Topics* find(std::string_view group) const;
  bool has(std::string_view group, std::string_view topic, std::int32_t partition) const;
  bool operator==(const PendingOffsets&) const = default;

 private:
  void drop(const std::string& group, const std::string& topic, std::int32_t partition,
            base::ProducerId producer);

  std::unordered_map<base::ProducerId, OffsetTable> by_producer_;
  Groups groups_;
};

}  // namespace broker::groups
