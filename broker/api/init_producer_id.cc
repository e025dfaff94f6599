// InitProducerId v0-5, for idempotent producers: a fresh id with epoch 0, whatever the producer had
// before, as Kafka answers without a transactional id.
//   A transactional id is refused with UNSUPPORTED_VERSION, which the Java client takes as fatal:
//   there is no transaction coordinator.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/producer_ids.h"
#include "protocol/messages/init_producer_id.gen.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {
constexpr int none = -1;
}

Task<Response> init_producer_id(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::InitProducerIdRequest>(request);
  if (!asked) co_return malformed();
  protocol::InitProducerIdResponse message;
  message.producer_id = -1;
  message.producer_epoch = -1;
  // Both or neither are told by a producer that has them already.
  if ((asked->producer_id == none) != (asked->producer_epoch == none)) {
    message.error_code = number(ErrorCode::invalid_request);
    co_return respond(request, message);
  }
  if (asked->transactional_id) {
    message.error_code = number(asked->transactional_id->empty() ? ErrorCode::invalid_request
                                                                 : ErrorCode::unsupported_version);
    co_return respond(request, message);
  }
  const auto id = co_await broker.producer_ids().next();
  if (id.has_error()) {
    message.error_code = number(id.error());
  } else {
    message.producer_id = *id;
    message.producer_epoch = 0;
  }
  co_return respond(request, message);
}

}  // namespace broker::api
