// Heartbeat v0-4. v3 static members. While the group is loaded everybody is let live.
#include "broker/api/group_request.h"
#include "protocol/messages/heartbeat.gen.h"

namespace broker::api {

using protocol::ErrorCode;

Task<Response> heartbeat(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::HeartbeatRequest>(request);
  if (!asked) co_return malformed();
  auto ask = [&asked](groups::GroupShard& state, groups::Now now) {
    return state.heartbeat(*asked, now);
  };
  const auto outcome = co_await broker.groups().decide(asked->group_id, std::move(ask));
  ErrorCode error = outcome.error != ErrorCode::none ? outcome.error : outcome.value;
  if (error == ErrorCode::coordinator_load_in_progress) error = ErrorCode::none;
  if (asked->group_id.empty()) error = ErrorCode::invalid_group_id;
  protocol::HeartbeatResponse message;
  message.error_code = number(error);
  co_return respond(request, message);
}

}  // namespace broker::api
