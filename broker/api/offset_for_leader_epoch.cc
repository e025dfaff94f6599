// OffsetForLeaderEpoch v2-4: where a leader epoch ended, so that a reader can tell whether its
// position is still part of the log.
//   v2 the reader's leader epoch; v3 replica id; v4 flexible. An epoch that the log has not seen is
//   (-1, -1), one that is missing between others is answered with the largest smaller one (B12).
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/offset_for_leader_epoch.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::OffsetForLeaderEpochRequest;
using protocol::OffsetForLeaderEpochResponse;
using EpochAnswer = OffsetForLeaderEpochResponse::Topic::Partition;

struct EpochQuery {
  base::TopicPartition id;
  std::optional<base::LeaderEpoch> current_leader_epoch;
  base::LeaderEpoch epoch = 0;
  EpochAnswer* answer = nullptr;
};

void find_epoch_end(const Partition& partition, const EpochQuery& item) {
  if (const auto ok = partition.check_leader_epoch(item.current_leader_epoch); ok.has_error()) {
    item.answer->error_code = number(ok.error());
  } else if (const auto end = partition.log().end_offset_for(item.epoch)) {
    item.answer->leader_epoch = end->epoch;
    item.answer->end_offset = end->end_offset;
  }
}

Task<bool> find_ends_on_shard(Shard& shard, std::vector<EpochQuery> items) {
  for (const EpochQuery& item : items) {
    if (const auto partition = shard.find(item.id))
      find_epoch_end(*partition, item);
    else
      item.answer->error_code = number(missing_partition);
  }
  co_return true;
}

}  // namespace

Task<Response> offset_for_leader_epoch(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<OffsetForLeaderEpochRequest>(request);
  if (!asked) co_return malformed();
  const Snapshot& catalog = *shard.catalog();
  std::vector<std::vector<EpochQuery>> by_shard(broker.shard_count());
  OffsetForLeaderEpochResponse message;
  message.topics.resize(asked->topics.size());
  for (std::size_t t = 0; t < asked->topics.size(); ++t) {
    const auto& from = asked->topics[t];
    auto& to = message.topics[t];
    to.topic = from.topic;
    to.partitions.resize(from.partitions.size());
    const TopicPtr topic = catalog.find(from.topic);
    for (std::size_t p = 0; p < from.partitions.size(); ++p) {
      const auto& one = from.partitions[p];
      EpochAnswer& answer = to.partitions[p];
      answer.partition = one.partition;
      if (!has_partition(topic, one.partition)) {
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
        continue;
      }
      const base::TopicPartition id = {topic->id, one.partition};
      // Not as in Fetch: what is below -1 is an epoch, and an old one.
      std::optional<base::LeaderEpoch> current;
      if (one.current_leader_epoch != -1) current = one.current_leader_epoch;
      by_shard[broker.shard_index_of(id)].push_back({id, current, one.leader_epoch, &answer});
    }
  }
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, items = std::move(by_shard[i])] {
      return find_ends_on_shard(*target, items);
    };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
  co_return respond(request, message);
}

}  // namespace broker::api
