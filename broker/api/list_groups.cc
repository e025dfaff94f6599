// ListGroups v0-5. v4 filter by state, v5 by type.
#include "broker/api/group_request.h"
#include "protocol/messages/list_groups.gen.h"

namespace broker::api {

using protocol::ErrorCode;

Task<Response> list_groups(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::ListGroupsRequest>(request);
  if (!asked) co_return malformed();
  auto outcome = co_await broker.groups().list(asked->states_filter, asked->types_filter);
  protocol::ListGroupsResponse message;
  message.error_code = number(outcome.error);
  for (groups::ListedGroup& one : outcome.value)
    message.groups.push_back({std::move(one.id), std::move(one.protocol_type), std::move(one.state),
                              std::move(one.type)});
  co_return respond(request, message);
}

}  // namespace broker::api
