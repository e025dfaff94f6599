// TxnOffsetCommit v0-6: answered when the offsets are on disk, where they are pending until the
// marker of their transaction comes (GroupCoordinator::end_transaction).
//   v2 leader epoch, and producers who bear to hear that the groups are being loaded; v3 members
//   and generations (KIP-447); v4 and v5 only the transaction coordinator tells apart (KIP-890); v6
//   topics by id, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH in place of ILLEGAL_GENERATION.
#include "broker/api/commit_entries.h"
#include "broker/api/group_request.h"
#include "broker/partition.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/txn_offset_commit.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::TxnOffsetCommitRequest;
using protocol::TxnOffsetCommitResponse;

namespace {

constexpr std::int16_t txn_topic_ids_since = 6;
constexpr std::int16_t bears_loading_since = 2;
constexpr std::int16_t offsets_abortable_since = 4;  // TRANSACTION_ABORTABLE is known
constexpr std::int16_t adds_offsets_since = 5;

// Errors of the transaction coordinator as this API tells them.
ErrorCode offsets_error(ErrorCode error, std::int16_t version) {
  switch (error) {
    case ErrorCode::producer_fenced:
      return ErrorCode::invalid_producer_epoch;
    case ErrorCode::transaction_abortable:
      return version < offsets_abortable_since ? ErrorCode::invalid_txn_state : error;
    case ErrorCode::concurrent_transactions:
      return version < adds_offsets_since ? ErrorCode::coordinator_not_available : error;
    case ErrorCode::not_coordinator:
    case ErrorCode::coordinator_load_in_progress:
      return ErrorCode::coordinator_not_available;
    default:
      return error;
  }
}

// On the shard of the partition that keeps the group. Whether the transaction is still open.
bool take_back(const TransactionCoordinator::OffsetsAdmission& admission,
               const groups::Producer& producer) {
  const auto partition = Shard::current()->find(admission.place);
  if (!partition) return false;
  const bool open = partition->may_write_transaction(producer.id, producer.epoch, admission.ticket);
  if (admission.ticket) partition->give_back(*admission.ticket);
  return open;
}

// What is found wrong here is wrong with all that was asked for.
using StagedOutcome = CoordinatorOutcome<std::vector<ErrorCode>>;

Task<StagedOutcome> stage_offsets(Broker& broker, const Request& request,
                                  const TxnOffsetCommitRequest& asked,
                                  const groups::OffsetCommit& commit) {
  StagedOutcome refused;
  refused.error = ErrorCode::invalid_group_id;
  if (asked.group_id.empty()) co_return refused;
  // From here on the producer's transaction is taken to be open, and the group's partition of
  // __consumer_offsets to be in it.
  const groups::Producer producer = {asked.producer_id, asked.producer_epoch};
  const transactions::Producer in_transaction = {producer.id, producer.epoch};
  const auto admission = co_await broker.transactions().admit_offsets(
      asked.transactional_id, in_transaction, asked.group_id,
      request.version() >= adds_offsets_since);
  const groups::Caller caller = caller_of(request);
  bool taken_back = false;
  auto ask = [&](groups::GroupShard& state, groups::Now now) {
    ErrorCode error = offsets_error(admission.error, request.version());
    const bool open = take_back(admission, producer);
    taken_back = true;
    if (!open && error == ErrorCode::none) error = ErrorCode::invalid_txn_state;
    if (error == ErrorCode::none) return state.commit_in_transaction(commit, producer, caller, now);
    groups::Decided<std::vector<ErrorCode>> none;
    none.answer.assign(commit.entries.size(), error);
    return none;
  };
  StagedOutcome outcome = co_await broker.groups().decide(commit.group, std::move(ask));
  if (!taken_back && admission.ticket) {
    auto give_back = [&admission, &producer]() -> Task<bool> {
      co_return take_back(admission, producer);
    };
    co_await on(broker.shard_of(admission.place), std::move(give_back));
  }
  co_return outcome;
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
