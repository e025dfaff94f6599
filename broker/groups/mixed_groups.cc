// Groups that change their protocol while they have members, and members of the classic protocol in
// a group of the other.
#include <utility>

#include "broker/groups/consumer/classic_member.h"
#include "broker/groups/consumer/migration.h"
#include "broker/groups/consumer/records.h"
#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using consumer::ConsumerGroup;
using protocol::ErrorCode;

namespace {

constexpr std::int16_t mixed_member_id_required_since = 4;

consumer::ClassicFacts facts_of(const ClassicGroup& group) {
  consumer::ClassicFacts facts;
  facts.id = group.group_id;
  facts.generation = group.generation;
  facts.of_consumers = group.uses_consumer_protocol();
  facts.protocol = group.protocol.value_or("");
  facts.needs_rebalance = !group.is_in(ClassicState::stable);
  for (const auto& [id, member] : group.members()) {
    consumer::ClassicFacts::Member& one = facts.members.emplace_back();
    one.id = id;
    one.instance_id = member.instance_id;
    one.client_id = member.client_id;
    one.client_host = member.client_host;
    one.rebalance_timeout_ms = member.rebalance_timeout_ms;
    one.session_timeout_ms = member.session_timeout_ms;
    for (const ClassicProtocol& p : member.protocols) one.protocols.push_back({p.name, p.metadata});
    one.assignment = member.assignment;
  }
  return facts;
}

ClassicGroup classic_group_of(consumer::ClassicFacts facts, std::int64_t now_ms) {
  ClassicGroup group;
  group.group_id = facts.id;
  for (consumer::ClassicFacts::Member& one : facts.members) {
    ClassicMember member;
    member.id = std::move(one.id);
    member.instance_id = std::move(one.instance_id);
    member.client_id = std::move(one.client_id);
    member.client_host = std::move(one.client_host);
    member.rebalance_timeout_ms = one.rebalance_timeout_ms;
    member.session_timeout_ms = one.session_timeout_ms;
    for (consumer::ClassicProtocol& p : one.protocols)
      member.protocols.push_back({std::move(p.name), std::move(p.metadata)});
    member.assignment = std::move(one.assignment);
    group.add(std::move(member));
  }
  group.generation = facts.generation;
  group.protocol_type = std::string(consumer_protocol_type);
  group.protocol = std::move(facts.protocol);
  group.enter(ClassicState::stable, now_ms);
  return group;
}

consumer::ClassicCaller classic_caller(const protocol::SyncGroupRequest& asked) {
  return {asked.member_id, asked.group_instance_id, asked.generation_id, asked.protocol_type,
          asked.protocol_name};
}

}  // namespace

// Whoever waits in the group is told to join again, which it then does in the group as it is by
// then.
std::optional<ConsumerGroup> GroupShard::upgrade(ClassicGroup& group, Now now, Decision& out,
                                                 consumer::Refusal& refusal) {
  auto result = consumer::upgrade(facts_of(group), surroundings(group.group_id, now));
  if (const auto* why = std::get_if<consumer::Refusal>(&result)) {
    refusal = *why;
    return std::nullopt;
  }
  for (auto& [id, member] : group.members()) {
    if (member.joining) {
      JoinReply reply;
      reply.error = ErrorCode::rebalance_in_progress;
      reply.member_id = id;
      out.replies.push_back({*std::exchange(member.joining, std::nullopt), std::move(reply)});
    }
    if (member.syncing) {
      SyncReply reply;
      reply.error = ErrorCode::rebalance_in_progress;
      out.replies.push_back({*std::exchange(member.syncing, std::nullopt), std::move(reply)});
    }
  }
  out.records.push_back(classic_group_tombstone(group.group_id));
  consumer::add_group_records(out.records, std::get<ConsumerGroup>(result));
  timers_.set({TimerKey::Kind::changed, group.group_id, {}}, now.monotonic_ms);
  return std::move(std::get<ConsumerGroup>(result));
}

void GroupShard::downgrade(consumer::ClassicFacts facts, Now now, Decision& out) {
  const bool needs_rebalance = facts.needs_rebalance;
  ClassicGroup group = classic_group_of(std::move(facts), now.wall_ms);
  const auto kind = needs_rebalance ? TimerKey::Kind::changed : TimerKey::Kind::changed_whole;
  if (needs_rebalance) group.leader.reset();  // so that it is known after a restart
  out.records.push_back(classic_group_record(group));
  timers_.set({kind, group.group_id, {}}, now.monotonic_ms);
}

