// The offsets in a request to commit some, in a transaction or not.
#pragma once
#include <cstdint>
#include <vector>

#include "broker/api/locate.h"
#include "broker/catalog.h"
#include "broker/groups/group_shard.h"
#include "protocol/error_code.h"

namespace broker::api {

// Refuses what is not there, and makes the rest entries of the commit; answers where each entry's
// error belongs, which is there as long as `answers`. `by_id`: topics are named by their id.
template <class Topic, class TopicAnswer>
std::vector<std::int16_t*> sort_out_commit(const Snapshot& catalog, bool by_id,
                                           const std::vector<Topic>& topics,
                                           std::vector<TopicAnswer>& answers,
                                           groups::OffsetCommit& commit) {
  std::vector<std::int16_t*> places;
  answers.reserve(topics.size());
  for (const Topic& from : topics) {
    const TopicPtr topic = by_id ? catalog.find(from.topic_id) : catalog.find(from.name);
    if (topic && from.partitions.empty()) continue;  // Kafka says nothing of it
    TopicAnswer& to = answers.emplace_back();
    to.name = from.name;
    to.topic_id = from.topic_id;
    to.partitions.reserve(from.partitions.size());
    for (const auto& one : from.partitions) {
      auto& answer = to.partitions.emplace_back();
      answer.partition_index = one.partition_index;
      if (!has_partition(topic, one.partition_index)) {
        answer.error_code =
            number(by_id && !topic ? protocol::ErrorCode::unknown_topic_id
                                   : protocol::ErrorCode::unknown_topic_or_partition);
        continue;
      }
      groups::OffsetCommit::Entry& entry = commit.entries.emplace_back();
      entry.topic = topic->name;
      entry.topic_id = topic->id;
      entry.partition = one.partition_index;
      entry.offset = one.committed_offset;
      entry.leader_epoch = epoch_of(one.committed_leader_epoch);
      entry.metadata = one.committed_metadata.value_or("");
      places.push_back(&answer.error_code);
    }
  }
  return places;
}

}  // namespace broker::api
