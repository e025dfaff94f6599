// The cluster's topics as decisions on groups see them, and sets of their partitions.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "protocol/base/ids.h"

namespace broker::groups::consumer {

using Partitions = std::map<base::Uuid, std::set<std::int32_t>>;
// Of each partition the epoch of the member in which it got it.
using HeldPartitions = std::map<base::Uuid, std::map<std::int32_t, std::int32_t>>;
using TopicNames = std::set<std::string, std::less<>>;

struct TopicFacts {
  std::string name;
  base::Uuid id;
  std::int32_t partitions = 0;
};

class TopicsView {
 public:
  virtual ~TopicsView() = default;
  virtual std::optional<TopicFacts> find(std::string_view name) const = 0;
  virtual std::optional<TopicFacts> find(const base::Uuid& id) const = 0;
  virtual void for_each_name(const std::function<void(const std::string&)>& visit) const = 0;
  // Another one whenever a topic has come, also across restarts.
  virtual std::int64_t version() const = 0;
};

// Differs, but for chance, when one of the topics has come, gone, been made anew or grown. Written
// down, so never changed.
std::int64_t hash_of_topics(const TopicNames& names, const TopicsView& topics);

std::size_t count_of(const Partitions& partitions);
Partitions without_epochs(const HeldPartitions& held);
HeldPartitions with_epoch(const Partitions& partitions, std::int32_t epoch);
bool contains(const HeldPartitions& held, const base::Uuid& topic, std::int32_t partition);

}  // namespace broker::groups::consumer
