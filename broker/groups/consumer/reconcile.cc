#include "broker/groups/consumer/reconcile.h"

#include <algorithm>
#include <utility>

namespace broker::groups::consumer {
namespace {

bool any_of_them_owned(const HeldPartitions& held, const std::optional<Partitions>& owned) {
  if (!owned) return true;  // nothing was said: it may have any
  return std::ranges::any_of(*owned, [&held](const auto& topic) {
    return std::ranges::any_of(topic.second, [&](std::int32_t partition) {
      return contains(held, topic.first, partition);
    });
  });
}

void enter(Member& member, MemberState state, std::int32_t epoch) {
  member.state = state;
  member.previous_epoch = std::exchange(member.epoch, epoch);
}

// The target is that of before the subscription changed: only what is not wanted any more goes.
Member drop_unsubscribed(const Member& member, const ReconcileTo& to) {
  Member next = member;
  bool any = false;
  for (const auto& [topic, partitions] : member.assigned) {
    if (to.subscribed.contains(topic)) continue;
    any = true;
    next.assigned.erase(topic);
    next.revoking[topic].insert(partitions.begin(), partitions.end());
  }
  if (!any) return member;
  if (any_of_them_owned(next.revoking, to.owned)) {
    enter(next, MemberState::unrevoked_partitions, member.epoch);
  } else {
    next.revoking = member.revoking;
    enter(next, member.state, member.epoch);
  }
  return next;
}

struct Comparison {
  HeldPartitions kept, to_revoke;
  Partitions to_assign;  // free
  bool unreleased = false;
};

Comparison compare(const ConsumerGroup& group, const Member& member, const ReconcileTo& to) {
  Comparison out;
  const auto is_target = [&to](const base::Uuid& topic, std::int32_t partition) {
    const auto at = to.target.find(topic);
    return at != to.target.end() && at->second.contains(partition) && to.subscribed.contains(topic);
  };
  for (const auto& [topic, partitions] : member.assigned) {
    for (const auto& [partition, epoch] : partitions)
      (is_target(topic, partition) ? out.kept : out.to_revoke)[topic].emplace(partition, epoch);
  }
  for (const auto& [topic, partitions] : to.target) {
    if (!to.subscribed.contains(topic)) continue;
    for (const std::int32_t partition : partitions) {
      if (contains(out.kept, topic, partition)) continue;
      // What it has given up just now may come back to it at once.
      if (group.is_held(topic, partition) && !contains(member.revoking, topic, partition))
        out.unreleased = true;
      else
        out.to_assign[topic].insert(partition);
    }
  }
  return out;
}

Member step_to_target(const ConsumerGroup& group, const Member& member, std::int32_t epoch,
                      const ReconcileTo& to) {
  Comparison found = compare(group, member, to);
  Member next = member;
  next.assigned = std::move(found.kept);
  if (!found.to_revoke.empty() && any_of_them_owned(found.to_revoke, to.owned)) {
    next.revoking = std::move(found.to_revoke);
    enter(next, MemberState::unrevoked_partitions, epoch);
    return next;
  }
  next.revoking.clear();
  for (const auto& [topic, partitions] : found.to_assign) {
    for (const std::int32_t partition : partitions)
      next.assigned[topic].emplace(partition, to.assignment_epoch);
  }
  enter(next, found.unreleased ? MemberState::unreleased_partitions : MemberState::stable,
        to.assignment_epoch);
  return next;
}

}  // namespace

std::optional<Member> reconcile(const ConsumerGroup& group, const Member& member,
                                const ReconcileTo& to) {
  switch (member.state) {
    case MemberState::stable:
      if (member.epoch != to.assignment_epoch)
        return step_to_target(group, member, member.epoch, to);
      return to.subscription_changed ? drop_unsubscribed(member, to) : member;
    case MemberState::unrevoked_partitions:
      if (!any_of_them_owned(member.revoking, to.owned))
        return step_to_target(group, member, member.epoch, to);
      return to.subscription_changed ? drop_unsubscribed(member, to) : member;
    case MemberState::unreleased_partitions:
      return step_to_target(group, member, member.epoch, to);
    case MemberState::unknown:
      if (!to.owned || !to.owned->empty()) return std::nullopt;
      return step_to_target(group, member, to.assignment_epoch, to);
  }
  return std::nullopt;
}

}  // namespace broker::groups::consumer
