// ConsumerGroupHeartbeat v0-1, the one request of the "consumer" group protocol (KIP-848).
//   v1 regular expressions, and the member makes its id itself.
#include "broker/api/group_request.h"
#include "broker/groups/consumer/heartbeat.h"
#include "protocol/messages/consumer_group_heartbeat.gen.h"

namespace broker::api {

using protocol::ErrorCode;

Task<Response> consumer_group_heartbeat(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::ConsumerGroupHeartbeatRequest>(request);
  if (!asked) co_return malformed();
  const auto refusal = groups::consumer::check_heartbeat(*asked, request.version(),
                                                         broker.groups().consumer_settings());
  if (refusal) co_return respond(request, groups::consumer::refused_heartbeat(*refusal).response);
  const groups::Caller caller = caller_of(request);
  auto ask = [&asked, &caller](groups::GroupShard& state, groups::Now now) {
    return state.consumer_heartbeat(*asked, caller, now);
  };
  auto outcome = co_await broker.groups().decide(asked->group_id, std::move(ask));
  if (outcome.error != ErrorCode::none) {
    outcome.value = {};
    outcome.value.error_code = number(outcome.error);
  }
  co_return respond(request, outcome.value);
}

}  // namespace broker::api
