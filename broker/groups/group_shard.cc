// Timers, what is shown of groups, and how groups end.
#include <algorithm>
#include <cctype>
#include <utility>

#include "broker/groups/consumer/records.h"
#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

constexpr std::string_view classic_type = "classic";
constexpr std::string_view consumer_type = "consumer";

std::string lower_and_trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool lets_through(const std::vector<std::string>& filter, std::string_view value) {
  if (filter.empty()) return true;
  const std::string wanted = lower_and_trimmed(value);
  return std::ranges::any_of(
      filter, [&](const std::string& one) { return lower_and_trimmed(one) == wanted; });
}

}  // namespace

ClassicGroup* GroupShard::classic(std::string_view id) {
  const auto at = groups_.find(id);
  return at == groups_.end() ? nullptr : std::get_if<ClassicGroup>(&at->second);
}

const ClassicGroup* GroupShard::classic(std::string_view id) const {
  const auto at = groups_.find(id);
  return at == groups_.end() ? nullptr : std::get_if<ClassicGroup>(&at->second);
}

std::optional<Decision> GroupShard::expire(Now now) {
  const std::optional<TimerKey> due = timers_.take_due(now.monotonic_ms);
  if (!due) return std::nullopt;
  const bool whole = due->kind == TimerKey::Kind::changed_whole;
  if (whole || due->kind == TimerKey::Kind::changed)
    return protocol_changed(due->group, whole, now);
  if (consumer_group(due->group)) return consumer_timeout(*due, now);
  Decision out;
  ClassicGroup* group = classic(due->group);
  if (!group) return out;
  switch (due->kind) {
    case TimerKey::Kind::member:
      session_over(*group, due->member, now, out);
      break;
    case TimerKey::Kind::join:
      if (!group->is_in(ClassicState::preparing_rebalance)) break;
      if (group->initial_rebalance)
        initial_delay_over(*group, now, out);
      else
        complete_join(*group, now, out);
      break;
    case TimerKey::Kind::sync:
      sync_overdue(*group, now, out);
      break;
    default:
      break;  // it was of the other protocol when this was set
  }
  return out;
}

std::optional<DescribedGroup> GroupShard::describe(const std::string& id) const {
  const ClassicGroup* group = classic(id);
  if (!group) return std::nullopt;
  DescribedGroup out;
  out.state = name_of(group->state);
  out.protocol_type = group->protocol_type.value_or("");
  // The rest is of a generation that is over, or not there yet.
  const bool stable = group->is_in(ClassicState::stable);
  if (stable) out.protocol = group->protocol.value_or("");
  for (const auto& [name, member] : group->members()) {
    DescribedGroup::Member& to = out.members.emplace_back();
    to.id = name;
    to.instance_id = member.instance_id;
    to.client_id = member.client_id;
    to.client_host = member.client_host;
    to.assignment = member.assignment;
    const base::Buffer* metadata = stable ? member.metadata(out.protocol) : nullptr;
    if (metadata) to.metadata = *metadata;
  }
  return out;
}

std::vector<ListedGroup> GroupShard::list(const std::vector<std::string>& states,
                                          const std::vector<std::string>& types) const {
  std::vector<ListedGroup> out;
  for (const auto& [id, slot] : groups_) {
    ListedGroup one{id, std::string(consumer_protocol_type), "", std::string(consumer_type)};
    if (const auto* group = std::get_if<consumer::ConsumerGroup>(&slot)) {
      one.state = consumer::name_of(group->state());
    } else {
      one.protocol_type = std::get<ClassicGroup>(slot).protocol_type.value_or("");
      one.state = name_of(std::get<ClassicGroup>(slot).state);
      one.type = classic_type;
    }
    if (lets_through(states, one.state) && lets_through(types, one.type))
      out.push_back(std::move(one));
  }
  return out;
}

Decided<ErrorCode> GroupShard::delete_group(const std::string& id) {
  Decided<ErrorCode> out;
  const ClassicGroup* group = classic(id);
  const consumer::ConsumerGroup* modern = consumer_group(id);
  if (!group && !modern) {
    out.answer = ErrorCode::group_id_not_found;
    return out;
  }
  if (group ? !group->is_in(ClassicState::empty) : !modern->members().empty()) {
    out.answer = ErrorCode::non_empty_group;
    return out;
  }
  if (const TopicOffsets* topics = offsets_.find(id)) {
    for (const auto& [topic, partitions] : *topics)
      for (const auto& [partition, offset] : partitions)
        out.records.push_back(offset_tombstone(id, topic, partition));
  }
  if (const PendingOffsets::Topics* topics = pending_.find(id)) {
    for (const auto& [topic, partitions] : *topics)
      for (const auto& [partition, producers] : partitions)
        if (!offsets_.find(id, topic, partition))
          out.records.push_back(offset_tombstone(id, topic, partition));
  }
  if (modern)
    consumer::add_group_tombstones(out.records, *modern);
  else
    out.records.push_back(classic_group_tombstone(id));  // last: C10
  return out;
}

Decision GroupShard::clean(Now now) {
  Decision out;
  for (const auto& [id, slot] : groups_) {
    const bool nothing_left = drop_expired(id, slot, now, out);
    if (const auto* modern = std::get_if<consumer::ConsumerGroup>(&slot)) {
      if (nothing_left && modern->members().empty())
        consumer::add_group_tombstones(out.records, *modern);
      continue;
    }
    const auto& group = std::get<ClassicGroup>(slot);
    if (nothing_left && group.is_in(ClassicState::empty) && group.pending.empty())
      out.records.push_back(classic_group_tombstone(id));
  }
  return out;
}

Decision GroupShard::forget_topic(const std::string& topic) {
  Decision out;
  for (const auto& [group, topics] : offsets_.groups()) {
    const auto at = topics.find(topic);
    if (at == topics.end()) continue;
    for (const auto& [partition, offset] : at->second)
      out.records.push_back(offset_tombstone(group, topic, partition));
  }
  for (const auto& [group, topics] : pending_.groups()) {
    const auto at = topics.find(topic);
    if (at == topics.end()) continue;
    for (const auto& [partition, producers] : at->second)
      if (!offsets_.find(group, topic, partition))
        out.records.push_back(offset_tombstone(group, topic, partition));
  }
  return out;
}

}  // namespace broker::groups
