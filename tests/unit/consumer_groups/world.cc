#include "tests/unit/consumer_groups/world.h"

#include <algorithm>

namespace broker::groups::consumer {

base::Uuid topic_uuid(int n) {
  base::Uuid id;
  id.bytes[15] = static_cast<std::byte>(n % 256);
  id.bytes[14] = static_cast<std::byte>(n / 256);
  return id;
}

// ---- FakeTopics

void FakeTopics::add(const std::string& name, std::int32_t partitions) {
  topics_[name] = {name, topic_uuid(next_++), partitions};
  ++version_;
}
void FakeTopics::remove(const std::string& name) {
  topics_.erase(name);
}
void FakeTopics::grow(const std::string& name, std::int32_t partitions) {
  topics_.at(name).partitions = partitions;
}
std::optional<TopicFacts> FakeTopics::find(std::string_view name) const {
  const auto at = topics_.find(name);
  return at == topics_.end() ? std::nullopt : std::optional(at->second);
}
std::optional<TopicFacts> FakeTopics::find(const base::Uuid& id) const {
  for (const auto& [name, topic] : topics_) {
    if (topic.id == id) return topic;
  }
  return std::nullopt;
}
void FakeTopics::for_each_name(const std::function<void(const std::string&)>& visit) const {
  for (const auto& [name, topic] : topics_) visit(name);
}

// ---- World

World::World() {
  settings.assignment_interval_ms = 0;
}

HeartbeatResponse World::send(const HeartbeatRequest& request, std::int16_t version) {
  if (const auto refusal = check_heartbeat(request, version, settings))
    return refused_heartbeat(*refusal).response;
  HeartbeatOutcome outcome = decide_heartbeat(
      group.get(), request,
      {version, "client", "/127.0.0.1", "made-" + std::to_string(++fresh_ids_)}, around());
  take(outcome);
  return outcome.response;
}

void World::take(const Outcome& outcome) {
  for (const Record& record : outcome.records) {
    log.push_back(record);
    if (!group && record.value) group = std::make_unique<ConsumerGroup>("g");
    if (!group) continue;
    const Applied applied = apply(*group, record);
    if (applied == Applied::malformed) epoch_problem_ = "a record was not understood";
    if (applied == Applied::gone) group.reset();
  }
  if (!group) last_epoch_ = 0;
  if (group && group->epoch < last_epoch_) epoch_problem_ = "the group's epoch fell";
  if (group) last_epoch_ = group->epoch;
  if (group && outcome.metadata_refresh) group->metadata_refresh = *outcome.metadata_refresh;
  set_timers(outcome.timers);
  if (!outcome.regexes_to_resolve.empty() && group)
    take(decide_regexes(*group, outcome.regexes_to_resolve, around()));
}

void World::set_timers(const std::vector<TimerChange>& changes) {
  for (const TimerChange& change : changes) {
    const std::pair key(change.kind, change.member_id);
    if (!change.after_ms)
      timers.erase(key);
    else if (!change.unless_set || !timers.contains(key))
      timers[key] = {now_ms + *change.after_ms, change.member_epoch};
  }
}

void World::restart() {
  group = replayed(false);
  timers.clear();
  if (group) set_timers(timers_after_load(*group, settings));
}

void World::pass(std::int64_t ms) {
  const std::int64_t until = now_ms + ms;
  for (;;) {
    auto first =
        std::ranges::min_element(timers, {}, [](const auto& timer) { return timer.second.due_ms; });
    if (first == timers.end() || first->second.due_ms > until) break;
    const TimerChange over{first->first.first, first->first.second, std::nullopt,
                           first->second.member_epoch, false};
    now_ms = std::max(now_ms, first->second.due_ms);
    timers.erase(first);
    if (group) take(decide_timeout(*group, over, around()));
  }
  now_ms = until;
}

std::string World::problem() const {
  if (!epoch_problem_.empty()) return epoch_problem_;
  if (!group) return "";
  std::map<base::TopicPartition, std::string> held, targeted;
  for (const auto& [id, member] : group->members()) {
    for (const HeldPartitions* some : {&member.assigned, &member.revoking}) {
      for (const auto& [topic, partitions] : *some) {
        for (const auto& [partition, since] : partitions) {
          if (!held.emplace(base::TopicPartition{topic, partition}, id).second)
            return "two members hold a partition";
          if (since > member.epoch && member.epoch > 0)
            return "a partition was given in an epoch that is to come";
        }
      }
    }
    if (member.state == MemberState::unrevoked_partitions && member.revoking.empty() &&
        member.epoch != leaving_static_epoch && !member.classic)
      return "a member is to revoke nothing";
    if (member.epoch > group->epoch) return "a member is ahead of its group";
  }
  for (const auto& [id, target] : group->targets()) {
    if (group->find(id) == nullptr) return "a target for nobody";
    for (const auto& [topic, partitions] : target) {
      for (const std::int32_t partition : partitions) {
        if (!targeted.emplace(base::TopicPartition{topic, partition}, id).second)
          return "two members are to have a partition";
      }
    }
  }
  return "";
}

std::unique_ptr<ConsumerGroup> World::replayed(bool cleaned) const {
  std::map<base::Buffer, std::size_t> last;
  if (cleaned)
    for (std::size_t i = 0; i < log.size(); ++i) last[log[i].key] = i;
  std::unique_ptr<ConsumerGroup> again;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (cleaned && last.at(log[i].key) != i) continue;
    if (!again && !log[i].value) continue;
    if (!again) again = std::make_unique<ConsumerGroup>("g");
    if (apply(*again, log[i]) == Applied::gone) again.reset();
  }
  return again;
}

