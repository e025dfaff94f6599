// TxnOffsetCommit v0-6: answered when the offsets are on disk, where they are pending until the
// marker of their transaction comes (GroupCoordinator::end_transaction).
//   v2 leader epoch, and producers who bear to hear that the groups are being loaded; v3 members
//   and generations (KIP-447); v4 and v5 only the transaction coordinator tells apart (KIP-890); v6
//   topics by id, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH in place of ILLEGAL_GENERATION.
#include "broker/api/commit_entries.h"
#include "broker/api/group_request.h"
#include "protocol/messages/txn_offset_commit.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::TxnOffsetCommitRequest;
using protocol::TxnOffsetCommitResponse;

namespace {

constexpr std::int16_t txn_topic_ids_since = 6;
constexpr std::int16_t bears_loading_since = 2;

// What is found wrong here is wrong with all that was asked for.
using StagedOutcome = GroupOutcome<std::vector<ErrorCode>>;

Task<StagedOutcome> stage_offsets(Broker& broker, const Request& request,
                                  const TxnOffsetCommitRequest& asked,
                                  const groups::OffsetCommit& commit) {
  StagedOutcome refused;
  refused.error = ErrorCode::invalid_group_id;
  if (asked.group_id.empty()) co_return refused;
  // From here on the producer's transaction is taken to be open, and the group's partition of
  // __consumer_offsets to be in it.
  const groups::Producer producer = {asked.producer_id, asked.producer_epoch};
  const groups::Caller caller = caller_of(request);
  auto ask = [&commit, &caller, producer](groups::GroupShard& state, groups::Now now) {
    return state.commit_in_transaction(commit, producer, caller, now);
  };
  co_return co_await broker.groups().decide(commit.group, std::move(ask));
}

}  // namespace

Task<Response> txn_offset_commit(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<TxnOffsetCommitRequest>(request);
  if (!asked) co_return malformed();
  TxnOffsetCommitResponse message;
  groups::OffsetCommit commit;
  commit.group = asked->group_id;
  commit.generation_or_epoch = asked->generation_id_or_member_epoch;
  commit.member_id = asked->member_id;
  commit.instance_id = asked->group_instance_id;
  const bool by_id = request.version() >= txn_topic_ids_since;
  const auto places =
      sort_out_commit(*shard.catalog(), by_id, asked->topics, message.topics, commit);
  if (places.empty()) co_return respond(request, message);
  StagedOutcome outcome = co_await stage_offsets(broker, request, *asked, commit);
  if (outcome.error == ErrorCode::coordinator_load_in_progress &&
      request.version() < bears_loading_since)
    outcome.error = ErrorCode::coordinator_not_available;
  for (std::size_t i = 0; i < places.size(); ++i)
    *places[i] = number(outcome.error != ErrorCode::none ? outcome.error : outcome.value[i]);
  co_return respond(request, message);
}

}  // namespace broker::api
