// What the groups of one partition of __consumer_offsets have committed.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "protocol/base/ids.h"

namespace broker::groups {

struct CommittedOffset {
  base::Offset offset = 0;
  std::optional<base::LeaderEpoch> leader_epoch;
  std::string metadata;
  std::int64_t commit_timestamp_ms = 0;
  // Its own, from a client that asked for a retention time; else the broker's retention holds.
  std::optional<std::int64_t> expire_timestamp_ms;
  base::Uuid topic_id;  // zero: not known
  // Of its record in __consumer_offsets: where commits inside and outside of transactions meet, the
  // later record counts, whenever its transaction ended.
  base::Offset record_offset = 0;
  bool operator==(const CommittedOffset&) const = default;
};

using PartitionOffsets = std::map<std::int32_t, CommittedOffset>;
using TopicOffsets = std::map<std::string, PartitionOffsets, std::less<>>;

class OffsetTable {
 public:
  const TopicOffsets* find(std::string_view group) const {
    const auto at = groups_.find(group);
    return at == groups_.end() ? nullptr : &at->second;
  }
  const CommittedOffset* find(std::string_view group, std::string_view topic,
                              std::int32_t partition) const {
    const TopicOffsets* topics = find(group);
    if (!topics) return nullptr;
    const auto of_topic = topics->find(topic);
    if (of_topic == topics->end()) return nullptr;
    const auto at = of_topic->second.find(partition);
    return at == of_topic->second.end() ? nullptr : &at->second;
  }
  void put(const std::string& group, const std::string& topic, std::int32_t partition,
           CommittedOffset offset) {
    const auto [at, added] = groups_[group][topic].insert_or_assign(partition, std::move(offset));
    if (added) ++count_;
  }
  void erase(const std::string& group, const std::string& topic, std::int32_t partition) {
    const auto of_group = groups_.find(group);
    if (of_group == groups_.end()) return;
    const auto of_topic = of_group->second.find(topic);
    if (of_topic == of_group->second.end()) return;
    count_ -= of_topic->second.erase(partition);
    if (of_topic->second.empty()) of_group->second.erase(of_topic);
    if (of_group->second.empty()) groups_.erase(of_group);
  }
  std::size_t count() const { return count_; }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Groups = std::unordered_map<std::string, TopicOffsets, Hash, std::equal_to<>>;
  const Groups& groups() const { return groups_; }
  bool operator==(const OffsetTable& other) const { return groups_ == other.groups_; }

 private:
  Groups groups_;
  std::size_t count_ = 0;
};

}  // namespace broker::groups
