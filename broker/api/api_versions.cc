// ApiVersions v0-5. The first request of a connection.
//   An unknown version is answered in version 0 with error 35 and the range of ApiVersions itself,
//   and the connection goes on (A01). v3 carries the client's name, checked as Kafka does; v5 names
//   the cluster and node that the client means to reach.
//   The mirror control APIs are listed to our own clients only, which say who they are from v3 on:
//   everybody else sees Kafka's keys and nothing besides.
//   Of Kafka's features group.version is told, at the level that has groups of the "consumer"
//   protocol, and transaction.version, at the one whose transactions have an epoch each (KIP-890).
//   What the others would switch on (metadata.version …) is not served.
#include <algorithm>
#include <string_view>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/dispatch.h"
#include "protocol/messages/api_versions.gen.h"

namespace broker::api {
namespace {

using protocol::ApiVersionsResponse;
using protocol::ErrorCode;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Letters and digits, with dots and hyphens inside.
bool is_software_word(const std::string& word) {
  return !word.empty() && is_alphanumeric(word.front()) && is_alphanumeric(word.back()) &&
         std::ranges::all_of(word,
                             [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
}

// What the mirrors' source client and the command line call themselves.
constexpr std::string_view own_software_name = "calque";

ApiVersionsResponse::ApiKey entry(const protocol::ApiInfo& api) {
  ApiVersionsResponse::ApiKey key;
  key.api_key = static_cast<std::int16_t>(api.key);
  key.min_version = api.advertised_min;
  key.max_version = api.advertised_max;
  return key;
}

// Java clients before 3.9 cannot read a range that begins with 0, and ask in versions below 4.
constexpr std::int16_t features_from_zero_since = 4;

void tell_features(ApiVersionsResponse& message, std::int16_t version) {
  if (version >= features_from_zero_since) {
    message.supported_features.push_back({"group.version", 0, 1});
    message.supported_features.push_back({"transaction.version", 0, 2});
  }
  message.finalized_features.push_back({"group.version", 1, 1});
  message.finalized_features.push_back({"transaction.version", 2, 2});
  message.finalized_features_epoch = 0;  // they never change
}

Response refuse_version(const Request& request) {
  Request as_v0 = {request.header, request.body, request.connection};
  as_v0.header.api_version = 0;
  ApiVersionsResponse message;
  message.error_code = number(ErrorCode::unsupported_version);
  message.api_keys.push_back(entry(*protocol::find_api(protocol::ApiKey::api_versions)));
  return respond(as_v0, message);
}

ErrorCode check(const Broker& broker, const Request& request,
                const protocol::ApiVersionsRequest& asked) {
  if (request.version() >= 3 && (!is_software_word(asked.client_software_name) ||
                                 !is_software_word(asked.client_software_version)))
    return ErrorCode::invalid_request;
  // Both or none; a client that reached another cluster or node than it meant starts anew.
  if (asked.cluster_id.has_value() != (asked.node_id != -1)) return ErrorCode::invalid_request;
  if (!asked.cluster_id) return ErrorCode::none;
  const bool here = *asked.cluster_id == broker.cluster_id() && asked.node_id == broker.node_id();
  return here ? ErrorCode::none : ErrorCode::rebootstrap_required;
}

}  // namespace

Task<Response> api_versions(Broker& broker, Shard&, Request request) {
  if (!protocol::find_api(protocol::ApiKey::api_versions)->has(request.version()))
    co_return refuse_version(request);
  const auto asked = decode_request<protocol::ApiVersionsRequest>(request);
  if (!asked) co_return malformed();
  ApiVersionsResponse message;
  message.error_code = number(check(broker, request, *asked));
  if (message.error_code == 0) {
    request.connection.software_name = asked->client_software_name;
    request.connection.software_version = asked->client_software_version;
    tell_features(message, request.version());
    const bool ours = request.version() >= 3 && asked->client_software_name == own_software_name;
    for (const Served& one : served_apis())
      if (one.advertised || ours) message.api_keys.push_back(entry(*protocol::find_api(one.key)));
  }
  co_return respond(request, message);
}

}  // namespace broker::api
