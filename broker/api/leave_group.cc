// LeaveGroup v0-5. v3 several members, also by instance id alone; v5 a reason.
#include "broker/api/group_request.h"
#include "protocol/messages/leave_group.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::LeaveGroupResponse;

namespace {
constexpr std::int16_t several_members_since = 3;
}

Task<Response> leave_group(Broker& broker, Shard&, Request request) {
  auto asked = decode_request<protocol::LeaveGroupRequest>(request);
  if (!asked) co_return malformed();
  const bool several = request.version() >= several_members_since;
  if (!several) asked->members.emplace_back().member_id = asked->member_id;
  auto ask = [&asked](groups::GroupShard& state, groups::Now now) {
    return state.leave(*asked, now);
  };
  auto outcome = co_await broker.groups().decide(asked->group_id, std::move(ask));
  LeaveGroupResponse message = std::move(outcome.value);
  if (outcome.error != ErrorCode::none) {
    message = LeaveGroupResponse();
    message.error_code = number(outcome.error);
  }
  if (!several && !message.members.empty()) message.error_code = message.members[0].error_code;
  co_return respond(request, message);
}

}  // namespace broker::api
