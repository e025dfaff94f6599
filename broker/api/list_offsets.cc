// ListOffsets v1-11.
//   v2 isolation level (latest is then the last stable offset); v4 leader epoch; v7 -3, offset of
//   the greatest timestamp; v8 -4, earliest local; v9 -5, latest tiered; v10 a timeout for tiered
//   storage; v11 -6, earliest pending upload. Without tiered storage, which is so here, -4 is the
//   log start and -5 and -6 find nothing, as in Kafka. What is not found is (-1, -1).
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/list_offsets.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::ListOffsetsRequest;
using protocol::ListOffsetsResponse;
using PartitionAnswer = ListOffsetsResponse::Topic::Partition;

constexpr std::int64_t latest = -1;
constexpr std::int64_t earliest = -2;
constexpr std::int64_t max_timestamp = -3;
constexpr std::int64_t earliest_local = -4;
constexpr std::int64_t latest_tiered = -5;
constexpr std::int64_t earliest_pending_upload = -6;

bool is_known(std::int64_t timestamp, std::int16_t version) {
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
  PartitionAnswer* answer = nullptr;
};

base::Result<void> look_up(const Partition& partition, const OffsetQuery& item) {
  TRY_VOID(partition.check_leader_epoch(item.current_leader_epoch));
  const storage::Log& log = partition.log();
  PartitionAnswer& answer = *item.answer;
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
      item.answer->error_code = number(missing_partition);
      continue;
    }
    if (const auto done = look_up(*partition, item); done.has_error()) {
      const std::int32_t index = item.answer->partition_index;
      *item.answer = PartitionAnswer();
      item.answer->partition_index = index;
      item.answer->error_code = number(done.error());
    }
  }
  co_return true;
}

}  // namespace

Task<Response> list_offsets(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<ListOffsetsRequest>(request);
  if (!asked) co_return malformed();
  const Snapshot& catalog = *shard.catalog();
  std::vector<std::vector<OffsetQuery>> by_shard(broker.shard_count());
  ListOffsetsResponse message;
  message.topics.resize(asked->topics.size());
  for (std::size_t t = 0; t < asked->topics.size(); ++t) {
    const ListOffsetsRequest::Topic& from = asked->topics[t];
    ListOffsetsResponse::Topic& to = message.topics[t];
    to.name = from.name;
    to.partitions.resize(from.partitions.size());
    const TopicPtr topic = catalog.find(from.name);
    for (std::size_t p = 0; p < from.partitions.size(); ++p) {
      const auto& one = from.partitions[p];
      PartitionAnswer& answer = to.partitions[p];
      answer.partition_index = one.partition_index;
      if (!has_partition(topic, one.partition_index)) {
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
      } else if (!is_known(one.timestamp, request.version())) {
        answer.error_code = number(ErrorCode::unsupported_version);
      } else {
        OffsetQuery item;
        item.id = {topic->id, one.partition_index};
        item.timestamp = one.timestamp;
        item.current_leader_epoch = epoch_of(one.current_leader_epoch);
        if (asked->isolation_level == static_cast<std::int8_t>(Isolation::read_committed))
          item.isolation = Isolation::read_committed;
        item.answer = &answer;
        by_shard[broker.shard_index_of(item.id)].push_back(item);
      }
    }
  }
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
