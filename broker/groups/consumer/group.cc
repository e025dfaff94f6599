#include "broker/groups/consumer/group.h"

#include <algorithm>
#include <utility>

namespace broker::groups::consumer {
namespace {

template <class Map>
void add_to_count(Map& counts, const std::string& key, std::int32_t by) {
  const auto at = counts.try_emplace(key, 0).first;
  if ((at->second += by) <= 0) counts.erase(at);
}

}  // namespace

std::string_view name_of(GroupState state) {
  switch (state) {
    case GroupState::empty:
      return "Empty";
    case GroupState::assigning:
      return "Assigning";
    case GroupState::reconciling:
      return "Reconciling";
    case GroupState::stable:
      return "Stable";
  }
  return "Unknown";
}

// ---- Subscriptions

void Subscriptions::count(const Member& member, std::int32_t by) {
  for (const std::string& topic : member.topics) {
    const auto at = topics.try_emplace(topic).first;
    at->second.members += by;
    if (at->second == Count{}) topics.erase(at);
  }
  if (!member.regex.empty()) add_to_count(regexes, member.regex, by);
  if (member.assignor) add_to_count(assignors, *member.assignor, by);
}

void Subscriptions::count(const ResolvedRegex& regex, std::int32_t by) {
  for (const std::string& topic : regex.topics) {
    const auto at = topics.try_emplace(topic).first;
    at->second.regexes += by;
    if (at->second == Count{}) topics.erase(at);
  }
}

std::int32_t Subscriptions::users_of(std::string_view regex) const {
  const auto at = regexes.find(regex);
  return at == regexes.end() ? 0 : at->second;
}

TopicNames Subscriptions::topic_names() const {
  TopicNames names;
  for (const auto& [name, count] : topics) names.insert(names.end(), name);
  return names;
}

bool Subscriptions::is_homogeneous(std::size_t members) const {
  const auto all = static_cast<std::int32_t>(members);
  if (regexes.empty()) {
    return std::ranges::all_of(topics, [all](const auto& t) { return t.second.members == all; });
  }
  // One expression for everybody, and no names beside it.
  return regexes.size() == 1 && regexes.begin()->second == all &&
         std::ranges::all_of(
             topics, [](const auto& t) { return t.second.regexes == 1 && t.second.members == 0; });
}

// ---- ConsumerGroup

const Member* ConsumerGroup::find(std::string_view member_id) const {
  const auto at = members_.find(member_id);
  return at == members_.end() ? nullptr : &at->second;
}

const Member* ConsumerGroup::static_member(std::string_view instance_id) const {
  const auto at = static_members_.find(instance_id);
  return at == static_members_.end() ? nullptr : find(at->second);
}

void ConsumerGroup::put(Member member) {
  const auto [at, is_new] = members_.try_emplace(member.id);
  if (!is_new) unindex(at->second);
  at->second = std::move(member);
  index(at->second);
}

void ConsumerGroup::remove(std::string_view member_id) {
  const auto at = members_.find(member_id);
  if (at == members_.end()) return;
  unindex(at->second);
  members_.erase(at);
}

void ConsumerGroup::index(const Member& member) {
  subscriptions_.add(member);
  if (member.instance_id) static_members_[*member.instance_id] = member.id;
  if (member.classic) ++classic_members_;
  for (const HeldPartitions* held : {&member.assigned, &member.revoking}) {
    for (const auto& [topic, partitions] : *held) {
      for (const auto& [partition, since] : partitions) holders_[topic][partition] = member.id;
    }
  }
}

// What another member has taken over stays with that one: records of a compacted log may come in
// such an order.
void ConsumerGroup::unindex(const Member& member) {
  subscriptions_.remove(member);
  if (member.instance_id) {
    const auto at = static_members_.find(*member.instance_id);
    if (at != static_members_.end() && at->second == member.id) static_members_.erase(at);
  }
  if (member.classic) --classic_members_;
  for (const HeldPartitions* held : {&member.assigned, &member.revoking}) {
    for (const auto& [topic, partitions] : *held) {
      const auto of_topic = holders_.find(topic);
      if (of_topic == holders_.end()) continue;
      for (const auto& [partition, since] : partitions) {
        const auto at = of_topic->second.find(partition);
        if (at != of_topic->second.end() && at->second == member.id) of_topic->second.erase(at);
      }
      if (of_topic->second.empty()) holders_.erase(of_topic);
    }
  }
}

const Partitions& ConsumerGroup::target_of(std::string_view member_id) const {
  static const Partitions none;
  const auto at = targets_.find(member_id);
  return at == targets_.end() ? none : at->second;
}

void ConsumerGroup::set_target(const std::string& member_id, Partitions target) {
  targets_[member_id] = std::move(target);
}

void ConsumerGroup::remove_target(std::string_view member_id) {
  const auto at = targets_.find(member_id);
  if (at != targets_.end()) targets_.erase(at);
}

const ResolvedRegex* ConsumerGroup::find_regex(std::string_view regex) const {
  const auto at = regexes_.find(regex);
  return at == regexes_.end() ? nullptr : &at->second;
}

void ConsumerGroup::set_regex(const std::string& regex, ResolvedRegex resolved) {
  remove_regex(regex);
  subscriptions_.add(resolved);
  regexes_.emplace(regex, std::move(resolved));
}

void ConsumerGroup::remove_regex(std::string_view regex) {
  const auto at = regexes_.find(regex);
  if (at == regexes_.end()) return;
  subscriptions_.remove(at->second);
  regexes_.erase(at);
}

bool ConsumerGroup::is_subscribed_to(std::string_view topic) const {
  return subscriptions_.topics.contains(topic);
}

bool ConsumerGroup::is_held(const base::Uuid& topic, std::int32_t partition) const {
  const auto at = holders_.find(topic);
  return at != holders_.end() && at->second.contains(partition);
}

GroupState ConsumerGroup::state() const {
  if (members_.empty()) return GroupState::empty;
  if (epoch > assignment_epoch) return GroupState::assigning;
  const bool all = std::ranges::all_of(
      members_, [this](const auto& m) { return m.second.is_reconciled_to(assignment_epoch); });
  return all ? GroupState::stable : GroupState::reconciling;
}

bool ConsumerGroup::operator==(const ConsumerGroup& other) const {
  return id_ == other.id_ && epoch == other.epoch && metadata_hash == other.metadata_hash &&
         assignment_epoch == other.assignment_epoch && assigned_ms == other.assigned_ms &&
         has_partition_metadata == other.has_partition_metadata && members_ == other.members_ &&
         targets_ == other.targets_ && regexes_ == other.regexes_ &&
         subscriptions_.topics == other.subscriptions_.topics &&
         subscriptions_.regexes == other.subscriptions_.regexes &&
         subscriptions_.assignors == other.subscriptions_.assignors &&
         static_members_ == other.static_members_ && holders_ == other.holders_ &&
         classic_members_ == other.classic_members_;
}

std::set<base::Uuid> subscribed_topic_ids(const Member& member,
                                          const ConsumerGroup::Regexes& regexes,
                                          const TopicsView& topics) {
  std::set<base::Uuid> ids;
  const auto add = [&](const TopicNames& names) {
    for (const std::string& name : names) {
      if (const std::optional<TopicFacts> topic = topics.find(name)) ids.insert(topic->id);
    }
  };
  add(member.topics);
  const auto resolved = regexes.find(member.regex);
  // One that has not been looked up yet stands for nothing.
  if (!member.regex.empty() && resolved != regexes.end()) add(resolved->second.topics);
  return ids;
}

}  // namespace broker::groups::consumer
