// The life of a group of the classic protocol: from one generation to the next.
//
//   empty ─ join ─► preparing_rebalance ─ all have joined, or waited long enough ─►
//   completing_rebalance ─ the leader's assignment is written ─► stable ─ a member comes, goes or
//   changes ─► preparing_rebalance …; without members preparing_rebalance ends in empty.
#include <algorithm>
#include <utility>

#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

TimerKey join_timer(const ClassicGroup& group) {
  return {TimerKey::Kind::join, group.group_id, {}};
}
TimerKey sync_timer(const ClassicGroup& group) {
  return {TimerKey::Kind::sync, group.group_id, {}};
}

void end_sync(ClassicMember& member, ErrorCode error, Decision& out) {
  if (!member.syncing) return;
  SyncReply reply;
  reply.error = error;
  out.replies.push_back({*std::exchange(member.syncing, std::nullopt), std::move(reply)});
}

}  // namespace

void GroupShard::restart_session(const ClassicGroup& group, const ClassicMember& member, Now now) {
  timers_.set({TimerKey::Kind::member, group.group_id, member.id},
              now.monotonic_ms + member.session_timeout_ms);
}

void GroupShard::stop_session(const ClassicGroup& group, const std::string& member) {
  timers_.cancel({TimerKey::Kind::member, group.group_id, member});
}

void GroupShard::prepare_or_complete(ClassicGroup& group, Now now, Decision& out) {
  if (group.is_in(ClassicState::preparing_rebalance))
    maybe_complete_join(group, now, out);
  else
    prepare_rebalance(group, now, out);
}

void GroupShard::prepare_rebalance(ClassicGroup& group, Now now, Decision& out) {
  if (group.is_in(ClassicState::completing_rebalance)) {
    for (auto& [id, member] : group.members()) {
      member.assignment.clear();
      if (member.syncing) restart_session(group, member, now);
      end_sync(member, ErrorCode::rebalance_in_progress, out);
    }
  }
  group.pending_sync.clear();
  timers_.cancel(sync_timer(group));
  group.initial_rebalance = group.is_in(ClassicState::empty);
  group.enter(ClassicState::preparing_rebalance, now.wall_ms);
  if (group.initial_rebalance) {
    // More are likely to come, one after the other: a rebalance for each would be a waste.
    group.member_added = false;
    group.delay_ms = limits_.initial_rebalance_delay_ms;
    group.delay_left_ms = std::max(group.rebalance_timeout_ms() - group.delay_ms, 0);
    timers_.set(join_timer(group), now.monotonic_ms + group.delay_ms);
    return;
  }
  if (group.all_joined())
    complete_join(group, now, out);
  else
    timers_.set(join_timer(group), now.monotonic_ms + group.rebalance_timeout_ms());
}

void GroupShard::maybe_complete_join(ClassicGroup& group, Now now, Decision& out) {
  if (group.is_in(ClassicState::preparing_rebalance) && !group.initial_rebalance &&
      group.all_joined())
    complete_join(group, now, out);
}

void GroupShard::initial_delay_over(ClassicGroup& group, Now now, Decision& out) {
  if (!group.member_added || group.delay_left_ms == 0) {
    complete_join(group, now, out);
    return;
  }
  group.member_added = false;
  const std::int32_t ran_ms = group.delay_ms;
  group.delay_ms = std::min(limits_.initial_rebalance_delay_ms, group.delay_left_ms);
  group.delay_left_ms = std::max(group.delay_left_ms - ran_ms, 0);
  timers_.set(join_timer(group), now.monotonic_ms + group.delay_ms);
}

void GroupShard::complete_join(ClassicGroup& group, Now now, Decision& out) {
  timers_.cancel(join_timer(group));
  std::vector<std::string> gone;  // static members may come back, within their session
  for (const auto& [id, member] : group.members())
    if (!member.joining && !member.instance_id) gone.push_back(id);
  for (const std::string& id : gone) remove_member(group, id, out);

  if (!group.members().empty() && !group.elect_joined_leader()) {
    // Only static members, and none has come back: wait until their sessions end.
    timers_.set(join_timer(group), now.monotonic_ms + group.rebalance_timeout_ms());
    return;
  }
  begin_generation(group, now, out);
}

