// JoinGroup: who is let into a group of the classic protocol, and under which id.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

// From here on a new member is first told its id, and joins with it: otherwise one that does not
// get the answer would come back as yet another member.
constexpr std::int16_t member_id_required_since = 4;
constexpr std::int16_t skips_assignment_since = 9;

void refuse_join(Ticket ticket, ErrorCode error, std::string member_id, Decision& out) {
  JoinReply reply;
  reply.error = error;
  reply.member_id = std::move(member_id);
  out.replies.push_back({ticket, std::move(reply)});
}

// What a member is told of the generation that is there.
JoinReply current_generation(const ClassicGroup& group, std::string_view member_id,
                             bool with_members) {
  JoinReply reply;
  reply.generation = group.generation;
  reply.protocol_type = group.protocol_type;
  reply.protocol_name = group.protocol;
  reply.leader = group.leader.value_or("");
  reply.member_id = member_id;
  if (with_members) reply.members = group.joined_members();
  return reply;
}

std::vector<ClassicProtocol> protocols_of(const protocol::JoinGroupRequest& asked) {
  std::vector<ClassicProtocol> all;
  for (const auto& one : asked.protocols)
    all.push_back({one.name, base::Buffer(one.metadata.begin(), one.metadata.end())});
  return all;
}

std::vector<std::string_view> protocol_names(const protocol::JoinGroupRequest& asked) {
  std::vector<std::string_view> names;
  for (const auto& one : asked.protocols) names.push_back(one.name);
  return names;
}

}  // namespace

Decision GroupShard::join(const protocol::JoinGroupRequest& asked, const Caller& caller,
                          Ticket ticket, Now now) {
  Decision out;
  const auto refused = [&](ErrorCode error, std::string member_id) {
    refuse_join(ticket, error, std::move(member_id), out);
    return std::move(out);
  };
  if (asked.group_id.empty()) return refused(ErrorCode::invalid_group_id, asked.member_id);
  if (asked.session_timeout_ms < limits_.session_timeout_min_ms ||
      asked.session_timeout_ms > limits_.session_timeout_max_ms)
    return refused(ErrorCode::invalid_session_timeout, asked.member_id);

  const bool is_new = asked.member_id.empty();
  drop_if_empty(asked.group_id, out);
  if (consumer_group(asked.group_id)) return join_as_classic(asked, caller, ticket, now);
  ClassicGroup* group = classic(asked.group_id);
  if (!group) {
    if (!is_new) return refused(ErrorCode::unknown_member_id, asked.member_id);
    group = &std::get<ClassicGroup>(groups_[asked.group_id]);
    group->group_id = asked.group_id;
  }
  if (!accepts(*group, asked.member_id)) {
    remove_member(*group, asked.member_id, out);
    refuse_join(ticket, ErrorCode::group_max_size_reached, "", out);
    maybe_complete_join(*group, now, out);
    return out;
  }
  if (!group->supports(asked.protocol_type, protocol_names(asked)))
    return refused(ErrorCode::inconsistent_group_protocol, asked.member_id);
  // Version 0 has no rebalance timeout of its own.
  const Join join{asked, caller, ticket, now,
                  caller.version == 0 ? asked.session_timeout_ms : asked.rebalance_timeout_ms};
  if (is_new)
    join_new(join, *group, out);
  else
    join_known(join, *group, out);
  return out;
}

// While members join, those that wait count, not those that are known: the group may have shrunk,
// or the limit.
bool GroupShard::accepts(const ClassicGroup& group, std::string_view member_id) const {
  const auto limit = static_cast<std::size_t>(limits_.members_max);
  const ClassicMember* member = group.find(member_id);
  switch (group.state) {
    case ClassicState::empty:
      return true;
    case ClassicState::preparing_rebalance:
      return (member && member->joining) || group.awaiting_join() < limit;
    case ClassicState::completing_rebalance:
    case ClassicState::stable:
      return member || group.members().size() < limit;
  }
  return false;
}

// As Kafka makes them: a random UUID in Java's notation behind what the client calls itself.
std::string GroupShard::new_member_id(const Join& join) {
  const base::Uuid uuid = random_.uuid();
  std::string hex;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) hex += '-';
    hex += fmt::format("{:02x}", static_cast<unsigned>(uuid.bytes[i]));
  }
  return join.asked.group_instance_id.value_or(join.caller.client_id) + "-" + hex;
}

void GroupShard::join_new(const Join& join, ClassicGroup& group, Decision& out) {
  std::string id = new_member_id(join);
  if (const auto& instance = join.asked.group_instance_id) {
    if (const std::string* holder = group.static_member(*instance))
      replace_static(join, group, std::string(*holder), id, out);
    else
      add_member(join, group, std::move(id), out);
    return;
  }
  if (join.caller.version < member_id_required_since) {
    add_member(join, group, std::move(id), out);
    return;
  }
  group.pending.insert(id);
  timers_.set({TimerKey::Kind::member, group.group_id, id},
              join.now.monotonic_ms + join.asked.session_timeout_ms);
  refuse_join(join.ticket, ErrorCode::member_id_required, std::move(id), out);
}

