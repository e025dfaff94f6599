#include "broker/groups/consumer/offset_fence.h"

namespace broker::groups::consumer {

using protocol::ErrorCode;

namespace {

ErrorCode wrong_epoch(const Member& member) {
  return member.classic ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
}

std::optional<std::int32_t> held_since(const HeldPartitions& held, const base::Uuid& topic,
                                       std::int32_t partition) {
  const auto of_topic = held.find(topic);
  if (of_topic == held.end()) return std::nullopt;
  const auto at = of_topic->second.find(partition);
  return at == of_topic->second.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

CommitFence::CommitFence(const ConsumerGroup& group, const CommitCaller& caller)
    : epoch_(caller.epoch) {
  // Tools, and consumers that choose their partitions themselves.
  if (caller.epoch < 0 && group.members().empty()) return;
  const bool says_nothing = caller.epoch == -1 && caller.member_id.empty() && !caller.instance_id;
  if (caller.transactional && says_nothing) return;
  const Member* member = group.find(caller.member_id);
  if (member == nullptr) {
    error_ = ErrorCode::unknown_member_id;
  } else if (!caller.transactional && !member->classic && caller.version < 9) {
    error_ = ErrorCode::unsupported_version;
  } else if (caller.epoch > member->epoch) {
    error_ = wrong_epoch(*member);
  } else if (caller.epoch < member->epoch) {
    behind_ = member;
  }
}

ErrorCode CommitFence::error_of(const std::optional<base::Uuid>& topic,
                                std::int32_t partition) const {
  if (error_ != ErrorCode::none || behind_ == nullptr) return error_;
  if (!topic) return wrong_epoch(*behind_);
  std::optional<std::int32_t> since = held_since(behind_->assigned, *topic, partition);
  if (!since) since = held_since(behind_->revoking, *topic, partition);
  return since && epoch_ >= *since ? ErrorCode::none : wrong_epoch(*behind_);
}

ErrorCode check_offset_fetch(const ConsumerGroup& group,
                             const std::optional<std::string>& member_id, std::int32_t epoch) {
  if (!member_id && epoch < 0) return ErrorCode::none;
  const Member* member = member_id ? group.find(*member_id) : nullptr;
  if (member == nullptr) return ErrorCode::unknown_member_id;
  return epoch == member->epoch ? ErrorCode::none : wrong_epoch(*member);
}

}  // namespace broker::groups::consumer
