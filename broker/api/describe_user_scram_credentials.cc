// DescribeUserScramCredentials, version 0. There are no SCRAM credentials here, which is what Kafka
// answers of a cluster without any: tools ask for them beside a user's quotas.
#include <fmt/format.h>

#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/describe_user_scram_credentials.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeUserScramCredentialsRequest;
using protocol::DescribeUserScramCredentialsResponse;
using protocol::ErrorCode;

}  // namespace

Task<Response> describe_user_scram_credentials(Broker&, Shard&, Request request) {
  const auto asked = decode_request<DescribeUserScramCredentialsRequest>(request);
  if (!asked) co_return malformed();
  DescribeUserScramCredentialsResponse message;
  std::map<std::string_view, int> times;
  if (asked->users)
    for (const auto& user : *asked->users) ++times[user.name];
  for (const auto& [name, asked_times] : times) {
    auto& result = message.results.emplace_back();
    result.user = name;
    const bool once = asked_times == 1;
    result.error_code =
        number(once ? ErrorCode::resource_not_found : ErrorCode::duplicate_resource);
    result.error_message = once ? fmt::format("the user '{}' has no SCRAM credentials", name)
                                : fmt::format("the user '{}' stands there more than once", name);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
