// ListPartitionReassignments, version 0. Moves are done at once (AlterPartitionReassignments), so
// none is ever under way.
#include "broker/api/handlers.h"
#include "protocol/messages/list_partition_reassignments.gen.h"

namespace broker::api {

Task<Response> list_partition_reassignments(Broker&, Shard&, Request request) {
  const auto asked = decode_request<protocol::ListPartitionReassignmentsRequest>(request);
  if (!asked) co_return malformed();
  protocol::ListPartitionReassignmentsResponse message;
  message.error_message.reset();
  co_return respond(request, message);
}

}  // namespace broker::api
