// EndTxn v0-5: commits or aborts. v5 (KIP-890) raises the producer's epoch and tells the new one.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/end_txn.gen.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {

constexpr std::int16_t end_fenced_since = 2;  // PRODUCER_FENCED is known
constexpr std::int16_t epoch_bump_since = 5;

}  // namespace

Task<Response> end_txn(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::EndTxnRequest>(request);
  if (!asked) co_return malformed();
  transactions::EndTransaction end;
  end.transactional_id = asked->transactional_id;
  end.producer = {asked->producer_id, asked->producer_epoch};
  end.commit = asked->committed;
  end.client_version = request.version() < epoch_bump_since ? transactions::classic_version
                                                            : transactions::epoch_bump_version;
  const auto answer = co_await broker.transactions().end(std::move(end));
  protocol::EndTxnResponse message;
  message.error_code = number(answer.error);
  if (answer.error == ErrorCode::producer_fenced && request.version() < end_fenced_since)
    message.error_code = number(ErrorCode::invalid_producer_epoch);
  if (answer.error == ErrorCode::none) {
    message.producer_id = answer.producer.id;
    message.producer_epoch = answer.producer.epoch;
  }
  co_return respond(request, message);
}

}  // namespace broker::api
