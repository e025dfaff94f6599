// DescribeTransactions, version 0 (KIP-664).
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/describe_transactions.gen.h"

namespace broker::api {

using protocol::ErrorCode;

Task<Response> describe_transactions(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::DescribeTransactionsRequest>(request);
  if (!asked) co_return malformed();
  protocol::DescribeTransactionsResponse message;
  for (const std::string& id : asked->transactional_ids) {
    const transactions::Description found = co_await broker.transactions().describe(id);
    auto& to = message.transaction_states.emplace_back();
    to.transactional_id = id;
    to.error_code = number(found.error);
    if (found.error != ErrorCode::none) continue;
    const transactions::Transaction& transaction = found.transaction;
    to.transaction_state = state_name(transaction.state);
    to.transaction_timeout_ms = transaction.timeout_ms;
    to.transaction_start_time_ms = transaction.start_ms;
    to.producer_id = transaction.producer.id;
    to.producer_epoch = transaction.producer.epoch;
    for (const transactions::Part& part : transaction.partitions) {
      if (to.topics.empty() || to.topics.back().topic != part.topic)
        to.topics.emplace_back().topic = part.topic;
      to.topics.back().partitions.push_back(part.partition);
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
