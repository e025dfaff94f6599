// Groups of the "consumer" protocol among the others: their requests, timers and records.
#include <utility>

#include "broker/groups/consumer/describe.h"
#include "broker/groups/consumer/heartbeat.h"
#include "broker/groups/consumer/records.h"
#include "broker/groups/group_shard.h"
#include "broker/groups/records.h"
#include "protocol/base/check.h"

namespace broker::groups {

using consumer::ConsumerGroup;
using consumer::TimerChange;
using protocol::ErrorCode;

namespace {

TimerKey::Kind timer_kind(TimerChange::Kind kind) {
  switch (kind) {
    case TimerChange::Kind::session:
      return TimerKey::Kind::member;
    case TimerChange::Kind::rebalance:
      return TimerKey::Kind::rebalance;
    case TimerChange::Kind::join:
      return TimerKey::Kind::member_join;
    case TimerChange::Kind::sync:
      return TimerKey::Kind::member_sync;
  }
  return TimerKey::Kind::member;
}

TimerChange::Kind timer_change_kind(TimerKey::Kind kind) {
  switch (kind) {
    case TimerKey::Kind::rebalance:
      return TimerChange::Kind::rebalance;
    case TimerKey::Kind::member_join:
      return TimerChange::Kind::join;
    case TimerKey::Kind::member_sync:
      return TimerChange::Kind::sync;
    default:
      return TimerChange::Kind::session;
  }
}

}  // namespace

ConsumerGroup* GroupShard::consumer_group(std::string_view id) {
  const auto at = groups_.find(id);
  return at == groups_.end() ? nullptr : std::get_if<ConsumerGroup>(&at->second);
}

const ConsumerGroup* GroupShard::consumer_group(std::string_view id) const {
  const auto at = groups_.find(id);
  return at == groups_.end() ? nullptr : std::get_if<ConsumerGroup>(&at->second);
}

void GroupShard::set_topics(std::shared_ptr<const consumer::TopicsView> topics) {
  if (topics == topics_) return;
  topics_ = std::move(topics);
  for (auto& [id, slot] : groups_) {
    if (auto* group = std::get_if<ConsumerGroup>(&slot)) group->request_refresh();
  }
}

const consumer::Settings& GroupShard::settings_of(std::string_view group) const {
  const auto at = settings_of_groups_.find(group);
  return at == settings_of_groups_.end() ? consumer_settings_ : at->second;
}

consumer::Surroundings GroupShard::surroundings(std::string_view group, Now now) const {
  CHECK(topics_ != nullptr);
  return {*topics_, settings_of(group), now.wall_ms};
}

void GroupShard::set_timer(const std::string& group, const TimerChange& change, Now now) {
  const TimerKey key{timer_kind(change.kind), group, change.member_id};
  if (change.unless_set && timers_.has(key)) return;
  if (!change.after_ms) {
    timers_.cancel(key);
  } else {
    timers_.set(key, now.monotonic_ms + *change.after_ms);
  }
  if (change.kind != TimerChange::Kind::rebalance) return;
  const std::pair member(group, change.member_id);
  if (change.after_ms)
    rebalance_epochs_[member] = change.member_epoch;
  else
    rebalance_epochs_.erase(member);
}

// Timers and the rest are set before the records are applied. When these cannot be written, this
// whole state is given up.
void GroupShard::take(consumer::Outcome outcome, const std::string& group, Now now, Decision& out) {
  for (Record& record : outcome.records) out.records.push_back(std::move(record));
  for (const TimerChange& change : outcome.timers) set_timer(group, change, now);
  ConsumerGroup* there = consumer_group(group);
  if (there && outcome.metadata_refresh) there->metadata_refresh = *outcome.metadata_refresh;
  if (outcome.downgraded) downgrade(std::move(*outcome.downgraded), now, out);
  if (!outcome.regexes_to_resolve.empty())
    timers_.set({TimerKey::Kind::regexes, group, {}}, now.monotonic_ms);
}

Decided<protocol::ConsumerGroupHeartbeatResponse> GroupShard::consumer_heartbeat(
    const protocol::ConsumerGroupHeartbeatRequest& asked, const Caller& caller, Now now) {
  Decided<protocol::ConsumerGroupHeartbeatResponse> out;
  ClassicGroup* other = classic(asked.group_id);
  const ConsumerGroup* group = consumer_group(asked.group_id);
  std::optional<ConsumerGroup> upgraded;
  if (other) {
    const bool is_joining = asked.member_epoch == consumer::joining_epoch;
    const bool is_empty = other->is_in(ClassicState::empty) && other->pending.empty();
    consumer::Refusal refusal{ErrorCode::group_id_not_found,
                              "the group " + asked.group_id + " is of the classic protocol"};
    if (is_joining && !is_empty) {
      upgraded = upgrade(*other, now, out, refusal);
      group = upgraded ? &*upgraded : nullptr;
    }
    if (!is_joining || (!is_empty && !upgraded)) {
      out.answer = consumer::refused_heartbeat(refusal).response;
      return out;
    }
    if (is_empty) out.records.push_back(classic_group_tombstone(asked.group_id));
  }
  consumer::HeartbeatOutcome outcome = consumer::decide_heartbeat(
      group, asked,
      {caller.version, caller.client_id, caller.client_host, random_.uuid().to_string()},
      surroundings(asked.group_id, now));
  out.answer = std::move(outcome.response);
  // A classic group that this member could not join after all has been upgraded nevertheless, which
  // its members do not notice.
  if (out.answer.error_code != 0 && !upgraded) out.records.clear();
  if (out.answer.error_code == 0) take(std::move(outcome), asked.group_id, now, out);
  return out;
}

Decision GroupShard::consumer_timeout(const TimerKey& timer, Now now) {
  Decision out;
  const ConsumerGroup& group = *consumer_group(timer.group);
  if (timer.kind == TimerKey::Kind::regexes) {
    std::vector<std::string> regexes;
    for (const auto& [regex, users] : group.subscriptions().regexes) regexes.push_back(regex);
    take(consumer::decide_regexes(group, regexes, surroundings(timer.group, now)), timer.group, now,
         out);
    return out;
  }
  // What was set when the group was of the classic protocol is of no interest now.
  if (timer.kind == TimerKey::Kind::join || timer.kind == TimerKey::Kind::sync) return out;
  TimerChange over;
  over.kind = timer_change_kind(timer.kind);
  over.member_id = timer.member;
  const auto epoch = rebalance_epochs_.find({timer.group, timer.member});
  if (epoch != rebalance_epochs_.end()) over.member_epoch = epoch->second;
  take(consumer::decide_timeout(group, over, surroundings(timer.group, now)), timer.group, now,
       out);
  return out;
}

std::optional<protocol::ConsumerGroupDescribeResponse::Group> GroupShard::describe_consumer(
    const std::string& id) const {
  const ConsumerGroup* group = consumer_group(id);
  if (!group) return std::nullopt;
  return consumer::describe(*group, *topics_, settings_of(id));
}

void GroupShard::drop_if_empty(const std::string& id, Decision& out) {
  const ConsumerGroup* group = consumer_group(id);
  if (!group || !group->members().empty()) return;
  consumer::add_group_tombstones(out.records, *group);
  forget_group(id);
}

void GroupShard::stop_timers(const ConsumerGroup& group) {
  timers_.cancel({TimerKey::Kind::regexes, group.id(), {}});
  for (const auto& [id, member] : group.members()) {
    for (const auto kind : {TimerChange::Kind::session, TimerChange::Kind::rebalance,
                            TimerChange::Kind::join, TimerChange::Kind::sync})
      set_timer(group.id(), {kind, id, std::nullopt, 0, false}, {});
  }
}

bool GroupShard::apply_consumer(const std::string& id, base::Bytes key,
                                std::optional<base::Bytes> value) {
  if (!consumer_group(id)) {
    // A tombstone for what was never there, or is of the classic protocol by now.
    if (!value) return true;
    groups_.insert_or_assign(id, Group(std::in_place_type<ConsumerGroup>, id));
  }
  const consumer::Applied applied = consumer::apply(*consumer_group(id), key, value);
  if (applied == consumer::Applied::gone) forget_group(id);
  return applied != consumer::Applied::malformed;
}

}  // namespace broker::groups
