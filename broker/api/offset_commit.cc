// OffsetCommit v2-10: answered when the offsets are on disk.
//   v2-4 a retention time of their own; v6 leader epoch; v7 static members; v9 member epochs and a
//   name for a group that is not there; v10 topics by id.
#include <algorithm>

#include "broker/api/group_request.h"
#include "protocol/messages/offset_commit.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::OffsetCommitRequest;
using protocol::OffsetCommitResponse;
using CommitAnswer = OffsetCommitResponse::Topic::Partition;

namespace {

constexpr std::int16_t topic_ids_since = 10;
constexpr std::int64_t no_retention_time = -1;

groups::OffsetCommit commit_of(const OffsetCommitRequest& asked) {
  groups::OffsetCommit commit;
  commit.group = asked.group_id;
  commit.generation_or_epoch = asked.generation_id_or_member_epoch;
  commit.member_id = asked.member_id;
  commit.instance_id = asked.group_instance_id;
  if (asked.retention_time_ms != no_retention_time) commit.retention_ms = asked.retention_time_ms;
  return commit;
}

// Refuses what is not there, and makes the rest entries of the commit; answers where each entry's
// error belongs.
std::vector<CommitAnswer*> sort_out_commit(const Snapshot& catalog, const Request& request,
                                           const OffsetCommitRequest& asked,
                                           OffsetCommitResponse& message,
                                           groups::OffsetCommit& commit) {
  const bool by_id = request.version() >= topic_ids_since;
  std::vector<CommitAnswer*> places;
  message.topics.reserve(asked.topics.size());
  for (const OffsetCommitRequest::Topic& from : asked.topics) {
    const TopicPtr topic = by_id ? catalog.find(from.topic_id) : catalog.find(from.name);
    OffsetCommitResponse::Topic& to = message.topics.emplace_back();
    to.name = from.name;
    to.topic_id = from.topic_id;
    to.partitions.reserve(from.partitions.size());
    for (const OffsetCommitRequest::Topic::Partition& one : from.partitions) {
      CommitAnswer& answer = to.partitions.emplace_back();
      answer.partition_index = one.partition_index;
      if (!has_partition(topic, one.partition_index)) {
        answer.error_code = number(by_id && !topic ? ErrorCode::unknown_topic_id
                                                   : ErrorCode::unknown_topic_or_partition);
        continue;
      }
      groups::OffsetCommit::Entry& entry = commit.entries.emplace_back();
      entry.topic = topic->name;
      entry.topic_id = topic->id;
      entry.partition = one.partition_index;
      entry.offset = one.committed_offset;
      entry.leader_epoch = epoch_of(one.committed_leader_epoch);
      entry.metadata = one.committed_metadata.value_or("");
      places.push_back(&answer);
    }
  }
  return places;
}

}  // namespace

Task<Response> offset_commit(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<OffsetCommitRequest>(request);
  if (!asked) co_return malformed();
  OffsetCommitResponse message;
  groups::OffsetCommit commit = commit_of(*asked);
  const SnapshotPtr catalog = shard.catalog();
  const auto places = sort_out_commit(*catalog, request, *asked, message, commit);
  if (places.empty()) co_return respond(request, message);
  const groups::Caller caller = caller_of(request);
  auto ask = [&commit, &caller](groups::GroupShard& state, groups::Now now) {
    return state.commit(commit, caller, now);
  };
  const auto outcome = co_await broker.groups().decide(commit.group, std::move(ask));
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i]->error_code =
        number(outcome.error != ErrorCode::none ? outcome.error : outcome.value[i]);
  co_return respond(request, message);
}

}  // namespace broker::api
