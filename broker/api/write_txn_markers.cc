// WriteTxnMarkers v1-2, as an operator's abortTransaction sends it (KIP-664): ends a transaction in
// the partitions that are named, whatever its coordinator thinks of it. A partition that a topic
// names more than once is written to and answered once.
#include <algorithm>
#include <optional>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/bounds.h"
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

// One marker for one partition, and where its outcome is told.
struct Writing {
  transactions::Part part;
  TransactionMarker marker;
  std::int16_t* error = nullptr;
};

Task<ErrorCode> write_one(Broker& broker, const Writing& one) {
  const ErrorCode error = co_await broker.transactions().write_marker(one.part, one.marker);
  // Of what keeps offsets: retriable, by the name that senders of markers know.
  const bool not_now =
      error == ErrorCode::coordinator_load_in_progress || error == ErrorCode::not_coordinator;
  co_return not_now ? ErrorCode::not_leader_or_follower : error;
}

Task<void> write_all(Broker& broker, Shard& shard, std::vector<Writing>& slice) {
  std::vector<Job<ErrorCode>> jobs;
  for (const Writing& one : slice) {
    auto job = [&broker, &one] { return write_one(broker, one); };
    jobs.push_back({&shard, std::move(job)});
  }
  if (!jobs.empty()) {
    const std::vector<ErrorCode> errors = co_await on_each(std::move(jobs));
    for (std::size_t i = 0; i < slice.size(); ++i) *slice[i].error = number(errors[i]);
  }
  slice.clear();
}

// Without those that are named again. The order stays, unless there are such.
std::vector<std::int32_t> distinct(const std::vector<std::int32_t>& indexes) {
  std::vector<std::int32_t> sorted = indexes;
  std::ranges::sort(sorted);
  const auto repeated = std::ranges::unique(sorted);
  if (repeated.empty()) return indexes;
  sorted.erase(repeated.begin(), repeated.end());
  return sorted;
}

// What can be told without writing: Kafka stumbles over what is no producer's epoch, once it has
// found the partition.
std::optional<ErrorCode> refusal(const TopicPtr& topic, std::int32_t index,
                                 const TransactionMarker& marker) {
  if (!has_partition(topic, index)) return ErrorCode::unknown_topic_or_partition;
  if (marker.producer_epoch < 0) return ErrorCode::unknown_server_error;
  return std::nullopt;
}

}  // namespace

Task<Response> write_txn_markers(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<WriteTxnMarkersRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  protocol::WriteTxnMarkersResponse message;
  std::vector<Writing> slice;
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
      const TopicPtr there = catalog->find(topic.name);
      const std::vector<std::int32_t> indexes = distinct(topic.partition_indexes);
      answers.partitions.resize(indexes.size());
      for (std::size_t i = 0; i < indexes.size(); ++i) {
        auto& answer = answers.partitions[i];
        answer.partition_index = indexes[i];
        if (const auto refused = refusal(there, indexes[i], marker)) {
          answer.error_code = number(*refused);
          continue;
        }
        slice.push_back({{topic.name, indexes[i]}, marker, &answer.error_code});
        if (slice.size() == markers_at_once) co_await write_all(broker, shard, slice);
      }
    }
  }
  co_await write_all(broker, shard, slice);
  co_return respond(request, message);
}

}  // namespace broker::api
