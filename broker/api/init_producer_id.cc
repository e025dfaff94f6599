// InitProducerId v0-5. Idempotent producers are given a fresh id with epoch 0, whatever they had
// before; those with a transactional id what the transaction coordinator says.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/producer_ids.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/init_producer_id.gen.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {
constexpr int none = -1;
constexpr std::int16_t init_fenced_since = 4;  // PRODUCER_FENCED is known
}  // namespace

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
    transactions::InitProducerId init;
    init.transactional_id = *asked->transactional_id;
    init.timeout_ms = asked->transaction_timeout_ms;
    if (asked->producer_id != none)
      init.expected = transactions::Producer{asked->producer_id, asked->producer_epoch};
    transactions::ProducerAnswer answer;
    answer.error = ErrorCode::invalid_request;
    if (!init.transactional_id.empty())
      answer = co_await broker.transactions().init_producer_id(std::move(init));
    const bool fenced = answer.error == ErrorCode::producer_fenced;
    message.error_code =
        number(fenced && request.version() < init_fenced_since ? ErrorCode::invalid_producer_epoch
                                                               : answer.error);
    if (answer.error == ErrorCode::none) {
      message.producer_id = answer.producer.id;
      message.producer_epoch = answer.producer.epoch;
    }
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
