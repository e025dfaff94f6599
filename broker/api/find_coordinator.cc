// FindCoordinator v0-6: this broker, which makes __consumer_offsets or __transaction_state when it
// is first asked.
//   v1 key types; v4 several keys; v6 share groups, which have no coordinator here
//   (docs/decisions.md).
#include "broker/api/group_request.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/find_coordinator.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::FindCoordinatorRequest;
using protocol::FindCoordinatorResponse;

namespace {

enum class CoordinatorType : std::int8_t { group = 0, transaction = 1, share = 2 };
constexpr std::int16_t several_keys_since = 4;
constexpr std::int16_t share_groups_since = 6;
constexpr std::int32_t no_node = -1;

ErrorCode check_type(const Request& request, std::int8_t type) {
  switch (static_cast<CoordinatorType>(type)) {
    case CoordinatorType::group:
    case CoordinatorType::transaction:
      return ErrorCode::none;
    case CoordinatorType::share:
      return request.version() < share_groups_since ? ErrorCode::invalid_request
                                                    : ErrorCode::coordinator_not_available;
  }
  return ErrorCode::invalid_request;
}

}  // namespace

Task<Response> find_coordinator(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<FindCoordinatorRequest>(request);
  if (!asked) co_return malformed();
  ErrorCode error = check_type(request, asked->key_type);
  if (error == ErrorCode::none) {
    const bool of_transactions =
        asked->key_type == static_cast<std::int8_t>(CoordinatorType::transaction);
    const auto ready = of_transactions ? co_await broker.transactions().ensure_topic()
                                       : co_await broker.groups().ensure_topic();
    if (ready.has_error()) error = ErrorCode::coordinator_not_available;
  }
  const bool found = error == ErrorCode::none;
  const Endpoint& here = broker.advertised(request.connection.listener);
  FindCoordinatorResponse::Coordinator place;
  place.node_id = found ? broker.node_id() : no_node;
  place.host = found ? here.host : "";
  place.port = found ? here.port : no_node;
  place.error_code = number(error);

  FindCoordinatorResponse message;
  if (request.version() >= several_keys_since) {
    for (const std::string& key : asked->coordinator_keys) {
      place.key = key;
      message.coordinators.push_back(place);
    }
  } else {
    message.node_id = place.node_id;
    message.host = place.host;
    message.port = static_cast<std::int32_t>(place.port);
    message.error_code = place.error_code;
    message.error_message = std::string(protocol::error_name(error));
  }
  co_return respond(request, message);
}

}  // namespace broker::api
