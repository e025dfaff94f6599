// DeleteGroups v0-3: groups without members, with their offsets. v3 a message.
#include <algorithm>

#include "broker/api/group_request.h"
#include "protocol/messages/delete_groups.gen.h"

namespace broker::api {

using protocol::DeleteGroupsResponse;
using protocol::ErrorCode;

Task<Response> delete_groups(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::DeleteGroupsRequest>(request);
  if (!asked) co_return malformed();
  DeleteGroupsResponse message;
  for (const std::string& id : asked->groups_names) {
    const bool again =
        std::ranges::any_of(message.results, [&](const auto& one) { return one.group_id == id; });
    if (again) continue;
    auto ask = [&id](groups::GroupShard& state, groups::Now) { return state.delete_group(id); };
    const auto outcome = co_await broker.groups().decide(id, std::move(ask));
    DeleteGroupsResponse::Result& to = message.results.emplace_back();
    to.group_id = id;
    to.error_code = number(outcome.error != ErrorCode::none ? outcome.error : outcome.value);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