std::string World::replay_problem() const {
  for (const bool cleaned : {false, true}) {
    const std::unique_ptr<ConsumerGroup> again = replayed(cleaned);
    if ((again == nullptr) != (group == nullptr)) return "a replay finds no group, or one too many";
    if (again && !(*again == *group)) return "a replay finds another group";
  }
  return "";
}

// ---- Requests

HeartbeatRequest join_request(const std::string& member_id, std::vector<std::string> names) {
  HeartbeatRequest request;
  request.group_id = "g";
  request.member_id = member_id;
  request.member_epoch = joining_epoch;
  request.rebalance_timeout_ms = 60'000;
  request.subscribed_topic_names = std::move(names);
  request.topic_partitions.emplace();
  return request;
}

HeartbeatRequest beat(const std::string& member_id, std::int32_t epoch) {
  HeartbeatRequest request;
  request.group_id = "g";
  request.member_id = member_id;
  request.member_epoch = epoch;
  return request;
}

HeartbeatRequest beat_owning(const std::string& member_id, std::int32_t epoch,
                             const Partitions& owned) {
  HeartbeatRequest request = beat(member_id, epoch);
  request.topic_partitions.emplace();
  for (const auto& [topic, partitions] : owned)
    request.topic_partitions->push_back({topic, {partitions.begin(), partitions.end()}});
  return request;
}

Partitions assignment_of(const HeartbeatResponse& response) {
  Partitions out;
  if (!response.assignment) return out;
  for (const auto& topic : response.assignment->topic_partitions)
    out[topic.topic_id].insert(topic.partitions.begin(), topic.partitions.end());
  return out;
}

// ---- FakeClient

void FakeClient::beat(HeartbeatDoor& door, bool lost) {
  HeartbeatRequest request;
  if (epoch == joining_epoch) {
    owned.clear();
    request = join_request(id, names);
    request.subscribed_topic_regex = regex;
    if (!assignor.empty()) request.server_assignor = assignor;
    wants_changed = false;
    told_ = Partitions{};
  } else {
    request = told_ == owned ? consumer::beat(id, epoch) : beat_owning(id, epoch, owned);
    // All of it said anew asks for the assignment, which an answer that got lost may have held.
    if (!told_) request.rebalance_timeout_ms = 60'000;
    if (wants_changed) {
      request.subscribed_topic_names = names;
      request.subscribed_topic_regex = regex;
      wants_changed = false;
    }
    told_ = owned;
  }
  request.instance_id = instance_id;
  const HeartbeatResponse response = door.send(request);
  if (lost) {
    // It sends everything anew.
    told_.reset();
    wants_changed = true;
    return;
  }
  on_answer(response);
}

void FakeClient::on_answer(const HeartbeatResponse& response) {
  last_error = error_of(response);
  if (last_error != protocol::ErrorCode::none) {
    epoch = joining_epoch;
    owned.clear();
    return;
  }
  epoch = response.member_epoch;
  if (response.assignment) owned = assignment_of(response);
}

void FakeClient::leave(HeartbeatDoor& door, std::int32_t how) {
  HeartbeatRequest request = consumer::beat(id, how);
  request.instance_id = instance_id;
  on_answer(door.send(request));
  epoch = joining_epoch;
  owned.clear();
}

}  // namespace broker::groups::consumer
