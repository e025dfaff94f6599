#include "broker/groups/consumer/classic_member.h"

#include <algorithm>
#include <utility>

#include "broker/groups/consumer/embedded_protocol.h"
#include "broker/groups/consumer/membership.h"
#include "broker/groups/consumer/migration.h"

namespace broker::groups::consumer {
namespace {

using protocol::ErrorCode;
using Kind = TimerChange::Kind;

// Whether those that are there could have used one of its protocols together with it.
bool protocols_fit(const ConsumerGroup& group, const ClassicJoin& join) {
  if (join.protocol_type != "consumer" || join.protocols.empty()) return false;
  if (group.members().empty()) return true;
  return std::ranges::any_of(join.protocols, [&group](const ClassicProtocol& mine) {
    return std::ranges::all_of(group.members(), [&mine](const auto& other) {
      const std::optional<ClassicSide>& classic = other.second.classic;
      return !classic || std::ranges::find(classic->protocols, mine.name, &ClassicProtocol::name) !=
                             classic->protocols.end();
    });
  });
}

Partitions owned_partitions(const NamedPartitions& named, const TopicsView& topics) {
  Partitions out;
  for (const auto& [name, partitions] : named) {
    if (const std::optional<TopicFacts> topic = topics.find(name)) out[topic->id] = partitions;
  }
  return out;
}

class JoinOfClassic {
 public:
  JoinOfClassic(const ConsumerGroup& group, const ClassicJoin& join, const Surroundings& around)
      : group_(group),
        join_(join),
        around_(around),
        id_(join.member_id.empty() ? join.fresh_member_id : join.member_id) {}

  ClassicJoinOutcome run() {
    const ErrorCode error = decide();
    if (error == ErrorCode::none) return std::move(out_);
    ClassicJoinOutcome refused;
    refused.error = error;
    if (error == ErrorCode::member_id_required) refused.member_id = id_;
    return refused;
  }

 private:
  ErrorCode decide() {
    if (around_.settings.migration_policy == MigrationPolicy::disabled)
      return ErrorCode::inconsistent_group_protocol;
    const bool known = group_.find(id_) != nullptr ||
                       (join_.instance_id && group_.static_member(*join_.instance_id) != nullptr);
    if (!known && group_.members().size() >= static_cast<std::size_t>(around_.settings.max_size))
      return ErrorCode::group_max_size_reached;
    if (!protocols_fit(group_, join_)) return ErrorCode::inconsistent_group_protocol;
    if (join_.member_id.empty() && join_.must_know_its_id && !join_.instance_id)
      return ErrorCode::member_id_required;
    const auto subscription = parse_embedded_subscription(join_.protocols.front().metadata);
    if (!subscription) return ErrorCode::inconsistent_group_protocol;
    if (const ErrorCode error = find(); error != ErrorCode::none) return error;
    return step(*subscription);
  }

  ErrorCode find() {
    old_.id = id_;
    if (!join_.instance_id) {
      if (const Member* there = group_.find(id_)) old_ = *there;
      return ErrorCode::none;
    }
    const Member* there = group_.static_member(*join_.instance_id);
    if (!join_.member_id.empty()) {
      if (there == nullptr) return ErrorCode::unknown_member_id;
      if (there->id != id_) return ErrorCode::fenced_instance_id;
      old_ = *there;
      replaces(*there);
      return ErrorCode::none;
    }
    if (there == nullptr) return ErrorCode::none;
    replaces(*there);
    // The classic protocol has no way to say that a static member will come back.
    old_ = *there;
    old_.id = id_;
    old_.epoch = old_.previous_epoch = joining_epoch;
    replace_member(group_, *there, old_, out_);
    return ErrorCode::none;
  }

  void replaces(const Member& there) {
    if (is_downgraded_without(group_, there, around_)) last_modern_ = &there;
  }

  ErrorCode step(const EmbeddedSubscription& subscription) {
    Member updated = old_;
    if (join_.instance_id) updated.instance_id = join_.instance_id;
    if (subscription.rack && !subscription.rack->empty()) updated.rack_id = subscription.rack;
    updated.rebalance_timeout_ms = join_.rebalance_timeout_ms;
    updated.topics = TopicNames(subscription.topics.begin(), subscription.topics.end());
    updated.regex.clear();
    updated.client_id = join_.client_id;
    updated.client_host = join_.client_host;
    updated.classic = ClassicSide{join_.session_timeout_ms, join_.protocols};
    SubscriptionChange change;
    if (const auto refusal = update_subscription(group_, old_, updated, around_, change, out_))
      return refusal->error;
    std::int32_t group_epoch = group_.epoch;
    if (change.any() || group_.is_refresh_due(around_.now_ms))
      group_epoch = refresh_metadata(group_, old_, updated, change.any(), around_, out_);
    const Partitions owned = owned_partitions(subscription.owned, around_.topics);
    out_.member_id = id_;
    out_.protocol = join_.protocols.front().name;
    if (last_modern_ != nullptr) return downgrade(updated, group_epoch, change.any(), owned);
    const Target target = update_target(group_, group_epoch, old_, updated, around_, out_);
    const auto next = take_step(group_, updated, target, change.any(), owned, around_, out_);
    if (!next) return ErrorCode::unknown_member_id;
    out_.generation = next->epoch;
    cancel_timer(out_, Kind::join, id_);
    set_timer(out_, Kind::session, id_, join_.session_timeout_ms);
    set_timer(out_, Kind::sync, id_, join_.rebalance_timeout_ms);
    return ErrorCode::none;
  }

