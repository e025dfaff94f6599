// WriteTxnMarkers v1-2, as an operator's abortTransaction sends it (KIP-664): ends a transaction in
// the partitions that are named, whatever its coordinator thinks of it.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/transaction_coordinator.h"
#include "protocol/base/log.h"
#include "protocol/messages/write_txn_markers.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::WriteTxnMarkersRequest;

namespace {

TransactionMarker marker_of(const WriteTxnMarkersRequest::Marker& asked) {
  TransactionMarker marker;
  marker.producer_id = asked.producer_id;
  marker.producer_epoch = asked.producer_epoch;
  marker.committed = asked.transaction_result;
  marker.coordinator_epoch = asked.coordinator_epoch;
  marker.transaction_version = asked.transaction_version;
  return marker;
}

// What is no producer's epoch Kafka stumbles over, once it has found the partition.
Task<ErrorCode> write_one(Broker& broker, transactions::Part part, TransactionMarker marker) {
  const TopicPtr topic = Shard::current()->catalog()->find(part.topic);
  if (has_partition(topic, part.partition) && marker.producer_epoch < 0)
    co_return ErrorCode::unknown_server_error;
  const ErrorCode error = co_await broker.transactions().write_marker(std::move(part), marker);
  // Of what keeps offsets: retriable, by the name that senders of markers know.
  const bool not_now =
      error == ErrorCode::coordinator_load_in_progress || error == ErrorCode::not_coordinator;
  co_return not_now ? ErrorCode::not_leader_or_follower : error;
}

}  // namespace

Task<Response> write_txn_markers(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<WriteTxnMarkersRequest>(request);
  if (!asked) co_return malformed();
  protocol::WriteTxnMarkersResponse message;
  std::vector<Job<ErrorCode>> jobs;
  for (const auto& from : asked->markers) {
    if (from.topics.empty()) continue;
    auto& to = message.markers.emplace_back();
    to.producer_id = from.producer_id;
    const TransactionMarker marker = marker_of(from);
    base::logger("transactions")
        .warn("{} asks for markers that {} what producer {} of epoch {} wrote",
              request.connection.peer, marker.committed ? "commit" : "abort", marker.producer_id,
              marker.producer_epoch);
    for (const auto& topic : from.topics) {
      auto& answers = to.topics.emplace_back();
      answers.name = topic.name;
      for (const std::int32_t index : topic.partition_indexes) {
        answers.partitions.emplace_back().partition_index = index;
        auto job = [&broker, marker, part = transactions::Part{topic.name, index}] {
          return write_one(broker, part, marker);
        };
        jobs.push_back({&shard, std::move(job)});
      }
    }
  }
  if (!jobs.empty()) {
    const auto errors = co_await on_each(std::move(jobs));
    auto next = errors.begin();
    for (auto& marker : message.markers)
      for (auto& topic : marker.topics)
        for (auto& partition : topic.partitions) partition.error_code = number(*next++);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
