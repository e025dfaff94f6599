// ListTransactions v0-2 (KIP-664). v1 filters by duration (KIP-994), v2 by a pattern of the id
// (KIP-1152), which must match as a whole.
#include <algorithm>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/groups/consumer/topic_regex.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/list_transactions.gen.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {

void keep_matching(const std::string& pattern, std::vector<transactions::Listed>& ids) {
  std::vector<std::string> names;
  for (const transactions::Listed& one : ids) names.push_back(one.transactional_id);
  const std::vector<bool> matches = groups::consumer::match_regex(pattern, names);
  std::size_t next = 0;
  std::erase_if(ids, [&](const auto&) { return !matches[next++]; });
}

}  // namespace

Task<Response> list_transactions(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::ListTransactionsRequest>(request);
  if (!asked) co_return malformed();
  protocol::ListTransactionsResponse message;
  const std::string pattern = asked->transactional_id_pattern.value_or("");
  if (!pattern.empty() && groups::consumer::problem_of_regex(pattern)) {
    message.error_code = number(ErrorCode::invalid_regular_expression);
    co_return respond(request, message);
  }
  transactions::Filter filter;
  filter.producer_ids.insert(asked->producer_id_filters.begin(), asked->producer_id_filters.end());
  filter.duration_ms = asked->duration_filter;
  for (const std::string& name : asked->state_filters) {
    if (const auto state = transactions::parse_state(name))
      filter.states.insert(*state);
    else
      message.unknown_state_filters.push_back(name);
  }
  filter.no_state = !asked->state_filters.empty() && filter.states.empty();
  auto outcome = co_await broker.transactions().list(std::move(filter));
  message.error_code = number(outcome.error);
  if (!pattern.empty()) keep_matching(pattern, outcome.value);
  std::ranges::sort(outcome.value, {}, &transactions::Listed::transactional_id);
  for (transactions::Listed& one : outcome.value)
    message.transaction_states.push_back(
        {std::move(one.transactional_id), one.producer_id, std::string(state_name(one.state))});
  co_return respond(request, message);
}

}  // namespace broker::api
