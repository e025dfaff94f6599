// TxnOffsetCommit: offsets as part of a producer's transaction.
#include <algorithm>

#include "broker/groups/consumer/offset_fence.h"
#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"

namespace broker::groups {

using protocol::ErrorCode;

namespace {

// From here on clients are told of a missing group and a stale member epoch by these names.
constexpr std::int16_t tells_newer_errors_since = 6;

ErrorCode as_told_in(std::int16_t version, ErrorCode error) {
  if (version >= tells_newer_errors_since) return error;
  const bool newer =
      error == ErrorCode::stale_member_epoch || error == ErrorCode::group_id_not_found;
  return newer ? ErrorCode::illegal_generation : error;
}

}  // namespace

// One error that is not of a single partition is that of all.
std::vector<ErrorCode> GroupShard::check_in_transaction(const OffsetCommit& asked,
                                                        const Caller& caller) const {
  const auto all = [&](ErrorCode error) {
    return std::vector<ErrorCode>(asked.entries.size(), as_told_in(caller.version, error));
  };
  const auto at = groups_.find(asked.group);
  const consumer::ConsumerGroup* modern = consumer_group(asked.group);
  ErrorCode error = ErrorCode::none;
  std::optional<consumer::CommitFence> fence;
  if (at == groups_.end()) {
    // Without a member a simple group comes into being.
    if (asked.generation_or_epoch >= 0) error = ErrorCode::group_id_not_found;
  } else if (modern) {
    fence.emplace(*modern, consumer::CommitCaller{asked.member_id, asked.instance_id,
                                                  asked.generation_or_epoch, caller.version, true});
    error = fence->error();
  } else {
    // A member that knows its generation may commit while the others join, since what it read of
    // the generation before is its own until the transaction ends; a producer that says nothing of
    // a member is let through at any time, as it is by its transactional id that it is fenced.
    error = check_classic_commit(std::get<ClassicGroup>(at->second), asked, ErrorCode::none);
  }
  if (error != ErrorCode::none) return all(error);
  std::vector<ErrorCode> each;
  for (const OffsetCommit::Entry& entry : asked.entries) {
    if (entry.metadata.size() > static_cast<std::size_t>(limits_.offset_metadata_bytes_max)) {
      each.push_back(ErrorCode::offset_metadata_too_large);
      continue;
    }
    if (fence) error = fence->error_of(entry.topic_id, entry.partition);
    if (error != ErrorCode::none) return all(error);
    each.push_back(ErrorCode::none);
  }
  return each;
}

Decided<std::vector<ErrorCode>> GroupShard::commit_in_transaction(const OffsetCommit& asked,
                                                                  Producer producer,
                                                                  const Caller& caller, Now now) {
  Decided<std::vector<ErrorCode>> out;
  out.answer = check_in_transaction(asked, caller);
  out.transaction = producer;
  for (std::size_t i = 0; i < asked.entries.size(); ++i) {
    if (out.answer[i] != ErrorCode::none) continue;  // leaves nothing behind: C15
    const OffsetCommit::Entry& entry = asked.entries[i];
    out.records.push_back(
        offset_record(asked.group, entry.topic, entry.partition, committed(asked, entry, now)));
  }
  return out;
}

}  // namespace broker::groups
