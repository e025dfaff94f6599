#include "broker/groups/consumer/records.h"

#include <algorithm>
#include <utility>

#include "protocol/messages/consumer_group_current_member_assignment.gen.h"
#include "protocol/messages/consumer_group_member_metadata.gen.h"
#include "protocol/messages/consumer_group_metadata.gen.h"
#include "protocol/messages/consumer_group_partition_metadata.gen.h"
#include "protocol/messages/consumer_group_regular_expression.gen.h"
#include "protocol/messages/consumer_group_target_assignment_member.gen.h"
#include "protocol/messages/consumer_group_target_assignment_metadata.gen.h"
#include "protocol/record_frame.h"

namespace broker::groups::consumer {
namespace {

using protocol::frame_key;
using protocol::frame_value;
using CurrentKey = protocol::ConsumerGroupCurrentMemberAssignmentKey;
using CurrentValue = protocol::ConsumerGroupCurrentMemberAssignmentValue;
using EpochKey = protocol::ConsumerGroupMetadataKey;
using EpochValue = protocol::ConsumerGroupMetadataValue;
using MemberKey = protocol::ConsumerGroupMemberMetadataKey;
using MemberValue = protocol::ConsumerGroupMemberMetadataValue;
using PartitionMetadataKey = protocol::ConsumerGroupPartitionMetadataKey;
using PartitionMetadataValue = protocol::ConsumerGroupPartitionMetadataValue;
using RegexKey = protocol::ConsumerGroupRegularExpressionKey;
using RegexValue = protocol::ConsumerGroupRegularExpressionValue;
using TargetEpochKey = protocol::ConsumerGroupTargetAssignmentMetadataKey;
using TargetEpochValue = protocol::ConsumerGroupTargetAssignmentMetadataValue;
using TargetKey = protocol::ConsumerGroupTargetAssignmentMemberKey;
using TargetValue = protocol::ConsumerGroupTargetAssignmentMemberValue;

template <class Key>
Record tombstone(const Key& key) {
  return {frame_key(key), std::nullopt};
}

template <class Element>
std::vector<Element> held_to_wire(const HeldPartitions& held) {
  std::vector<Element> out;
  out.reserve(held.size());
  for (const auto& [topic, partitions] : held) {
    Element& element = out.emplace_back();
    element.topic_id = topic;
    element.assignment_epochs.emplace();
    for (const auto& [partition, epoch] : partitions) {
      element.partitions.push_back(partition);
      element.assignment_epochs->push_back(epoch);
    }
  }
  return out;
}

// Kafka before 4.3 wrote no epochs: then the member's stands for all. That of a static member that
// left is negative, but no partition was ever given in such an epoch.
template <class Element>
HeldPartitions held_from_wire(const std::vector<Element>& elements, std::int32_t member_epoch) {
  HeldPartitions out;
  for (const Element& element : elements) {
    const bool told =
        element.assignment_epochs && element.assignment_epochs->size() == element.partitions.size();
    std::map<std::int32_t, std::int32_t>& held = out[element.topic_id];
    for (std::size_t i = 0; i < element.partitions.size(); ++i) {
      held[element.partitions[i]] =
          told ? (*element.assignment_epochs)[i] : std::max(member_epoch, 0);
    }
  }
  return out;
}

MemberState member_state(std::int8_t number) {
  const auto state = static_cast<MemberState>(number);
  const bool known = state == MemberState::stable || state == MemberState::unrevoked_partitions ||
                     state == MemberState::unreleased_partitions;
  return known ? state : MemberState::unknown;
}

// The member with this id, or a fresh one.
Member member_for(const ConsumerGroup& group, const std::string& member_id) {
  if (const Member* there = group.find(member_id)) return *there;
  Member fresh;
  fresh.id = member_id;
  return fresh;
}

void apply_value(ConsumerGroup& group, const EpochKey&, EpochValue& value) {
  group.epoch = value.epoch;
  group.metadata_hash = value.metadata_hash;
}
void apply_value(ConsumerGroup& group, const PartitionMetadataKey&, PartitionMetadataValue&) {
  group.has_partition_metadata = true;
}
void apply_value(ConsumerGroup& group, const MemberKey& key, MemberValue& value) {
  Member member = member_for(group, key.member_id);
  member.instance_id = std::move(value.instance_id);
  member.rack_id = std::move(value.rack_id);
  member.client_id = std::move(value.client_id);
  member.client_host = std::move(value.client_host);
  member.topics =
      TopicNames(value.subscribed_topic_names.begin(), value.subscribed_topic_names.end());
  member.regex = value.subscribed_topic_regex.value_or("");
  member.rebalance_timeout_ms = value.rebalance_timeout_ms;
  member.assignor = std::move(value.server_assignor);
  member.classic.reset();
  if (value.classic_member_metadata) {
    ClassicSide& classic = member.classic.emplace();
    classic.session_timeout_ms = value.classic_member_metadata->session_timeout_ms;
    for (auto& p : value.classic_member_metadata->supported_protocols)
      classic.protocols.push_back({std::move(p.name), base::to_buffer(p.metadata)});
  }
  group.put(std::move(member));
}
void apply_value(ConsumerGroup& group, const TargetEpochKey&, TargetEpochValue& value) {
  group.assignment_epoch = value.assignment_epoch;
  group.assigned_ms = value.assignment_timestamp;
}
void apply_value(ConsumerGroup& group, const TargetKey& key, TargetValue& value) {
  Partitions target;
  for (const auto& topic : value.topic_partitions)
    target[topic.topic_id].insert(topic.partitions.begin(), topic.partitions.end());
  group.set_target(key.member_id, std::move(target));
}
void apply_value(ConsumerGroup& group, const CurrentKey& key, CurrentValue& value) {
  Member member = member_for(group, key.member_id);
  member.epoch = value.member_epoch;
  member.previous_epoch = value.previous_member_epoch;
  member.state = member_state(value.state);
  member.assigned = held_from_wire(value.assigned_partitions, value.member_epoch);
  member.revoking = held_from_wire(value.partitions_pending_revocation, value.member_epoch);
  group.put(std::move(member));
}
void apply_value(ConsumerGroup& group, const RegexKey& key, RegexValue& value) {
  group.set_regex(key.regular_expression, {TopicNames(value.topics.begin(), value.topics.end()),
                                           value.version, value.timestamp});
}

Applied apply_tombstone(ConsumerGroup&, const EpochKey&) {
  return Applied::gone;
}
Applied apply_tombstone(ConsumerGroup& group, const PartitionMetadataKey&) {
  group.has_partition_metadata = false;
  return Applied::done;
}
Applied apply_tombstone(ConsumerGroup& group, const MemberKey& key) {
  group.remove(key.member_id);
  return Applied::done;
}
Applied apply_tombstone(ConsumerGroup& group, const TargetEpochKey&) {
  group.assignment_epoch = -1;
  group.assigned_ms = 0;
  return Applied::done;
}
Applied apply_tombstone(ConsumerGroup& group, const TargetKey& key) {
  group.remove_target(key.member_id);
  return Applied::done;
}
Applied apply_tombstone(ConsumerGroup& group, const CurrentKey& key) {
  if (const Member* there = group.find(key.member_id)) {
    Member member = *there;
    member.epoch = member.previous_epoch = leaving_epoch;
    member.assigned.clear();
    member.revoking.clear();
    group.put(std::move(member));
  }
  return Applied::done;
}
Applied apply_tombstone(ConsumerGroup& group, const RegexKey& key) {
  group.remove_regex(key.regular_expression);
  return Applied::done;
}

template <class Key, class Value>
Applied apply_as(ConsumerGroup& group, base::Bytes key_bytes,
                 const std::optional<base::Bytes>& value_bytes) {
  Key key;
  if (!protocol::unframe_key(key_bytes, key) || key.group_id != group.id())
    return Applied::malformed;
  if (!value_bytes) return apply_tombstone(group, key);
  Value value;
  if (!protocol::unframe_value(*value_bytes, value)) return Applied::malformed;
  apply_value(group, key, value);
  return Applied::done;
}

// Calls f with the key's type.
template <class F>
auto with_key_type(base::Bytes key, F f) -> decltype(f(EpochKey{}, EpochValue{})) {
  const std::optional<std::int16_t> type = protocol::framed_type(key);
  if (!type) return {};
  switch (*type) {
    case EpochKey::record_type:
      return f(EpochKey{}, EpochValue{});
    case PartitionMetadataKey::record_type:
      return f(PartitionMetadataKey{}, PartitionMetadataValue{});
    case MemberKey::record_type:
      return f(MemberKey{}, MemberValue{});
    case TargetEpochKey::record_type:
      return f(TargetEpochKey{}, TargetEpochValue{});
    case TargetKey::record_type:
      return f(TargetKey{}, TargetValue{});
    case CurrentKey::record_type:
      return f(CurrentKey{}, CurrentValue{});
    case RegexKey::record_type:
      return f(RegexKey{}, RegexValue{});
    default:
      return {};
  }
}

}  // namespace

Record member_record(const std::string& group, const Member& member) {
  MemberValue value;
  value.instance_id = member.instance_id;
  value.rack_id = member.rack_id;
  value.client_id = member.client_id;
  value.client_host = member.client_host;
  value.subscribed_topic_names.assign(member.topics.begin(), member.topics.end());
  value.subscribed_topic_regex = member.regex;
  value.rebalance_timeout_ms = member.rebalance_timeout_ms;
  value.server_assignor = member.assignor;
  value.classic_member_metadata.reset();
  if (member.classic) {
    auto& classic = value.classic_member_metadata.emplace();
    classic.session_timeout_ms = member.classic->session_timeout_ms;
    for (const ClassicProtocol& p : member.classic->protocols)
      classic.supported_protocols.push_back({p.name, p.metadata});
  }
  return {frame_key(MemberKey{group, member.id}), frame_value(value)};
}

Record epoch_record(const std::string& group, std::int32_t epoch, std::int64_t metadata_hash) {
  return {frame_key(EpochKey{group}), frame_value(EpochValue{epoch, metadata_hash})};
}

Record target_record(const std::string& group, const std::string& member_id,
                     const Partitions& target) {
  TargetValue value;
  for (const auto& [topic, partitions] : target)
    value.topic_partitions.push_back({topic, {partitions.begin(), partitions.end()}});
  return {frame_key(TargetKey{group, member_id}), frame_value(value)};
}

Record assignment_epoch_record(const std::string& group, std::int32_t epoch,
                               std::int64_t assigned_ms) {
  return {frame_key(TargetEpochKey{group}), frame_value(TargetEpochValue{epoch, assigned_ms})};
}

Record current_record(const std::string& group, const Member& member) {
  CurrentValue value;
  value.member_epoch = member.epoch;
  value.previous_member_epoch = member.previous_epoch;
  value.state = static_cast<std::int8_t>(member.state);
  value.assigned_partitions = held_to_wire<CurrentValue::AssignedPartition>(member.assigned);
  value.partitions_pending_revocation =
      held_to_wire<CurrentValue::PendingPartition>(member.revoking);
  return {frame_key(CurrentKey{group, member.id}), frame_value(value)};
}

Record regex_record(const std::string& group, const std::string& regex,
                    const ResolvedRegex& resolved) {
  RegexValue value;
  value.topics.assign(resolved.topics.begin(), resolved.topics.end());
  value.version = resolved.version;
  value.timestamp = resolved.resolved_ms;
  return {frame_key(RegexKey{group, regex}), frame_value(value)};
}

Record regex_tombstone(const std::string& group, const std::string& regex) {
  return tombstone(RegexKey{group, regex});
}

Record partition_metadata_tombstone(const std::string& group) {
  return tombstone(PartitionMetadataKey{group});
}

void add_member_tombstones(std::vector<Record>& records, const std::string& group,
                           const std::string& member_id) {
  records.push_back(tombstone(CurrentKey{group, member_id}));
  records.push_back(tombstone(TargetKey{group, member_id}));
  records.push_back(tombstone(MemberKey{group, member_id}));
}

void add_group_tombstones(std::vector<Record>& records, const ConsumerGroup& group,
                          const std::optional<RenamedMember>& renamed) {
  std::vector<std::string> ids;
  for (const auto& [id, member] : group.members())
    ids.push_back(renamed && renamed->from == id ? renamed->to : id);
  for (const std::string& id : ids) records.push_back(tombstone(CurrentKey{group.id(), id}));
  for (const std::string& id : ids) records.push_back(tombstone(TargetKey{group.id(), id}));
  records.push_back(tombstone(TargetEpochKey{group.id()}));
  for (const std::string& id : ids) records.push_back(tombstone(MemberKey{group.id(), id}));
  for (const auto& [regex, resolved] : group.regexes())
    records.push_back(regex_tombstone(group.id(), regex));
  if (group.has_partition_metadata) records.push_back(partition_metadata_tombstone(group.id()));
  records.push_back(tombstone(EpochKey{group.id()}));
}

void add_group_records(std::vector<Record>& records, const ConsumerGroup& group) {
  for (const auto& [id, member] : group.members())
    records.push_back(member_record(group.id(), member));
  records.push_back(epoch_record(group.id(), group.epoch, group.metadata_hash));
  for (const auto& [id, member] : group.members())
    records.push_back(target_record(group.id(), id, group.target_of(id)));
  records.push_back(assignment_epoch_record(group.id(), group.assignment_epoch, group.assigned_ms));
  for (const auto& [id, member] : group.members())
    records.push_back(current_record(group.id(), member));
}

std::optional<std::string> group_of(base::Bytes key) {
  const auto read = [key](auto k, const auto&) -> std::optional<std::string> {
    if (!protocol::unframe_key(key, k)) return std::nullopt;
    return k.group_id;
  };
  return with_key_type(key, read);
}

Applied apply(ConsumerGroup& group, base::Bytes key, const std::optional<base::Bytes>& value) {
  const auto one = [&](const auto& k, const auto& v) -> std::optional<Applied> {
    return apply_as<std::decay_t<decltype(k)>, std::decay_t<decltype(v)>>(group, key, value);
  };
  return with_key_type(key, one).value_or(Applied::malformed);
}

Applied apply(ConsumerGroup& group, const Record& record) {
  return apply(group, record.key,
               record.value ? std::optional<base::Bytes>(*record.value) : std::nullopt);
}

}  // namespace broker::groups::consumer
