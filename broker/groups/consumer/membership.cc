#include "broker/groups/consumer/membership.h"

#include <algorithm>
#include <utility>

#include "broker/groups/consumer/reconcile.h"
#include "broker/groups/consumer/records.h"
#include "broker/groups/consumer/topic_regex.h"

namespace broker::groups::consumer {
namespace {

using protocol::ErrorCode;

// The group's wishes once the member is as it is to be; `old` is one that wishes nothing if the
// member is new. An expression that nobody uses any more takes its topics with it.
Subscriptions subscriptions_after(const ConsumerGroup& group, const Member& old,
                                  const Member& updated) {
  Subscriptions after = group.subscriptions();
  after.remove(old);
  after.add(updated);
  if (!old.regex.empty() && after.users_of(old.regex) == 0) {
    if (const ResolvedRegex* resolved = group.find_regex(old.regex)) after.remove(*resolved);
  }
  return after;
}

// Whether what the group's expressions stand for is to be looked up again.
bool needs_lookup(const ConsumerGroup& group, const Subscriptions& after, bool is_new_regex,
                  const Surroundings& around) {
  if (after.regexes.empty() || (!is_new_regex && group.subscriptions().regexes.empty()))
    return false;
  if (group.regexes().empty()) return true;
  // All were looked up at once, but for those of which nobody uses any more.
  std::int64_t last_ms = 0, version = 0;
  for (const auto& [regex, resolved] : group.regexes()) {
    last_ms = std::max(last_ms, resolved.resolved_ms);
    version = std::max(version, resolved.version);
  }
  if (around.now_ms <= last_ms + regex_refresh_interval_min_ms) return false;
  return is_new_regex || after.regexes.size() != group.regexes().size() ||
         version != around.topics.version() ||
         around.now_ms > last_ms + around.settings.regex_refresh_interval_ms;
}

AssignmentInput assignment_input(const ConsumerGroup& group, const Member& updated,
                                 const TopicsView& topics) {
  AssignmentInput input;
  const Member* replaced =
      updated.instance_id ? group.static_member(*updated.instance_id) : nullptr;
  const std::string& target_holder =
      replaced != nullptr && replaced->id != updated.id ? replaced->id : updated.id;
  const auto add = [&](const Member& member, const std::string& previous) {
    AssignmentInput::Member& one = input.members.emplace_back();
    one.id = member.id;
    one.instance_id = member.instance_id;
    one.topics = subscribed_topic_ids(member, group.regexes(), topics);
    one.previous = group.target_of(previous);
    for (const base::Uuid& topic : one.topics) {
      if (input.partitions.contains(topic)) continue;
      input.partitions.emplace(topic, topics.find(topic)->partitions);
    }
  };
  for (const auto& [id, member] : group.members()) {
    if (id != updated.id && id != target_holder) add(member, id);
  }
  add(updated, target_holder);
  std::ranges::sort(input.members, {}, &AssignmentInput::Member::id);
  return input;
}

}  // namespace

void set_timer(Outcome& out, TimerChange::Kind kind, const std::string& member_id,
               std::int64_t after_ms, std::int32_t member_epoch) {
  out.timers.push_back({kind, member_id, after_ms, member_epoch, false});
}

void cancel_timer(Outcome& out, TimerChange::Kind kind, const std::string& member_id) {
  out.timers.push_back({kind, member_id, std::nullopt, 0, false});
}

void cancel_timers(Outcome& out, const std::string& member_id) {
  using Kind = TimerChange::Kind;
  for (const Kind kind : {Kind::session, Kind::rebalance, Kind::join, Kind::sync})
    cancel_timer(out, kind, member_id);
}

void replace_member(const ConsumerGroup& group, const Member& old, const Member& fresh,
                    Outcome& out) {
  add_member_tombstones(out.records, group.id(), old.id);
  out.records.push_back(member_record(group.id(), fresh));
  out.records.push_back(target_record(group.id(), fresh.id, group.target_of(old.id)));
  out.records.push_back(current_record(group.id(), fresh));
  if (old.id != fresh.id) cancel_timers(out, old.id);
}

std::optional<Refusal> update_subscription(const ConsumerGroup& group, const Member& old,
                                           const Member& updated, const Surroundings& around,
                                           SubscriptionChange& change, Outcome& out) {
  if (updated != old) out.records.push_back(member_record(group.id(), updated));
  change.names = updated.topics != old.topics;
  change.regex = updated.regex != old.regex;
  bool is_new_regex = false;
  if (change.regex) {
    if (!old.regex.empty() && group.subscriptions().users_of(old.regex) == 1)
      out.records.push_back(regex_tombstone(group.id(), old.regex));
    if (updated.regex.empty()) {
      change.regex_is_known = true;
    } else if (group.subscriptions().users_of(updated.regex) > 0) {
      change.regex_is_known = group.find_regex(updated.regex) != nullptr;
    } else {
      if (const std::optional<std::string> problem = problem_of_regex(updated.regex)) {
        return Refusal{ErrorCode::invalid_regular_expression,
                       "SubscribedTopicRegex '" + updated.regex +
                           "' is no regular expression (RE2): " + *problem};
      }
      is_new_regex = true;
    }
  }
  const Subscriptions after = subscriptions_after(group, old, updated);
  if (needs_lookup(group, after, is_new_regex, around)) {
    for (const auto& [regex, users] : after.regexes) out.regexes_to_resolve.push_back(regex);
  }
  return std::nullopt;
}

AssignorKind preferred_assignor(const Subscriptions& subscriptions, const Settings& settings) {
  AssignorKind best = settings.assignors.front();
  std::int32_t most = 0;
  for (const AssignorKind kind : settings.assignors) {
    const auto at = subscriptions.assignors.find(name_of(kind));
    if (at == subscriptions.assignors.end() || at->second <= most) continue;
    best = kind;
    most = at->second;
  }
  return best;
}

bool changes_assignor(const ConsumerGroup& group, const Member& old, const Member& updated,
                      const Settings& settings) {
  const Subscriptions after = subscriptions_after(group, old, updated);
  return preferred_assignor(group.subscriptions(), settings) != preferred_assignor(after, settings);
}

std::int32_t refresh_metadata(const ConsumerGroup& group, const Member& old, const Member& updated,
                              bool must_raise, const Surroundings& around, Outcome& out) {
  const Subscriptions after = subscriptions_after(group, old, updated);
  const std::int64_t hash = hash_of_topics(after.topic_names(), around.topics);
  std::int32_t epoch = group.epoch;
  if (must_raise || hash != group.metadata_hash) {
    ++epoch;
    out.records.push_back(epoch_record(group.id(), epoch, hash));
  }
  out.metadata_refresh = {around.now_ms + metadata_refresh_interval_ms, epoch};
  if (group.has_partition_metadata) out.records.push_back(partition_metadata_tombstone(group.id()));
  return epoch;
}

Target update_target(const ConsumerGroup& group, std::int32_t group_epoch, const Member& old,
                     const Member& updated, const Surroundings& around, Outcome& out) {
  const Member* replaced =
      updated.instance_id ? group.static_member(*updated.instance_id) : nullptr;
  const Partitions& present = group.target_of(replaced != nullptr ? replaced->id : updated.id);
  // A short while between two targets, so that many members that come at once cost one each. A
  // clock that was set back must not make it long.
  const std::int64_t age_ms = around.now_ms - group.assigned_ms;
  const std::int64_t interval_ms = around.settings.assignment_interval_ms;
  const bool too_early = group.assigned_ms != 0 && age_ms < interval_ms && age_ms > -interval_ms;
  if (group.assignment_epoch >= group_epoch || too_early) return {group.assignment_epoch, present};

  AssignmentInput input = assignment_input(group, updated, around.topics);
  const Subscriptions after = subscriptions_after(group, old, updated);
  input.homogeneous = after.is_homogeneous(input.members.size());
  AssignmentResult result = assign(preferred_assignor(after, around.settings), input);
  Target target{group_epoch, {}};
  for (std::size_t i = 0; i < input.members.size(); ++i) {
    const AssignmentInput::Member& member = input.members[i];
    // Its previous target is written down under another id, and moves with the member.
    const bool is_written =
        group.targets().contains(member.id) || (member.id == updated.id && replaced != nullptr);
    if (!is_written || result[i] != member.previous)
      out.records.push_back(target_record(group.id(), member.id, result[i]));
    if (member.id == updated.id) target.partitions = std::move(result[i]);
  }
  out.records.push_back(assignment_epoch_record(group.id(), group_epoch, around.now_ms));
  return target;
}

std::optional<Member> take_step(const ConsumerGroup& group, const Member& member,
                                const Target& target, bool subscription_changed,
                                const std::optional<Partitions>& owned, const Surroundings& around,
                                Outcome& out) {
  if (!subscription_changed && member.is_reconciled_to(target.epoch)) return member;
  const std::set<base::Uuid> subscribed =
      subscribed_topic_ids(member, group.regexes(), around.topics);
  std::optional<Member> next = reconcile(
      group, member, {target.epoch, target.partitions, subscription_changed, subscribed, owned});
  if (!next || *next == member) return next;
  out.records.push_back(current_record(group.id(), *next));
  if (!next->classic) {
    if (next->state == MemberState::unrevoked_partitions)
      set_timer(out, TimerChange::Kind::rebalance, next->id, next->rebalance_timeout_ms,
                next->epoch);
    else
      cancel_timer(out, TimerChange::Kind::rebalance, next->id);
  }
  return next;
}

void remove_members(const ConsumerGroup& group, const std::vector<std::string>& member_ids,
                    const Surroundings& around, Outcome& out) {
  Subscriptions after = group.subscriptions();
  for (const std::string& id : member_ids) {
    add_member_tombstones(out.records, group.id(), id);
    cancel_timers(out, id);
    after.remove(*group.find(id));
  }
  for (const auto& [regex, resolved] : group.regexes()) {
    if (after.users_of(regex) > 0) continue;
    out.records.push_back(regex_tombstone(group.id(), regex));
    after.remove(resolved);
  }
  const std::int32_t epoch = group.epoch + 1;
  const std::int64_t hash = hash_of_topics(after.topic_names(), around.topics);
  out.records.push_back(epoch_record(group.id(), epoch, hash));
  // Nobody is left to compute a target for, and whoever comes next need not wait for the interval.
  if (group.members().size() == member_ids.size())
    out.records.push_back(assignment_epoch_record(group.id(), epoch, 0));
}

}  // namespace broker::groups::consumer
