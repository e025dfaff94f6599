// What a record of __consumer_offsets does to the state.
#include <utility>

#include "broker/groups/consumer/records.h"
#include "broker/groups/group_shard.h"
#include "protocol/messages/group_metadata.gen.h"
#include "protocol/messages/offset_commit_record.gen.h"
#include "protocol/record_frame.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

// The key of an offset was of type 0 before Kafka 0.8.2, with the same layout.
constexpr std::int16_t legacy_offset_type = 0;

base::Buffer owned(base::Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

CommittedOffset offset_of(protocol::OffsetCommitRecordValue value) {
  CommittedOffset offset;
  offset.offset = value.offset;
  if (value.leader_epoch >= 0) offset.leader_epoch = value.leader_epoch;
  offset.metadata = std::move(value.metadata);
  offset.commit_timestamp_ms = value.commit_timestamp;
  if (value.expire_timestamp >= 0) offset.expire_timestamp_ms = value.expire_timestamp;  // C02
  offset.topic_id = value.topic_id;
  return offset;
}

// Who waits, and protocols that were not chosen, are not in the record: they are kept if the member
// is there already, and has not changed since.
ClassicMember member_of(protocol::GroupMetadataValue::MemberMetadata value,
                        const std::string& protocol, ClassicMember* before) {
  ClassicMember member;
  if (before) member = std::move(*before);
  const base::Buffer* known = member.metadata(protocol);
  if (!known || !protocol::same(base::Bytes(*known), value.subscription))
    member.protocols = {{protocol, owned(value.subscription)}};
  member.id = std::move(value.member_id);
  member.instance_id = std::move(value.group_instance_id);
  member.client_id = std::move(value.client_id);
  member.client_host = std::move(value.client_host);
  member.session_timeout_ms = value.session_timeout;
  member.rebalance_timeout_ms =
      value.rebalance_timeout < 0 ? value.session_timeout : value.rebalance_timeout;
  member.assignment = owned(value.assignment);
  return member;
}

}  // namespace

bool GroupShard::apply(base::Bytes key, std::optional<base::Bytes> value, const Place& place) {
  const std::optional<std::int16_t> type = protocol::framed_type(key);
  if (!type) return false;
  if (*type == legacy_offset_type || *type == protocol::OffsetCommitRecordKey::record_type)
    return apply_offset(key.subspan(sizeof(std::int16_t)), value, place);
  if (const std::optional<std::string> id = consumer::group_of(key))
    return apply_consumer(*id, key, value);
  protocol::GroupMetadataKey group;
  if (!protocol::unframe_key(key, group)) return false;
  if (!value) {
    if (classic(group.group)) forget_group(group.group);
    return true;
  }
  protocol::GroupMetadataValue read;
  if (!protocol::unframe_value(*value, read)) return false;
  apply_classic(group.group, std::move(read));
  return true;
}

bool GroupShard::apply_offset(base::Bytes key, std::optional<base::Bytes> value,
                              const Place& place) {
  protocol::OffsetCommitRecordKey read;
  if (!protocol::decode(key, protocol::OffsetCommitRecordKey::max_version, read)) return false;
  if (!value) {
    offsets_.erase(read.group, read.topic, read.partition);
    pending_.forget(read.group, read.topic, read.partition);
    return true;
  }
  protocol::OffsetCommitRecordValue written;
  if (!protocol::unframe_value(*value, written)) return false;
  CommittedOffset offset = offset_of(std::move(written));
  offset.record_offset = place.offset;
  // Offsets of a group that nobody ever joined: a simple group, without members and protocol type.
  if (!groups_.contains(read.group)) {
    ClassicGroup simple;
    simple.group_id = read.group;
    groups_.emplace(read.group, std::move(simple));
  }
  if (place.transaction)
    pending_.stage(*place.transaction, read.group, read.topic, read.partition, std::move(offset));
  else
    offsets_.put(read.group, read.topic, read.partition, std::move(offset));
  return true;
}