  // It takes its step, if there is one, and then speaks to a classic group.
  ErrorCode downgrade(const Member& updated, std::int32_t group_epoch, bool subscription_changed,
                      const Partitions& owned) {
    std::optional<Member> next = updated;
    if (group_.assignment_epoch >= group_epoch) {
      const Target target{group_.assignment_epoch, group_.target_of(last_modern_->id)};
      next = take_step(group_, updated, target, subscription_changed, owned, around_, out_);
      if (!next) return ErrorCode::unknown_member_id;
    }
    out_.generation = next->epoch;
    downgrade_with(group_, *last_modern_, *next, group_epoch, around_, out_);
    return ErrorCode::none;
  }

  const ConsumerGroup& group_;
  const ClassicJoin& join_;
  const Surroundings& around_;
  const std::string id_;
  Member old_;
  const Member* last_modern_ = nullptr;  // that is replaced: the group is to be downgraded
  ClassicJoinOutcome out_;
};

struct FoundMember {
  const Member* member = nullptr;
  ErrorCode error = ErrorCode::none;
};

FoundMember find_classic_member(const ConsumerGroup& group, const ClassicCaller& caller) {
  const Member* member =
      caller.instance_id ? group.static_member(*caller.instance_id) : group.find(caller.member_id);
  if (member == nullptr) return {nullptr, ErrorCode::unknown_member_id};
  if (member->id != caller.member_id) return {nullptr, ErrorCode::fenced_instance_id};
  if (!member->classic) return {nullptr, ErrorCode::unknown_member_id};
  if (member->epoch != caller.generation) return {nullptr, ErrorCode::illegal_generation};
  return {member, ErrorCode::none};
}

void set_join_timer(Outcome& out, const Member& member) {
  out.timers.push_back({Kind::join, member.id, member.rebalance_timeout_ms, 0, true});
}

// Whether all that it waits for is free, so that it can be given to it.
bool all_released(const ConsumerGroup& group, const Member& member) {
  for (const auto& [topic, partitions] : group.target_of(member.id)) {
    for (const std::int32_t partition : partitions) {
      if (!contains(member.assigned, topic, partition) && group.is_held(topic, partition))
        return false;
    }
  }
  return true;
}

}  // namespace

ClassicJoinOutcome decide_classic_join(const ConsumerGroup& group, const ClassicJoin& join,
                                       const Surroundings& around) {
  return JoinOfClassic(group, join, around).run();
}

ClassicSyncOutcome decide_classic_sync(const ConsumerGroup& group, const ClassicCaller& caller,
                                       const Surroundings& around) {
  ClassicSyncOutcome out;
  const FoundMember found = find_classic_member(group, caller);
  out.error = found.error;
  if (out.error != ErrorCode::none) return out;
  const Member& member = *found.member;
  out.protocol = member.classic->protocols.front().name;
  if ((caller.protocol_type && *caller.protocol_type != "consumer") ||
      (caller.protocol && *caller.protocol != out.protocol)) {
    out.error = ErrorCode::inconsistent_group_protocol;
    return out;
  }
  // One that has yet to give up partitions has joined already, and is told so after that.
  if (group.assignment_epoch > member.epoch && member.state != MemberState::unrevoked_partitions) {
    set_join_timer(out, member);
    out.error = ErrorCode::rebalance_in_progress;
    return out;
  }
  cancel_timer(out, Kind::sync, member.id);
  set_timer(out, Kind::session, member.id, member.classic->session_timeout_ms);
  out.assignment =
      assignment_for(*member.classic, out.protocol, without_epochs(member.assigned), around.topics);
  return out;
}

ClassicOutcome decide_classic_heartbeat(const ConsumerGroup& group, const ClassicCaller& caller) {
  ClassicOutcome out;
  const FoundMember found = find_classic_member(group, caller);
  out.error = found.error;
  if (out.error != ErrorCode::none) return out;
  const Member& member = *found.member;
  set_timer(out, Kind::session, member.id, member.classic->session_timeout_ms);
  // The next target is computed with a heartbeat of the other protocol, or else with a join.
  const bool takes_a_join =
      group.assignment_epoch < group.epoch && group.classic_members() == group.members().size();
  const bool must_join =
      takes_a_join || member.epoch < group.assignment_epoch ||
      member.state == MemberState::unrevoked_partitions ||
      (member.state == MemberState::unreleased_partitions && all_released(group, member));
  if (must_join) {
    set_join_timer(out, member);
    out.error = ErrorCode::rebalance_in_progress;
  }
  return out;
}

ClassicLeaveOutcome decide_classic_leave(const ConsumerGroup& group,
                                         const std::vector<ClassicLeaver>& leavers,
                                         const Surroundings& around) {
  ClassicLeaveOutcome out;
  std::vector<std::string> gone;
  for (const ClassicLeaver& one : leavers) {
    const Member* member =
        one.instance_id ? group.static_member(*one.instance_id) : group.find(one.member_id);
    ErrorCode& error = out.errors.emplace_back(ErrorCode::none);
    if (member == nullptr) {
      error = ErrorCode::unknown_member_id;
    } else if (one.instance_id && !one.member_id.empty() && member->id != one.member_id) {
      error = ErrorCode::fenced_instance_id;
    } else if (std::ranges::find(gone, member->id) == gone.end()) {
      gone.push_back(member->id);
    }
  }
  if (!gone.empty()) lose_members(group, gone, around, out);
  return out;
}

}  // namespace broker::groups::consumer
