#include "broker/groups/consumer/heartbeat.h"

#include <algorithm>
#include <utility>

#include "broker/groups/consumer/membership.h"
#include "broker/groups/consumer/migration.h"
#include "broker/groups/consumer/records.h"
#include "broker/groups/consumer/topic_regex.h"

namespace broker::groups::consumer {
namespace {

using protocol::ErrorCode;
using Request = protocol::ConsumerGroupHeartbeatRequest;
using Response = protocol::ConsumerGroupHeartbeatResponse;

bool is_blank(const std::optional<std::string>& text) {
  return text && text->find_first_not_of(" \t\r\n\f\v") == std::string::npos;
}

Refusal invalid(std::string message) {
  return {ErrorCode::invalid_request, std::move(message)};
}

std::optional<Partitions> owned_by(const Request& request) {
  if (!request.topic_partitions) return std::nullopt;
  Partitions owned;
  for (const auto& topic : *request.topic_partitions)
    owned[topic.topic_id].insert(topic.partitions.begin(), topic.partitions.end());
  return owned;
}

bool is_subset(const std::optional<Partitions>& owned, const HeldPartitions& of) {
  return owned && std::ranges::all_of(*owned, [&of](const auto& topic) {
           return std::ranges::all_of(topic.second, [&](std::int32_t partition) {
             return contains(of, topic.first, partition);
           });
         });
}

std::optional<Refusal> check_epoch(const Member& member, std::int32_t epoch,
                                   const std::optional<Partitions>& owned) {
  if (epoch == joining_epoch || epoch == member.epoch) return std::nullopt;
  // The answer that told it of its new epoch may have got lost.
  const bool answer_lost =
      epoch < member.epoch && epoch == member.previous_epoch && is_subset(owned, member.assigned);
  if (answer_lost) return std::nullopt;
  return Refusal{ErrorCode::fenced_member_epoch,
                 "the member is in epoch " + std::to_string(member.epoch) +
                     " and says it is in epoch " + std::to_string(epoch) +
                     ": it must give up all its partitions and join again"};
}

Refusal unknown_member(const std::string& id, const std::string& group) {
  return {ErrorCode::unknown_member_id, "member " + id + " is not in group " + group};
}
Refusal unknown_instance(const std::string& instance_id) {
  return {ErrorCode::unknown_member_id, "no member has the instance id " + instance_id};
}
Refusal fenced_instance(const std::string& instance_id, const Member& holder) {
  return {ErrorCode::fenced_instance_id,
          "the instance id " + instance_id + " belongs to member " + holder.id};
}

bool is_full(const ConsumerGroup& group, const std::string& member_id,
             const std::optional<std::string>& instance_id, const Settings& settings) {
  if (instance_id && group.static_member(*instance_id) != nullptr) return false;
  return group.members().size() >= static_cast<std::size_t>(settings.max_size) &&
         group.find(member_id) == nullptr;
}

class Heartbeat {
 public:
  Heartbeat(const ConsumerGroup& group, const Request& request, const HeartbeatCaller& caller,
            const Surroundings& around)
      : group_(group),
        request_(request),
        caller_(caller),
        around_(around),
        member_id_(request.member_id.empty() ? caller.fresh_member_id : request.member_id),
        owned_(owned_by(request)) {}

  HeartbeatOutcome run() {
    if (const std::optional<Refusal> refusal = decide()) return refused_heartbeat(*refusal);
    return std::move(out_);
  }

 private:
  bool is_joining() const { return request_.member_epoch == joining_epoch; }

  std::optional<Refusal> decide() {
    if (is_full(group_, request_.member_id, request_.instance_id, around_.settings)) {
      return Refusal{ErrorCode::group_max_size_reached,
                     "the group has " + std::to_string(group_.members().size()) +
                         " members, which is the most that is allowed"};
    }
    if (auto refusal = request_.instance_id ? find_static_member() : find_member()) return refusal;
    const Member updated = updated_member();
    SubscriptionChange change;
    if (auto refusal = update_subscription(group_, old_, updated, around_, change, out_))
      return refusal;
    const bool raise = change.names || change.regex_is_known ||
                       changes_assignor(group_, old_, updated, around_.settings);
    std::int32_t group_epoch = group_.epoch;
    if (raise || group_.is_refresh_due(around_.now_ms))
      group_epoch = refresh_metadata(group_, old_, updated, raise, around_, out_);
    const Target target = update_target(group_, group_epoch, old_, updated, around_, out_);
    const std::optional<Member> reconciled =
        take_step(group_, updated, target, change.any(), owned_, around_, out_);
    if (!reconciled) {
      return Refusal{ErrorCode::fenced_member_epoch,
                     "the member's state was written by another release: it must give up all its "
                     "partitions and join again"};
    }
    set_timer(out_, TimerChange::Kind::session, member_id_, around_.settings.session_timeout_ms);
    answer(*reconciled);
    return std::nullopt;
  }