void GroupShard::join_known(const Join& join, ClassicGroup& group, Decision& out) {
  const std::string& id = join.asked.member_id;
  if (group.pending.contains(id)) {
    // Only members without an instance id are told to come again.
    if (join.asked.group_instance_id)
      refuse_join(join.ticket, ErrorCode::unknown_server_error, id, out);
    else
      add_member(join, group, id, out);
    return;
  }
  const ErrorCode error = group.check_member(id, join.asked.group_instance_id);
  if (error != ErrorCode::none) {
    refuse_join(join.ticket, error, id, out);
    return;
  }
  rejoin(join, group, *group.find(id), out);
}

void GroupShard::rejoin(const Join& join, ClassicGroup& group, ClassicMember& member,
                        Decision& out) {
  const bool changed = member.protocols != protocols_of(join.asked);
  switch (group.state) {
    case ClassicState::preparing_rebalance:
      break;
    case ClassicState::completing_rebalance:
      // The answer to its join may have been lost.
      if (!changed) {
        out.replies.push_back(
            {join.ticket, current_generation(group, member.id, group.is_leader(member.id))});
        return;
      }
      break;
    case ClassicState::stable:
      // A leader may see reasons for a rebalance that its subscription does not show, such as new
      // partitions.
      if (!changed && !group.is_leader(member.id)) {
        out.replies.push_back({join.ticket, current_generation(group, member.id, false)});
        return;
      }
      break;
    case ClassicState::empty:
      refuse_join(join.ticket, ErrorCode::unknown_member_id, member.id, out);
      return;
  }
  update_member(join, member, out);
  prepare_or_complete(group, join.now, out);
}

void GroupShard::add_member(const Join& join, ClassicGroup& group, std::string id, Decision& out) {
  ClassicMember member;
  member.id = std::move(id);
  member.instance_id = join.asked.group_instance_id;
  member.client_id = join.caller.client_id;
  member.client_host = join.caller.client_host;
  member.rebalance_timeout_ms = join.rebalance_timeout_ms;
  member.session_timeout_ms = join.asked.session_timeout_ms;
  member.protocols = protocols_of(join.asked);
  member.joining = join.ticket;
  member.is_new = true;
  if (group.is_in(ClassicState::preparing_rebalance) && group.initial_rebalance)
    group.member_added = true;
  if (group.members().empty()) group.protocol_type = join.asked.protocol_type;
  const ClassicMember& added = group.add(std::move(member));
  timers_.set({TimerKey::Kind::member, group.group_id, added.id},
              join.now.monotonic_ms + limits_.new_member_join_timeout_ms);
  prepare_or_complete(group, join.now, out);
}

void GroupShard::update_member(const Join& join, ClassicMember& member, Decision& out) {
  member.protocols = protocols_of(join.asked);
  // What the latest join says holds, also for a static member that comes back (C07).
  member.rebalance_timeout_ms = join.rebalance_timeout_ms;
  member.session_timeout_ms = join.asked.session_timeout_ms;
  // Its client has given up on the answer to the join before.
  if (member.joining)
    refuse_join(*member.joining, ErrorCode::rebalance_in_progress, member.id, out);
  member.joining = join.ticket;
}

// A static member that was restarted takes its own place, under a new id.
void GroupShard::replace_static(const Join& join, ClassicGroup& group, const std::string& old_id,
                                const std::string& new_id, Decision& out) {
  const std::string leader_before = group.leader.value_or("");
  ClassicMember* member = group.find(old_id);
  // Whoever still waits under the old id is a duplicate.
  if (member->joining) refuse_join(*member->joining, ErrorCode::fenced_instance_id, old_id, out);
  if (member->syncing) {
    SyncReply fenced;
    fenced.error = ErrorCode::fenced_instance_id;
    out.replies.push_back({*member->syncing, std::move(fenced)});
  }
  member->joining.reset();
  member->syncing.reset();
  stop_session(group, old_id);
  member = &group.rename(old_id, new_id);
  update_member(join, *member, out);
  restart_session(group, *member, join.now);

  switch (group.state) {
    case ClassicState::stable: {
      if (group.protocol != group.select_protocol()) {
        prepare_or_complete(group, join.now, out);
        return;
      }
      // Nobody needs to notice: only the new id is written down.
      member->joining.reset();
      out.records.push_back(classic_group_record(group));
      const bool leads = group.is_leader(new_id);
      if (join.caller.version >= skips_assignment_since) {
        JoinReply reply = current_generation(group, new_id, leads);
        reply.skip_assignment = leads;
        out.replies.push_back({join.ticket, std::move(reply)});
      } else {
        // It must not believe itself the leader, or it would assign anew on its own.
        JoinReply reply = current_generation(group, new_id, false);
        reply.leader = leader_before;
        out.replies.push_back({join.ticket, std::move(reply)});
      }
      return;
    }
    case ClassicState::completing_rebalance:
      // The leader assigns to the old id: begin again (C05).
      prepare_rebalance(group, join.now, out);
      return;
    case ClassicState::preparing_rebalance:
      maybe_complete_join(group, join.now, out);
      return;
    case ClassicState::empty:  // has no members
      return;
  }
}

}  // namespace broker::groups
