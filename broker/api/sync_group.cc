// SyncGroup v0-5: answered with the member's assignment once the leader has brought it and it is on
// disk.
//   v3 static members; v5 protocol type and name, which must be told.
#include "broker/api/group_request.h"
#include "protocol/messages/sync_group.gen.h"

namespace broker::api {

namespace {
constexpr std::int16_t names_protocol_since = 5;
}

Task<Response> sync_group(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::SyncGroupRequest>(request);
  if (!asked) co_return malformed();
  protocol::SyncGroupResponse message;
  if (request.version() >= names_protocol_since &&
      (!asked->protocol_type || !asked->protocol_name)) {
    message.error_code = number(protocol::ErrorCode::inconsistent_group_protocol);
    co_return respond(request, message);
  }
  const groups::SyncReply reply = co_await broker.groups().sync(*asked);
  message.error_code = number(reply.error);
  message.protocol_type = reply.protocol_type;
  message.protocol_name = reply.protocol_name;
  message.assignment = reply.assignment;
  co_return respond(request, message);
}

}  // namespace broker::api