  std::optional<Refusal> find_member() {
    if (const Member* there = group_.find(member_id_)) {
      old_ = *there;
    } else if (is_joining()) {
      old_.id = member_id_;
    } else {
      return unknown_member(member_id_, group_.id());
    }
    return check_epoch(old_, request_.member_epoch, owned_);
  }

  std::optional<Refusal> find_static_member() {
    const std::string& instance_id = *request_.instance_id;
    const Member* there = group_.static_member(instance_id);
    if (!is_joining()) {
      if (there == nullptr) return unknown_instance(instance_id);
      if (there->id != member_id_) return fenced_instance(instance_id, *there);
      old_ = *there;
      return check_epoch(old_, request_.member_epoch, owned_);
    }
    if (there == nullptr) return find_member();
    // Another process, or the same one that starts again. It may take over when the one before said
    // that it would come back, or does not know this protocol and so cannot say it.
    if (there->epoch != leaving_static_epoch && !there->classic) {
      return Refusal{ErrorCode::unreleased_instance_id,
                     "the instance id " + instance_id + " is in use by member " + there->id};
    }
    old_ = *there;
    old_.id = member_id_;
    old_.epoch = old_.previous_epoch = joining_epoch;
    replace_member(group_, *there, old_, out_);
    return std::nullopt;
  }

  Member updated_member() const {
    Member updated = old_;
    if (request_.instance_id) updated.instance_id = request_.instance_id;
    if (request_.rack_id) updated.rack_id = request_.rack_id;
    if (request_.rebalance_timeout_ms != -1)
      updated.rebalance_timeout_ms = request_.rebalance_timeout_ms;
    if (request_.server_assignor) updated.assignor = request_.server_assignor;
    if (const auto& names = request_.subscribed_topic_names)
      updated.topics = TopicNames(names->begin(), names->end());
    if (request_.subscribed_topic_regex) updated.regex = *request_.subscribed_topic_regex;
    updated.client_id = caller_.client_id;
    updated.client_host = caller_.client_host;
    updated.classic.reset();
    return updated;
  }

  void answer(const Member& member) {
    Response& response = out_.response;
    response.member_id = member.id;
    response.member_epoch = member.epoch;
    response.heartbeat_interval_ms = around_.settings.heartbeat_interval_ms;
    // Also for one that says everything anew: it may not know what it has.
    const bool says_all = request_.rebalance_timeout_ms != -1 && owned_ &&
                          (request_.subscribed_topic_names || request_.subscribed_topic_regex);
    if (!is_joining() && !says_all && member.assigned == old_.assigned) return;
    auto& assignment = response.assignment.emplace();
    for (const auto& [topic, partitions] : without_epochs(member.assigned))
      assignment.topic_partitions.push_back({topic, {partitions.begin(), partitions.end()}});
  }

