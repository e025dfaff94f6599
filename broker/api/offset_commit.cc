// OffsetCommit v2-10: answered when the offsets are on disk.
//   v2-4 a retention time of their own; v6 leader epoch; v7 static members; v9 member epochs and a
//   name for a group that is not there; v10 topics by id.
#include "broker/api/commit_entries.h"
#include "broker/api/group_request.h"
#include "protocol/messages/offset_commit.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::OffsetCommitRequest;
using protocol::OffsetCommitResponse;

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

}  // namespace

Task<Response> offset_commit(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<OffsetCommitRequest>(request);
  if (!asked) co_return malformed();
  OffsetCommitResponse message;
  groups::OffsetCommit commit = commit_of(*asked);
  const bool by_id = request.version() >= topic_ids_since;
  const auto places =
      sort_out_commit(*shard.catalog(), by_id, asked->topics, message.topics, commit);
  if (places.empty()) co_return respond(request, message);
  const groups::Caller caller = caller_of(request);
  auto ask = [&commit, &caller](groups::GroupShard& state, groups::Now now) {
    return state.commit(commit, caller, now);
  };
  const auto outcome = co_await broker.groups().decide(commit.group, std::move(ask));
  for (std::size_t i = 0; i < places.size(); ++i)
    *places[i] = number(outcome.error != ErrorCode::none ? outcome.error : outcome.value[i]);
  co_return respond(request, message);
}

}  // namespace broker::api