void GroupShard::begin_generation(ClassicGroup& group, Now now, Decision& out) {
  ++group.generation;
  group.initial_rebalance = false;
  group.pending_sync.clear();
  if (group.members().empty()) {
    group.protocol.reset();
    group.enter(ClassicState::empty, now.wall_ms);
    group.find_subscribed_topics();
    out.records.push_back(classic_group_record(group));
    return;
  }
  group.protocol = group.select_protocol();
  group.enter(ClassicState::completing_rebalance, now.wall_ms);
  group.find_subscribed_topics();
  for (auto& [id, member] : group.members()) {
    if (member.joining) {
      JoinReply reply;
      reply.generation = group.generation;
      reply.protocol_type = group.protocol_type;
      reply.protocol_name = group.protocol;
      reply.leader = *group.leader;
      reply.member_id = id;
      if (group.is_leader(id)) reply.members = group.joined_members();
      out.replies.push_back({*std::exchange(member.joining, std::nullopt), std::move(reply)});
    }
    restart_session(group, member, now);
    member.is_new = false;
    group.pending_sync.insert(id);
  }
  timers_.set(sync_timer(group), now.monotonic_ms + group.rebalance_timeout_ms());
}

void GroupShard::drop_pending_sync(ClassicGroup& group, std::string_view member) {
  if (const auto at = group.pending_sync.find(member); at != group.pending_sync.end())
    group.pending_sync.erase(at);
  if (group.pending_sync.empty()) timers_.cancel(sync_timer(group));
}

void GroupShard::sync_overdue(ClassicGroup& group, Now now, Decision& out) {
  if (group.pending_sync.empty()) return;
  const auto overdue = group.pending_sync;
  for (const std::string& id : overdue) remove_member(group, id, out);
  prepare_rebalance(group, now, out);
}

void GroupShard::session_over(ClassicGroup& group, const std::string& id, Now now, Decision& out) {
  if (group.pending.contains(id)) {
    group.remove(id);
    if (group.is_in(ClassicState::preparing_rebalance) && group.all_joined())
      complete_join(group, now, out);
    return;
  }
  const ClassicMember* member = group.find(id);
  if (!member) return;
  // One that waits for an answer cannot send heartbeats, and gets its session anew with the
  // answer. A new one is not waited for without end: its connection may be gone (C04).
  if (!member->is_new && (member->joining || member->syncing)) return;
  remove_member(group, id, out);
  if (!group.is_in(ClassicState::preparing_rebalance))
    prepare_or_complete(group, now, out);
  else if (group.all_joined())
    complete_join(group, now, out);
}

void GroupShard::remove_member(ClassicGroup& group, const std::string& id, Decision& out) {
  stop_session(group, id);
  if (ClassicMember* member = group.find(id)) {
    if (member->joining) {
      JoinReply reply;
      reply.error = ErrorCode::unknown_member_id;
      out.replies.push_back({*member->joining, std::move(reply)});
    }
    end_sync(*member, ErrorCode::unknown_member_id, out);
  }
  group.remove(id);
}

void GroupShard::assign(ClassicGroup& group, const protocol::SyncGroupRequest& asked, Now now,
                        Decision& out) {
  ClassicGroup next;  // as it is to be written; apply() makes it so
  next.group_id = group.group_id;
  next.generation = group.generation;
  next.protocol_type = group.protocol_type;
  next.protocol = group.protocol;
  next.leader = group.leader;
  next.state_since_ms = now.wall_ms;
  next.members() = group.members();
  for (auto& [id, member] : next.members()) member.assignment.clear();
  for (const auto& one : asked.assignments)
    if (ClassicMember* member = next.find(one.member_id))
      member->assignment.assign(one.assignment.begin(), one.assignment.end());
  Record record = classic_group_record(next);
  if (record.key.size() + record.value->size() > limits_.record_bytes_max) {
    for (auto& [id, member] : group.members())
      end_sync(member, ErrorCode::unknown_server_error, out);
    prepare_rebalance(group, now, out);
    return;
  }
  for (auto& [id, member] : group.members()) {
    if (!member.syncing) continue;
    SyncReply reply;
    reply.protocol_type = group.protocol_type;
    reply.protocol_name = group.protocol;
    reply.assignment = next.find(id)->assignment;
    out.replies.push_back({*std::exchange(member.syncing, std::nullopt), std::move(reply)});
    restart_session(group, member, now);
  }
  out.records.push_back(std::move(record));
}

}  // namespace broker::groups
