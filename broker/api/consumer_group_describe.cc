// ConsumerGroupDescribe v0-1, for groups of the "consumer" protocol. Of others it says
// GROUP_ID_NOT_FOUND, upon which clients try DescribeGroups.
#include "broker/api/authorized_operations.h"
#include "broker/api/group_request.h"
#include "protocol/messages/consumer_group_describe.gen.h"

namespace broker::api {

using protocol::ConsumerGroupDescribeResponse;
using protocol::ErrorCode;

Task<Response> consumer_group_describe(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<protocol::ConsumerGroupDescribeRequest>(request);
  if (!asked) co_return malformed();
  using Described = std::optional<ConsumerGroupDescribeResponse::Group>;
  ConsumerGroupDescribeResponse message;
  for (const std::string& id : asked->group_ids) {
    auto ask = [&id](groups::GroupShard& state, groups::Now) {
      groups::Decided<Described> out;
      out.answer = state.describe_consumer(id);
      return out;
    };
    const auto outcome = co_await broker.groups().decide(id, std::move(ask));
    ConsumerGroupDescribeResponse::Group& to = message.groups.emplace_back();
    if (outcome.error == ErrorCode::none && outcome.value) {
      to = *outcome.value;
      if (asked->include_authorized_operations) to.authorized_operations = group_operations;
      continue;
    }
    to.group_id = id;
    if (id.empty()) {
      to.error_code = number(ErrorCode::invalid_group_id);
    } else if (outcome.error != ErrorCode::none) {
      to.error_code = number(outcome.error);
    } else {
      to.error_code = number(ErrorCode::group_id_not_found);
      to.error_message = "there is no group " + id + " of the consumer protocol";
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
