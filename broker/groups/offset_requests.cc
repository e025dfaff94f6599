// OffsetCommit, OffsetFetch, OffsetDelete, and when offsets are too old.
#include <algorithm>
#include <utility>

#include "broker/groups/consumer/offset_fence.h"
#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

// From here on a group that is not there is called so.
constexpr std::int16_t tells_missing_group_since = 9;

// What the age of a group's offsets counts from: nothing, if they do not expire now (C01).
enum class Age { none, since_commit, since_empty };

Age age_of(const Group& slot) {
  if (!std::holds_alternative<ClassicGroup>(slot)) return Age::since_commit;
  const auto& group = std::get<ClassicGroup>(slot);
  if (!group.protocol_type) return Age::since_commit;
  if (group.is_in(ClassicState::empty))
    return group.state_since_ms ? Age::since_empty : Age::since_commit;
  if (group.uses_consumer_protocol() && group.subscribed_topics() &&
      group.is_in(ClassicState::stable))
    return Age::since_commit;
  return Age::none;
}

}  // namespace

ErrorCode GroupShard::check_classic_commit(const ClassicGroup& group, const OffsetCommit& asked,
                                           ErrorCode outsider) {
  // From outside of the group: an administrator, or a consumer that assigns itself. Whatever else
  // it says of itself is of no interest (C09).
  if (asked.generation_or_epoch < 0 && group.is_in(ClassicState::empty)) return ErrorCode::none;
  const bool as_member =
      asked.generation_or_epoch >= 0 || !asked.member_id.empty() || asked.instance_id;
  if (!as_member) return outsider;
  const ErrorCode error = group.check_member(asked.member_id, asked.instance_id);
  if (error != ErrorCode::none) return error;
  return asked.generation_or_epoch == group.generation ? ErrorCode::none
                                                       : ErrorCode::illegal_generation;
}

std::vector<ErrorCode> GroupShard::check_commit(const OffsetCommit& asked,
                                                const Caller& caller) const {
  const auto all = [&asked](ErrorCode error) {
    return std::vector<ErrorCode>(asked.entries.size(), error);
  };
  const auto at = groups_.find(asked.group);
  if (at == groups_.end()) {
    // Without a member a simple group comes into being.
    if (asked.generation_or_epoch < 0) return all(ErrorCode::none);
    return all(caller.version >= tells_missing_group_since ? ErrorCode::group_id_not_found
                                                           : ErrorCode::illegal_generation);
  }
  if (const auto* group = std::get_if<ClassicGroup>(&at->second)) {
    ErrorCode error = check_classic_commit(*group, asked, ErrorCode::unknown_member_id);
    // It has heard of the new generation, and does not know yet what is assigned to it.
    if (error == ErrorCode::none && group->is_in(ClassicState::completing_rebalance))
      error = ErrorCode::rebalance_in_progress;
    return all(error);
  }
  const consumer::CommitFence fence(
      *consumer_group(asked.group),
      {asked.member_id, asked.instance_id, asked.generation_or_epoch, caller.version, false});
  std::vector<ErrorCode> each;
  for (const OffsetCommit::Entry& entry : asked.entries)
    each.push_back(fence.error_of(entry.topic_id, entry.partition));
  return each;
}

CommittedOffset GroupShard::committed(const OffsetCommit& asked, const OffsetCommit::Entry& entry,
                                      Now now) const {
  CommittedOffset offset;
  offset.offset = entry.offset;
  offset.leader_epoch = entry.leader_epoch;
  offset.metadata = entry.metadata;
  offset.commit_timestamp_ms = entry.commit_timestamp_ms.value_or(now.wall_ms);
  if (asked.retention_ms) offset.expire_timestamp_ms = now.wall_ms + *asked.retention_ms;
  offset.topic_id = entry.topic_id;
  return offset;
}

Decided<std::vector<ErrorCode>> GroupShard::commit(const OffsetCommit& asked, const Caller& caller,
                                                   Now now) {
  Decided<std::vector<ErrorCode>> out;
  out.answer = check_commit(asked, caller);
  const bool none_allowed = std::ranges::find(out.answer, ErrorCode::none) == out.answer.end();
  if (none_allowed) return out;
  // A commit is a sign of life.
  if (ClassicGroup* group = classic(asked.group)) {
    const ClassicMember* member = group->find(asked.member_id);
    if (member && !group->is_in(ClassicState::completing_rebalance))
      restart_session(*group, *member, now);
  }
  for (std::size_t i = 0; i < asked.entries.size(); ++i) {
    const OffsetCommit::Entry& entry = asked.entries[i];
    if (out.answer[i] != ErrorCode::none) continue;
    if (entry.metadata.size() > static_cast<std::size_t>(limits_.offset_metadata_bytes_max)) {
      out.answer[i] = ErrorCode::offset_metadata_too_large;
      continue;
    }
    out.records.push_back(
        offset_record(asked.group, entry.topic, entry.partition, committed(asked, entry, now)));
  }
  return out;
}