void GroupShard::apply_marker(base::ProducerId producer, bool committed) {
  const OffsetTable staged = pending_.take(producer);
  if (!committed) return;
  for (const auto& [group, topics] : staged.groups()) {
    for (const auto& [topic, partitions] : topics) {
      for (const auto& [partition, offset] : partitions) {
        // Compaction keeps the record that was written last, so that one has to count (C14).
        const CommittedOffset* known = offsets_.find(group, topic, partition);
        if (!known || known->record_offset < offset.record_offset)
          offsets_.put(group, topic, partition, offset);
      }
    }
  }
}

void GroupShard::apply_classic(const std::string& id, protocol::GroupMetadataValue value) {
  Group& slot = groups_[id];
  if (!std::holds_alternative<ClassicGroup>(slot)) slot.emplace<ClassicGroup>();
  ClassicGroup& group = std::get<ClassicGroup>(slot);
  group.group_id = id;
  group.generation = value.generation;
  group.protocol_type.reset();
  if (!value.protocol_type.empty()) group.protocol_type = value.protocol_type;
  group.protocol = value.protocol;
  group.state_since_ms.reset();
  if (value.current_state_timestamp >= 0) group.state_since_ms = value.current_state_timestamp;
  group.state = value.members.empty() ? ClassicState::empty : ClassicState::stable;

  ClassicGroup::Members before;
  before.swap(group.members());
  group.forget_members();
  for (auto& one : value.members) {
    const auto known = before.find(one.member_id);
    group.add(member_of(std::move(one), value.protocol.value_or(""),
                        known == before.end() ? nullptr : &known->second));
  }
  group.awaits_rebalance = !value.leader && !group.members().empty();
  group.leader.reset();
  if (value.leader && group.find(*value.leader))
    group.leader = value.leader;
  else if (!group.members().empty())
    group.leader = group.members().begin()->first;
  group.find_subscribed_topics();
}

void GroupShard::forget_group(const std::string& id) {
  if (ClassicGroup* group = classic(id)) {
    for (const auto& [member, ignored] : group->members()) stop_session(*group, member);
    for (const std::string& member : group->pending) stop_session(*group, member);
    timers_.cancel({TimerKey::Kind::join, id, {}});
    timers_.cancel({TimerKey::Kind::sync, id, {}});
  }
  if (const consumer::ConsumerGroup* group = consumer_group(id)) stop_timers(*group);
  groups_.erase(id);
}

Decision GroupShard::loaded(Now now) {
  Decision out;
  for (auto& [id, slot] : groups_) {
    if (const auto* modern = consumer_group(id)) {
      for (const auto& timer : consumer::timers_after_load(*modern, settings_of(id)))
        set_timer(id, timer, now);
      continue;
    }
    auto* group = std::get_if<ClassicGroup>(&slot);
    for (const auto& [name, member] : group->members()) restart_session(*group, member, now);
    // The limit was lowered: those who come first stay.
    if (group->members().size() > static_cast<std::size_t>(limits_.members_max) ||
        group->awaits_rebalance)
      prepare_rebalance(*group, now, out);
  }
  return out;
}

std::vector<Reply> GroupShard::abandon(ErrorCode error) {
  std::vector<Reply> replies;
  for (auto& [id, slot] : groups_) {
    auto* group = std::get_if<ClassicGroup>(&slot);
    if (!group) continue;
    for (auto& [name, member] : group->members()) {
      if (member.joining) {
        JoinReply reply;
        reply.error = error;
        reply.member_id = name;
        replies.push_back({*std::exchange(member.joining, std::nullopt), std::move(reply)});
      }
      if (member.syncing) {
        SyncReply reply;
        reply.error = error;
        replies.push_back({*std::exchange(member.syncing, std::nullopt), std::move(reply)});
      }
    }
  }
  return replies;
}

}  // namespace broker::groups
