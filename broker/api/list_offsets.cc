// ListOffsets v1-11.
//   v2 isolation level (latest is then the last stable offset); v4 leader epoch; v7 -3, offset of
//   the greatest timestamp; v8 -4, earliest local; v9 -5, latest tiered; v10 a timeout for tiered
//   storage; v11 -6, earliest pending upload. Without tiered storage, which is so here, -4 is the
//   log start and -5 and -6 find nothing, as in Kafka. What is not found is (-1, -1).
//   A partition that is named twice is refused, and answered once. Who does not ask as a consumer
//   (replica id -1) is told of everything up to the log end, whatever the isolation level.
#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/list_offsets.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::ListOffsetsRequest;
using protocol::ListOffsetsResponse;
using OffsetAnswer = ListOffsetsResponse::Topic::Partition;

constexpr std::int64_t latest = -1;
constexpr std::int64_t earliest = -2;
constexpr std::int64_t max_timestamp = -3;
constexpr std::int64_t earliest_local = -4;
constexpr std::int64_t latest_tiered = -5;
constexpr std::int64_t earliest_pending_upload = -6;

constexpr std::int32_t consumer_id = -1;
constexpr std::int32_t no_epoch = -1;

bool is_served(std::int64_t timestamp, std::int16_t version) {
  if (timestamp >= earliest) return true;
  if (timestamp == max_timestamp) return version >= 7;
  if (timestamp == earliest_local) return version >= 8;
  if (timestamp == latest_tiered) return version >= 9;
  return timestamp == earliest_pending_upload && version >= 11;
}

struct OffsetQuery {
  base::TopicPartition id;
  std::int64_t timestamp = 0;
  std::optional<base::LeaderEpoch> current_leader_epoch;
  Isolation isolation = Isolation::read_uncommitted;
  OffsetAnswer* answer = nullptr;
};

base::Result<void> look_up(const Partition& partition, const OffsetQuery& item) {
  TRY_VOID(partition.check_leader_epoch(item.current_leader_epoch));
  const storage::Log& log = partition.log();
  OffsetAnswer& answer = *item.answer;
  const base::Offset end = partition.readable_end(item.isolation);
  std::optional<storage::TimestampOffset> found;
  switch (item.timestamp) {
    case latest:
      answer.offset = end;
      answer.leader_epoch = partition.leader_epoch();
      return {};
    case earliest:
    case earliest_local: {
      answer.offset = partition.log_start();
      const auto epochs = log.epochs();  // with their starts
      if (!epochs.empty() && epochs.front().end_offset <= answer.offset)
        answer.leader_epoch = epochs.front().epoch;
      return {};
    }
    case latest_tiered:
    case earliest_pending_upload:
      return {};
    case max_timestamp: {
      TRY(found, log.max_timestamp());
      break;
    }
    default: {
      TRY(found, log.offset_for_timestamp(item.timestamp));
    }
  }
  if (!found || found->offset >= end) return {};
  answer.timestamp = found->timestamp_ms;
  answer.offset = found->offset;
  answer.leader_epoch = found->epoch.value_or(-1);
  return {};
}

Task<bool> look_up_on_shard(Shard& shard, std::vector<OffsetQuery> items) {
  for (const OffsetQuery& item : items) {
    const auto partition = shard.find(item.id);
    if (!partition) {
      const bool exists = shard.catalog()->find(item.id.topic_id) != nullptr;
      item.answer->error_code =
          number(exists ? missing_partition : ErrorCode::unknown_topic_or_partition);
      continue;
    }
    if (const auto done = look_up(*partition, item); done.has_error()) {
      const std::int32_t index = item.answer->partition_index;
      *item.answer = OffsetAnswer();
      item.answer->partition_index = index;
      item.answer->error_code = number(done.error());
    }
  }
  co_return true;
}

// What the answer says of each partition that is named: once, however often it is named.
struct Named {
  std::size_t at_topic = 0;  // in the answer
  std::int32_t index = 0;
  std::int64_t timestamp = 0;
  std::int32_t current_leader_epoch = no_epoch;
  bool twice = false;
};

std::vector<Named> sort_out(const ListOffsetsRequest& asked, ListOffsetsResponse& message) {
  std::vector<Named> named;
  std::map<std::string_view, std::size_t> topics;
  std::map<std::pair<std::size_t, std::int32_t>, std::size_t> places;
  for (const ListOffsetsRequest::Topic& from : asked.topics) {
    if (from.partitions.empty()) continue;
    const std::size_t next = message.topics.size();
    const std::size_t at = topics.emplace(from.name, next).first->second;
    if (at == next) message.topics.emplace_back().name = from.name;
    for (const ListOffsetsRequest::Topic::Partition& one : from.partitions) {
      const auto [known, added] = places.emplace(std::pair(at, one.partition_index), named.size());
      if (added)
        named.push_back({at, one.partition_index, one.timestamp, one.current_leader_epoch});
      else
        named[known->second].twice = true;
    }
  }
  return named;
}

// Refuses what can be refused without looking into a log, and sorts the rest by shard.
std::vector<std::vector<OffsetQuery>> plan(Broker& broker, const Snapshot& catalog,
                                           const Request& request, const ListOffsetsRequest& asked,
                                           ListOffsetsResponse& message) {
  const std::vector<Named> named = sort_out(asked, message);
  std::vector<std::size_t> counts(message.topics.size());
  for (const Named& one : named) ++counts[one.at_topic];
  for (std::size_t i = 0; i < counts.size(); ++i)  // the queries point into these
    message.topics[i].partitions.reserve(counts[i]);
  const bool consumer = asked.replica_id == consumer_id;
  const auto isolation = static_cast<Isolation>(asked.isolation_level);
  const bool isolated =
      isolation == Isolation::read_uncommitted || isolation == Isolation::read_committed;
  std::vector<std::vector<OffsetQuery>> by_shard(broker.shard_count());
  for (const Named& one : named) {
    ListOffsetsResponse::Topic& to = message.topics[one.at_topic];
    OffsetAnswer& answer = to.partitions.emplace_back();
    answer.partition_index = one.index;
    const TopicPtr topic = catalog.find(to.name);
    if (!isolated) {
      answer.error_code = number(ErrorCode::unknown_server_error);
    } else if (one.twice) {
      answer.error_code = number(ErrorCode::invalid_request);
    } else if (!is_served(one.timestamp, request.version())) {
      answer.error_code = number(ErrorCode::unsupported_version);
    } else if (!has_partition(topic, one.index)) {
      answer.error_code = number(ErrorCode::unknown_topic_or_partition);
    } else {
      OffsetQuery query;
      query.id = {topic->id, one.index};
      query.timestamp = one.timestamp;
      // Other numbers below zero are epochs of the past here, as in Kafka.
      if (one.current_leader_epoch != no_epoch)
        query.current_leader_epoch = one.current_leader_epoch;
      if (consumer) query.isolation = isolation;
      query.answer = &answer;
      by_shard[broker.shard_index_of(query.id)].push_back(query);
    }
  }
  return by_shard;
}

}  // namespace

Task<Response> list_offsets(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<ListOffsetsRequest>(request);
  if (!asked) co_return malformed();
  ListOffsetsResponse message;
  auto by_shard = plan(broker, *shard.catalog(), request, *asked, message);
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, items = std::move(by_shard[i])] {
      return look_up_on_shard(*target, items);
    };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
  co_return respond(request, message);
}

}  // namespace broker::api