Decision GroupShard::protocol_changed(const std::string& id, bool whole, Now now) {
  Decision out;
  if (const ConsumerGroup* group = consumer_group(id)) {
    for (consumer::TimerChange timer : consumer::timers_after_load(*group, settings_of(id))) {
      timer.unless_set = true;
      set_timer(id, timer, now);
    }
  } else if (ClassicGroup* classic_one = classic(id)) {
    for (const auto& [name, member] : classic_one->members())
      restart_session(*classic_one, member, now);
    if (!whole) prepare_or_complete(*classic_one, now, out);
  }
  return out;
}

Decision GroupShard::join_as_classic(const protocol::JoinGroupRequest& asked, const Caller& caller,
                                     Ticket ticket, Now now) {
  consumer::ClassicJoin join;
  join.member_id = asked.member_id;
  join.instance_id = asked.group_instance_id;
  join.client_id = caller.client_id;
  join.client_host = caller.client_host;
  join.session_timeout_ms = asked.session_timeout_ms;
  join.rebalance_timeout_ms =
      caller.version == 0 ? asked.session_timeout_ms : asked.rebalance_timeout_ms;
  join.protocol_type = asked.protocol_type;
  for (const auto& p : asked.protocols)
    join.protocols.push_back({p.name, base::to_buffer(p.metadata)});
  join.must_know_its_id = caller.version >= mixed_member_id_required_since;
  join.fresh_member_id = random_.uuid().to_string();
  Decision out;
  consumer::ClassicJoinOutcome outcome = consumer::decide_classic_join(
      *consumer_group(asked.group_id), join, surroundings(asked.group_id, now));
  JoinReply reply;
  reply.error = outcome.error;
  reply.member_id = outcome.member_id;
  if (outcome.error == ErrorCode::none) {
    reply.generation = outcome.generation;
    reply.protocol_type = std::string(consumer_protocol_type);
    reply.protocol_name = outcome.protocol;
  }
  take(std::move(outcome), asked.group_id, now, out);
  out.replies.push_back({ticket, std::move(reply)});
  return out;
}

Decision GroupShard::sync_as_classic(const protocol::SyncGroupRequest& asked, Ticket ticket,
                                     Now now) {
  Decision out;
  consumer::ClassicSyncOutcome outcome = consumer::decide_classic_sync(
      *consumer_group(asked.group_id), classic_caller(asked), surroundings(asked.group_id, now));
  SyncReply reply;
  reply.error = outcome.error;
  if (outcome.error == ErrorCode::none) {
    reply.protocol_type = asked.protocol_type;
    reply.protocol_name = asked.protocol_name;
    reply.assignment = std::move(outcome.assignment);
  }
  take(std::move(outcome), asked.group_id, now, out);
  out.replies.push_back({ticket, std::move(reply)});
  return out;
}

Decided<ErrorCode> GroupShard::beat_as_classic(const protocol::HeartbeatRequest& asked, Now now) {
  Decided<ErrorCode> out;
  consumer::ClassicOutcome outcome = consumer::decide_classic_heartbeat(
      *consumer_group(asked.group_id),
      {asked.member_id, asked.group_instance_id, asked.generation_id, {}, {}});
  out.answer = outcome.error;
  take(std::move(outcome), asked.group_id, now, out);
  return out;
}

Decided<protocol::LeaveGroupResponse> GroupShard::leave_as_classic(
    const std::string& group, const std::vector<protocol::LeaveGroupRequest::Member>& members,
    Now now) {
  Decided<protocol::LeaveGroupResponse> out;
  std::vector<consumer::ClassicLeaver> leavers;
  for (const auto& one : members) leavers.push_back({one.member_id, one.group_instance_id});
  consumer::ClassicLeaveOutcome outcome =
      consumer::decide_classic_leave(*consumer_group(group), leavers, surroundings(group, now));
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& answer = out.answer.members.emplace_back();
    answer.member_id = members[i].member_id;
    answer.group_instance_id = members[i].group_instance_id;
    answer.error_code = static_cast<std::int16_t>(outcome.errors[i]);
  }
  take(std::move(outcome), group, now, out);
  return out;
}

}  // namespace broker::groups
