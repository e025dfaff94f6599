// JoinGroup v0-9: answered when all members have joined, or the group has waited long enough.
//   v1 rebalance timeout; v4 a new member is first told its id; v5 static members; v7 protocol
//   type; v9 a leader that came back is told not to assign.
#include "broker/api/group_request.h"
#include "protocol/messages/join_group.gen.h"

namespace broker::api {

Task<Response> join_group(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::JoinGroupRequest>(request);
  if (!asked) co_return malformed();
  const groups::JoinReply reply = co_await broker.groups().join(*asked, caller_of(request));
  protocol::JoinGroupResponse message;
  message.error_code = number(reply.error);
  message.generation_id = reply.generation;
  message.protocol_type = reply.protocol_type;
  message.protocol_name = reply.protocol_name;
  message.leader = reply.leader;
  message.skip_assignment = reply.skip_assignment;
  message.member_id = reply.member_id;
  for (const groups::JoinReply::Member& one : reply.members)
    message.members.push_back({one.member_id, one.instance_id, base::Bytes(one.metadata)});
  co_return respond(request, message);
}

}  // namespace broker::api
