// SyncGroup, Heartbeat and LeaveGroup of the classic protocol.
#include <utility>

#include "broker/groups/group_shard.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

// What a member does not say is not compared.
bool differs(const std::optional<std::string>& said, const std::optional<std::string>& holds) {
  return said && holds && *said != *holds;
}

ErrorCode check_sync(const ClassicGroup& group, const protocol::SyncGroupRequest& asked) {
  const ErrorCode error = group.check_member(asked.member_id, asked.group_instance_id);
  if (error != ErrorCode::none) return error;
  if (asked.generation_id != group.generation) return ErrorCode::illegal_generation;
  if (differs(asked.protocol_type, group.protocol_type) ||
      differs(asked.protocol_name, group.protocol))
    return ErrorCode::inconsistent_group_protocol;
  if (group.is_in(ClassicState::preparing_rebalance)) return ErrorCode::rebalance_in_progress;
  return ErrorCode::none;
}

}  // namespace

Decision GroupShard::sync(const protocol::SyncGroupRequest& asked, Ticket ticket, Now now) {
  Decision out;
  const auto refused = [&](ErrorCode error) {
    SyncReply reply;
    reply.error = error;
    out.replies.push_back({ticket, std::move(reply)});
    return std::move(out);
  };
  if (asked.group_id.empty()) return refused(ErrorCode::invalid_group_id);
  if (consumer_group(asked.group_id)) return sync_as_classic(asked, ticket, now);
  ClassicGroup* group = classic(asked.group_id);
  if (!group || group->is_in(ClassicState::empty)) return refused(ErrorCode::unknown_member_id);
  const ErrorCode error = check_sync(*group, asked);
  if (error != ErrorCode::none) return refused(error);

  ClassicMember& member = *group->find(asked.member_id);
  drop_pending_sync(*group, member.id);
  if (group->is_in(ClassicState::stable)) {
    SyncReply reply;
    reply.protocol_type = group->protocol_type;
    reply.protocol_name = group->protocol;
    reply.assignment = member.assignment;
    out.replies.push_back({ticket, std::move(reply)});
    return out;
  }
  if (member.syncing) {  // its client has given up on the answer to the sync before
    SyncReply superseded;
    superseded.error = ErrorCode::rebalance_in_progress;
    out.replies.push_back({*member.syncing, std::move(superseded)});
  }
  member.syncing = ticket;
  if (group->is_leader(member.id)) assign(*group, asked, now, out);
  return out;
}

Decided<ErrorCode> GroupShard::heartbeat(const protocol::HeartbeatRequest& asked, Now now) {
  Decided<ErrorCode> out;
  if (asked.group_id.empty()) {
    out.answer = ErrorCode::invalid_group_id;
    return out;
  }
  if (consumer_group(asked.group_id)) return beat_as_classic(asked, now);
  ClassicGroup* group = classic(asked.group_id);
  out.answer = group ? group->check_member(asked.member_id, asked.group_instance_id)
                     : ErrorCode::unknown_member_id;
  if (out.answer != ErrorCode::none) return out;
  if (asked.generation_id != group->generation) {
    out.answer = ErrorCode::illegal_generation;
    return out;
  }
  restart_session(*group, *group->find(asked.member_id), now);
  if (group->is_in(ClassicState::preparing_rebalance))
    out.answer = ErrorCode::rebalance_in_progress;
  return out;
}

Decided<protocol::LeaveGroupResponse> GroupShard::leave(const protocol::LeaveGroupRequest& asked,
                                                        Now now) {
  Decided<protocol::LeaveGroupResponse> out;
  if (asked.group_id.empty()) {
    out.answer.error_code = static_cast<std::int16_t>(ErrorCode::invalid_group_id);
    return out;
  }
  if (consumer_group(asked.group_id)) return leave_as_classic(asked.group_id, asked.members, now);
  ClassicGroup* group = classic(asked.group_id);
  bool any_left = false;
  for (const auto& who : asked.members) {
    const ErrorCode error = group ? leave_one(*group, who, out) : ErrorCode::unknown_member_id;
    any_left = any_left || error == ErrorCode::none;
    auto& member = out.answer.members.emplace_back();
    member.member_id = who.member_id;
    member.group_instance_id = who.group_instance_id;
    member.error_code = static_cast<std::int16_t>(error);
  }
  if (any_left && !group->is_in(ClassicState::empty)) prepare_or_complete(*group, now, out);
  return out;
}

ErrorCode GroupShard::leave_one(ClassicGroup& group, const protocol::LeaveGroupRequest::Member& who,
                                Decision& out) {
  if (who.member_id.empty()) {  // an administrator removes a static member
    const std::string* holder =
        who.group_instance_id ? group.static_member(*who.group_instance_id) : nullptr;
    if (!holder) return ErrorCode::unknown_member_id;
    remove_member(group, std::string(*holder), out);
    return ErrorCode::none;
  }
  if (!group.pending.contains(who.member_id)) {
    const ErrorCode error = group.check_member(who.member_id, who.group_instance_id);
    if (error != ErrorCode::none) return error;
  }
  remove_member(group, who.member_id, out);
  return ErrorCode::none;
}

}  // namespace broker::groups
