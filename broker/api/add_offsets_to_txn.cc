// AddOffsetsToTxn v0-4: what keeps a group's offsets takes part in the transaction.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/add_offsets_to_txn.gen.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {
constexpr std::int16_t offsets_fenced_since = 2;  // PRODUCER_FENCED is known
}

Task<Response> add_offsets_to_txn(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::AddOffsetsToTxnRequest>(request);
  if (!asked) co_return malformed();
  const transactions::Producer producer = {asked->producer_id, asked->producer_epoch};
  ErrorCode error = co_await broker.transactions().add_offsets(asked->transactional_id, producer,
                                                               asked->group_id);
  if (error == ErrorCode::producer_fenced && request.version() < offsets_fenced_since)
    error = ErrorCode::invalid_producer_epoch;
  protocol::AddOffsetsToTxnResponse message;
  message.error_code = number(error);
  co_return respond(request, message);
}

}  // namespace broker::api