  const ConsumerGroup& group_;
  const Request& request_;
  const HeartbeatCaller& caller_;
  const Surroundings& around_;
  const std::string member_id_;
  const std::optional<Partitions> owned_;
  Member old_;
  HeartbeatOutcome out_;
};

HeartbeatOutcome decide_leave(const ConsumerGroup& group, const Request& request,
                              const Surroundings& around) {
  const Member* member = nullptr;
  if (request.instance_id) {
    member = group.static_member(*request.instance_id);
    if (member == nullptr) return refused_heartbeat(unknown_instance(*request.instance_id));
    if (member->id != request.member_id)
      return refused_heartbeat(fenced_instance(*request.instance_id, *member));
  } else {
    member = group.find(request.member_id);
    if (member == nullptr) return refused_heartbeat(unknown_member(request.member_id, group.id()));
  }
  HeartbeatOutcome out;
  out.response.member_id = member->id;
  out.response.member_epoch = request.member_epoch;
  if (request.member_epoch == leaving_epoch) {
    lose_members(group, {member->id}, around, out);
    return out;
  }
  // Its partitions stay with it, under whatever id it comes back. Its session still ends in time.
  Member leaving = *member;
  leaving.epoch = leaving_static_epoch;
  leaving.revoking.clear();
  for (auto& [topic, partitions] : leaving.assigned) {
    for (auto& [partition, epoch] : partitions) epoch = 0;
  }
  out.records.push_back(current_record(group.id(), leaving));
  cancel_timer(out, TimerChange::Kind::rebalance, member->id);
  return out;
}

// Whether a member that has come to the expression is still to have topics of what it wanted
// before.
bool leaves_targets(const ConsumerGroup& group, const std::string& regex,
                    const ResolvedRegex& resolved, const TopicsView& topics) {
  const ConsumerGroup::Regexes known{{regex, resolved}};
  return std::ranges::any_of(group.members(), [&](const auto& entry) {
    const Member& member = entry.second;
    if (member.regex != regex) return false;
    const std::set<base::Uuid> wanted = subscribed_topic_ids(member, known, topics);
    return std::ranges::any_of(group.target_of(member.id), [&](const auto& topic) {
      return topics.find(topic.first) && !wanted.contains(topic.first);
    });
  });
}

}  // namespace

HeartbeatOutcome refused_heartbeat(const Refusal& refusal) {
  HeartbeatOutcome out;
  out.response.error_code = static_cast<std::int16_t>(refusal.error);
  out.response.error_message = refusal.message;
  return out;
}

std::optional<Refusal> check_heartbeat(const Request& request, std::int16_t version,
                                       const Settings& settings) {
  const std::int32_t epoch = request.member_epoch;
  if ((version >= 1 || epoch > 0 || epoch == leaving_epoch) && is_blank(request.member_id))
    return invalid("MemberId is empty");
  if (is_blank(request.group_id)) return invalid("GroupId is empty");
  if (is_blank(request.instance_id)) return invalid("InstanceId is empty");
  if (is_blank(request.rack_id)) return invalid("RackId is empty");
  if (epoch == joining_epoch) {
    if (request.rebalance_timeout_ms == -1)
      return invalid("a request to join must have RebalanceTimeoutMs");
    if (!request.topic_partitions || !request.topic_partitions->empty())
      return invalid("a request to join must have empty TopicPartitions");
    if (!request.subscribed_topic_names && !request.subscribed_topic_regex)
      return invalid("a request to join must have SubscribedTopicNames or SubscribedTopicRegex");
  } else if (epoch == leaving_static_epoch) {
    if (!request.instance_id) return invalid("InstanceId is null");
  } else if (epoch < leaving_static_epoch) {
    return invalid("MemberEpoch is " + std::to_string(epoch));
  }
  if (!request.server_assignor) return std::nullopt;
  const std::optional<AssignorKind> assignor = find_assignor(*request.server_assignor);
  if (assignor && std::ranges::find(settings.assignors, *assignor) != settings.assignors.end())
    return std::nullopt;
  std::string names;
  for (const AssignorKind kind : settings.assignors)
    names += (names.empty() ? "" : ", ") + std::string(name_of(kind));
  return Refusal{ErrorCode::unsupported_assignor,
                 "there is no assignor '" + *request.server_assignor + "'; there are: " + names};
}

HeartbeatOutcome decide_heartbeat(const ConsumerGroup* group, const Request& request,
                                  const HeartbeatCaller& caller, const Surroundings& around) {
  const bool leaves =
      request.member_epoch == leaving_epoch || request.member_epoch == leaving_static_epoch;
  if (group == nullptr && request.member_epoch != joining_epoch) {
    return refused_heartbeat(
        {ErrorCode::group_id_not_found, "there is no consumer group " + request.group_id});
  }
  if (leaves) return decide_leave(*group, request, around);
  if (group != nullptr) return Heartbeat(*group, request, caller, around).run();
  const ConsumerGroup fresh(request.group_id);
  return Heartbeat(fresh, request, caller, around).run();
}

Outcome decide_timeout(const ConsumerGroup& group, const TimerChange& timer,
                       const Surroundings& around) {
  Outcome out;
  const Member* member = group.find(timer.member_id);
  if (member == nullptr) return out;
  // It has come on since.
  if (timer.kind == TimerChange::Kind::rebalance && member->epoch != timer.member_epoch) return out;
  lose_members(group, {member->id}, around, out);
  return out;
}

Outcome decide_regexes(const ConsumerGroup& group, const std::vector<std::string>& regexes,
                       const Surroundings& around) {
  Outcome out;
  Subscriptions after = group.subscriptions();
  bool changed = false;
  for (auto& [regex, topics] : resolve_regexes(regexes, around.topics)) {
    if (after.users_of(regex) == 0) continue;
    const ResolvedRegex resolved{topics, around.topics.version(), around.now_ms};
    static const ResolvedRegex none;
    const ResolvedRegex* before = group.find_regex(regex);
    if (before == nullptr) {
      before = &none;
      changed = changed || leaves_targets(group, regex, resolved, around.topics);
    }
    if (before->topics != resolved.topics) {
      changed = true;
      after.remove(*before);
      after.add(resolved);
    }
    out.records.push_back(regex_record(group.id(), regex, resolved));
  }
  const std::int64_t hash = hash_of_topics(after.topic_names(), around.topics);
  if (changed || hash != group.metadata_hash) {
    out.records.push_back(epoch_record(group.id(), group.epoch + 1, hash));
    out.metadata_refresh = {around.now_ms + metadata_refresh_interval_ms, group.epoch + 1};
  }
  return out;
}

std::vector<TimerChange> timers_after_load(const ConsumerGroup& group, const Settings& settings) {
  Outcome out;
  for (const auto& [id, member] : group.members()) {
    const std::int32_t session_ms =
        member.classic ? member.classic->session_timeout_ms : settings.session_timeout_ms;
    set_timer(out, TimerChange::Kind::session, id, session_ms);
    if (!member.classic && member.state == MemberState::unrevoked_partitions)
      set_timer(out, TimerChange::Kind::rebalance, id, member.rebalance_timeout_ms, member.epoch);
  }
  return std::move(out.timers);
}

}  // namespace broker::groups::consumer
