// DescribeGroups v0-6, for groups of the classic protocol.
//   v3 authorized operations; v4 instance ids; v6 GROUP_ID_NOT_FOUND with a message for what before
//   is a group in the state Dead without an error.
#include "broker/api/authorized_operations.h"
#include "broker/api/group_request.h"
#include "protocol/messages/describe_groups.gen.h"

namespace broker::api {

using protocol::DescribeGroupsRequest;
using protocol::DescribeGroupsResponse;
using protocol::ErrorCode;

namespace {

constexpr std::int16_t missing_is_error_since = 6;

using Described = std::optional<groups::DescribedGroup>;

void describe_missing(const Request& request, DescribeGroupsResponse::Group& to) {
  to.group_state = "Dead";
  if (request.version() < missing_is_error_since) return;
  to.error_code = number(ErrorCode::group_id_not_found);
  to.error_message = "Group " + to.group_id + " not found.";
}

// The bytes borrow from `from`.
void describe_found(const groups::DescribedGroup& from, DescribeGroupsResponse::Group& to) {
  to.group_state = from.state;
  to.protocol_type = from.protocol_type;
  to.protocol_data = from.protocol;
  for (const groups::DescribedGroup::Member& one : from.members) {
    DescribeGroupsResponse::Group::Member& member = to.members.emplace_back();
    member.member_id = one.id;
    member.group_instance_id = one.instance_id;
    member.client_id = one.client_id;
    member.client_host = one.client_host;
    member.member_metadata = one.metadata;
    member.member_assignment = one.assignment;
  }
}

}  // namespace

Task<Response> describe_groups(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<DescribeGroupsRequest>(request);
  if (!asked) co_return malformed();
  DescribeGroupsResponse message;
  std::vector<CoordinatorOutcome<Described>> found;  // what the answer borrows from
  found.reserve(asked->groups.size());
  for (const std::string& id : asked->groups) {
    auto ask = [&id](groups::GroupShard& state, groups::Now) {
      groups::Decided<Described> out;
      out.answer = state.describe(id);
      return out;
    };
    found.push_back(co_await broker.groups().decide(id, std::move(ask)));
    const CoordinatorOutcome<Described>& outcome = found.back();
    DescribeGroupsResponse::Group& to = message.groups.emplace_back();
    to.group_id = id;
    if (outcome.error != ErrorCode::none)
      to.error_code = number(outcome.error);
    else if (outcome.value)
      describe_found(*outcome.value, to);
    else
      describe_missing(request, to);
    if (asked->include_authorized_operations && to.error_code == 0)
      to.authorized_operations = group_operations;
  }
  co_return respond(request, message);
}

}  // namespace broker::api
