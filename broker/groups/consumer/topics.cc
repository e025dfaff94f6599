#include "broker/groups/consumer/topics.h"

namespace broker::groups::consumer {
namespace {

// FNV-1a over 64 bits, and a last mixing so that short inputs reach all bits.
class TopicHash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 0x100000001b3u;
  }
  template <class Number>
  void add_number(Number n) {
    add(&n, sizeof n);
  }
  std::int64_t value() const {
    std::uint64_t h = state_;
    h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15u;
    return static_cast<std::int64_t>(h ^ (h >> 29));
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace

std::int64_t hash_of_topics(const TopicNames& names, const TopicsView& topics) {
  TopicHash hash;
  bool any = false;
  for (const std::string& name : names) {
    const std::optional<TopicFacts> topic = topics.find(name);
    if (!topic) continue;
    any = true;
    hash.add_number(static_cast<std::uint64_t>(name.size()));
    hash.add(name.data(), name.size());
    hash.add(topic->id.bytes.data(), topic->id.bytes.size());
    hash.add_number(topic->partitions);
  }
  return any ? hash.value() : 0;
}

std::size_t count_of(const Partitions& partitions) {
  std::size_t n = 0;
  for (const auto& [topic, numbers] : partitions) n += numbers.size();
  return n;
}

Partitions without_epochs(const HeldPartitions& held) {
  Partitions out;
  for (const auto& [topic, partitions] : held) {
    std::set<std::int32_t>& numbers = out[topic];
    for (const auto& [partition, epoch] : partitions) numbers.insert(partition);
  }
  return out;
}

HeldPartitions with_epoch(const Partitions& partitions, std::int32_t epoch) {
  HeldPartitions out;
  for (const auto& [topic, numbers] : partitions) {
    for (const std::int32_t partition : numbers) out[topic].emplace(partition, epoch);
  }
  return out;
}

bool contains(const HeldPartitions& held, const base::Uuid& topic, std::int32_t partition) {
  const auto at = held.find(topic);
  return at != held.end() && at->second.contains(partition);
}

}  // namespace broker::groups::consumer
