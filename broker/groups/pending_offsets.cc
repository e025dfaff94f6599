#include "broker/groups/pending_offsets.h"

#include <utility>

#include "protocol/base/check.h"

namespace broker::groups {

void PendingOffsets::stage(base::ProducerId producer, const std::string& group,
                           const std::string& topic, std::int32_t partition,
                           CommittedOffset offset) {
  by_producer_[producer].put(group, topic, partition, std::move(offset));
  groups_[group][topic][partition].insert(producer);
}

OffsetTable PendingOffsets::take(base::ProducerId producer) {
  const auto at = by_producer_.find(producer);
  if (at == by_producer_.end()) return {};
  OffsetTable staged = std::move(at->second);
  by_producer_.erase(at);
  for (const auto& [group, topics] : staged.groups())
    for (const auto& [topic, partitions] : topics)
      for (const auto& [partition, offset] : partitions) drop(group, topic, partition, producer);
  return staged;
}

void PendingOffsets::forget(const std::string& group, const std::string& topic,
                            std::int32_t partition) {
  if (!has(group, topic, partition)) return;
  const std::set<base::ProducerId> producers = groups_[group][topic][partition];
  for (const base::ProducerId producer : producers) {
    const auto at = by_producer_.find(producer);
    CHECK(at != by_producer_.end());
    at->second.erase(group, topic, partition);
    if (at->second.count() == 0) by_producer_.erase(at);
    drop(group, topic, partition, producer);
  }
}

const PendingOffsets::Topics* PendingOffsets::find(std::string_view group) const {
  const auto at = groups_.find(group);
  return at == groups_.end() ? nullptr : &at->second;
}

bool PendingOffsets::has(std::string_view group, std::string_view topic,
                         std::int32_t partition) const {
  const Topics* topics = find(group);
  if (!topics) return false;
  const auto of_topic = topics->find(topic);
  return of_topic != topics->end() && of_topic->second.contains(partition);
}

void PendingOffsets::drop(const std::string& group, const std::string& topic,
                          std::int32_t partition, base::ProducerId producer) {
  const auto of_group = groups_.find(group);
  CHECK(of_group != groups_.end());
  const auto of_topic = of_group->second.find(topic);
  CHECK(of_topic != of_group->second.end());
  const auto at = of_topic->second.find(partition);
  CHECK(at != of_topic->second.end());
  at->second.erase(producer);
  if (at->second.empty()) of_topic->second.erase(at);
  if (of_topic->second.empty()) of_group->second.erase(of_topic);
  if (of_group->second.empty()) groups_.erase(of_group);
}

}  // namespace broker::groups