Decided<ErrorCode> GroupShard::commit_mirrored(const OffsetCommit& asked, Now now) {
  Decided<ErrorCode> out;
  const auto at = groups_.find(asked.group);
  // What would be written now would undo what a client here is about to commit.
  if (pending_.find(asked.group)) {
    out.answer = ErrorCode::non_empty_group;
    return out;
  }
  if (at != groups_.end()) {
    const auto* modern = std::get_if<consumer::ConsumerGroup>(&at->second);
    const auto* group = std::get_if<ClassicGroup>(&at->second);
    if (modern ? !modern->members().empty()
               : !group->is_in(ClassicState::empty) || !group->pending.empty()) {
      out.answer = ErrorCode::non_empty_group;
      return out;
    }
  }
  for (const OffsetCommit::Entry& entry : asked.entries) {
    CommittedOffset next = committed(asked, entry, now);
    const CommittedOffset* before = offsets_.find(asked.group, entry.topic, entry.partition);
    if (before) {
      // The sync comes again and again: what it brought before need not be written anew.
      const std::int64_t committed_ms = next.commit_timestamp_ms;
      next.record_offset = before->record_offset;
      if (!entry.commit_timestamp_ms) next.commit_timestamp_ms = before->commit_timestamp_ms;
      if (next == *before) continue;
      next.commit_timestamp_ms = committed_ms;
    }
    out.records.push_back(offset_record(asked.group, entry.topic, entry.partition, next));
  }
  return out;
}

ErrorCode GroupShard::check_fetch(const std::string& group,
                                  const std::optional<std::string>& member_id,
                                  std::int32_t member_epoch) const {
  const consumer::ConsumerGroup* modern = consumer_group(group);
  if (!modern) return ErrorCode::none;  // a classic group tells everybody
  return consumer::check_offset_fetch(*modern, member_id, member_epoch);
}

Decided<GroupShard::DeletedOffsets> GroupShard::delete_offsets(const OffsetDeletion& asked) {
  Decided<DeletedOffsets> out;
  const ClassicGroup* group = classic(asked.group);
  const consumer::ConsumerGroup* modern = consumer_group(asked.group);
  if (!group && !modern) {
    out.answer.error = ErrorCode::group_id_not_found;
    return out;
  }
  // Of a group with members it can only be told of the protocol type "consumer" what they consume.
  if (group && !group->is_in(ClassicState::empty) && !group->uses_consumer_protocol()) {
    out.answer.error = ErrorCode::non_empty_group;
    return out;
  }
  for (const OffsetDeletion::Topic& topic : asked.topics) {
    if (group ? group->is_subscribed_to(topic.name) : modern->is_subscribed_to(topic.name)) {
      out.answer.topics.push_back(ErrorCode::group_subscribed_to_topic);
      continue;
    }
    out.answer.topics.push_back(ErrorCode::none);
    for (const std::int32_t partition : topic.partitions)
      if (offsets_.find(asked.group, topic.name, partition) ||
          pending_.has(asked.group, topic.name, partition))
        out.records.push_back(offset_tombstone(asked.group, topic.name, partition));
  }
  return out;
}

// Whether no offset of the group is left, nor pending.
bool GroupShard::drop_expired(const std::string& id, const Group& slot, Now now,
                              Decision& out) const {
  const TopicOffsets* topics = offsets_.find(id);
  const bool has_pending = pending_.find(id) != nullptr;
  if (!topics) return !has_pending;
  const Age age = age_of(slot);
  if (age == Age::none) return false;
  const auto* group = std::get_if<ClassicGroup>(&slot);
  const auto* modern = std::get_if<consumer::ConsumerGroup>(&slot);
  bool nothing_left = !has_pending;
  for (const auto& [topic, partitions] : *topics) {
    const bool subscribed =
        group ? group->is_subscribed_to(topic) : modern->is_subscribed_to(topic);
    for (const auto& [partition, offset] : partitions) {
      const std::int64_t since =
          age == Age::since_empty ? *group->state_since_ms : offset.commit_timestamp_ms;
      const bool too_old = offset.expire_timestamp_ms
                               ? now.wall_ms >= *offset.expire_timestamp_ms
                               : now.wall_ms - since >= limits_.offsets_retention_ms;
      // What a transaction is about to commit is in use (C14).
      if (!subscribed && too_old && !pending_.has(id, topic, partition))
        out.records.push_back(offset_tombstone(id, topic, partition));
      else
        nothing_left = false;
    }
  }
  return nothing_left;
}

}  // namespace broker::groups
