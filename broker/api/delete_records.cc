// DeleteRecords, versions 0 to 2: nothing below an offset is served any more; -1 means the high
// watermark. Durable when the answer is sent. A mirrored partition begins where its source's does,
// so for it it is refused with POLICY_VIOLATION; internal topics with INVALID_TOPIC_EXCEPTION.
// timeout_ms is not needed: there is one replica.
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/partition.h"
#include "broker/retention.h"
#include "protocol/internal_topics.h"
#include "protocol/messages/delete_records.gen.h"

namespace broker::api {

namespace {

using protocol::DeleteRecordsRequest;
using protocol::DeleteRecordsResponse;
using protocol::ErrorCode;
using DeletionAnswer = DeleteRecordsResponse::Topic::Partition;

constexpr base::Offset to_high_watermark = -1;

struct Deletion {
  base::TopicPartition id;
  base::Offset offset = 0;
  DeletionAnswer* answer = nullptr;
};

Task<void> delete_from(Shard& shard, const Deletion item) {
  DeletionAnswer& answer = *item.answer;
  answer.low_watermark = -1;
  const auto partition = shard.find(item.id);
  if (!partition) {
    answer.error_code = number(missing_partition);
    co_return;
  }
  if (const auto writable = partition->check_writable(); writable.has_error()) {
    answer.error_code = number(writable.error());
    co_return;
  }
  const base::Offset until =
      item.offset == to_high_watermark ? partition->high_watermark() : item.offset;
  if (until < 0 || until > partition->high_watermark()) {
    answer.error_code = number(ErrorCode::offset_out_of_range);
    co_return;
  }
  const auto done = co_await advance_log_start(partition, until);
  if (done.has_error())
    answer.error_code = number(done.error());
  else
    answer.low_watermark = partition->log_start();
}

Task<bool> delete_on_shard(Shard& shard, std::vector<Deletion> items) {
  for (const Deletion& item : items) co_await delete_from(shard, item);
  co_return true;
}

// What coordinators have decided is theirs to drop; Kafka refuses it as well.
bool is_internal(const std::string& name, const TopicPtr& topic) {
  return protocol::is_coordinator_topic(name) || (topic && topic->internal);
}

}  // namespace

Task<Response> delete_records(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<DeleteRecordsRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  std::vector<std::vector<Deletion>> by_shard(broker.shard_count());
  DeleteRecordsResponse message;
  message.topics.reserve(asked->topics.size());
  for (const auto& from : asked->topics) {
    if (from.partitions.empty()) continue;
    auto& to = message.topics.emplace_back();
    to.name = from.name;
    to.partitions.resize(from.partitions.size());
    const TopicPtr topic = catalog->find(from.name);
    const bool refused = is_internal(from.name, topic);
    for (std::size_t p = 0; p < from.partitions.size(); ++p) {
      DeletionAnswer& answer = to.partitions[p];
      answer.partition_index = from.partitions[p].partition_index;
      answer.low_watermark = -1;
      if (!has_partition(topic, answer.partition_index)) {
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
        continue;
      }
      if (refused) {
        answer.error_code = number(ErrorCode::invalid_topic_exception);
        continue;
      }
      const base::TopicPartition id = {topic->id, answer.partition_index};
      by_shard[broker.shard_index_of(id)].push_back({id, from.partitions[p].offset, &answer});
    }
  }
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, items = std::move(by_shard[i])] { return delete_on_shard(*target, items); };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
  co_return respond(request, message);
}

}  // namespace broker::api
