// DescribeCluster, versions 0 to 2. v1 adds the endpoint type: only brokers (1) are to be found
// here. v2 can include fenced brokers: there are none.
#include <fmt/format.h>

#include "broker/api/authorized_operations.h"
#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "protocol/error_code.h"
#include "protocol/messages/describe_cluster.gen.h"

namespace broker::api {

namespace {

constexpr std::int8_t endpoint_brokers = 1;
constexpr std::int8_t endpoint_controllers = 2;

}  // namespace

Task<Response> describe_cluster(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::DescribeClusterRequest>(request);
  if (!message) co_return malformed();
  protocol::DescribeClusterResponse response;
  if (message->endpoint_type != endpoint_brokers) {
    const bool known = message->endpoint_type == endpoint_controllers;
    const auto code = known ? protocol::ErrorCode::mismatched_endpoint_type
                            : protocol::ErrorCode::unsupported_endpoint_type;
    response.error_code = static_cast<std::int16_t>(code);
    response.error_message =
        known ? "this is a broker; controllers are not served here"
              : fmt::format("there is no endpoint type {}", message->endpoint_type);
    co_return respond(request, response);
  }
  response.cluster_id = broker.cluster_id();
  response.controller_id = broker.node_id();
  const Endpoint& endpoint = broker.advertised(request.connection.listener);
  protocol::DescribeClusterResponse::Broker self;
  self.broker_id = broker.node_id();
  self.host = endpoint.host;
  self.port = endpoint.port;
  self.rack = broker.config().value("broker.rack");
  response.brokers.push_back(std::move(self));
  if (message->include_cluster_authorized_operations)
    response.cluster_authorized_operations = cluster_operations;
  co_return respond(request, response);
}

}  // namespace broker::api
