#include "mirror/reconcile.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mirror {
namespace {

// Where a partition copies or is about to. FAILED ones come back by themselves or not at all.
bool copies_or_will(MirrorState state) {
  using enum MirrorState;
  return state == log_alignment || state == epoch_fencing || state == ule_recovery ||
         state == mirroring;
}

std::optional<PartitionCommand> command_for(MirrorState desired, const LocalPartition& p) {
  using enum MirrorState;
  switch (desired) {
    case mirroring:
      if (p.state == unknown || p.state == stopped) return PartitionCommand::start;
      if (p.state == paused) return PartitionCommand::resume;
      return std::nullopt;
    case paused:
      // One that failed for good does not fetch, and its reason must stay to be seen.
      if (copies_or_will(p.state) || (p.state == failed && !p.final_failure))
        return PartitionCommand::pause;
      return std::nullopt;
    case stopped:
      if (p.state != stopped && p.state != stopping) return PartitionCommand::stop;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

void command_partitions(const Here& here, std::vector<Request>& out) {
  if (!here.states_loaded) return;
  for (const MirroredTopic& topic : here.topics)
    for (std::size_t p = 0; p < topic.partitions.size(); ++p)
      if (const auto command = command_for(topic.desired, topic.partitions[p]))
        out.push_back(CommandPartition{topic.name, static_cast<std::int32_t>(p), *command});
}

bool wants_source(const MirroredTopic& topic) {
  return topic.desired == MirrorState::mirroring || topic.desired == MirrorState::paused;
}

// Level-triggered, so only while there is a partition that it would change.
void fail_topic(const MirroredTopic& topic, Failure failure, std::string text,
                std::vector<Request>& out) {
  const bool any = std::ranges::any_of(topic.partitions, [](const LocalPartition& p) {
    return copies_or_will(p.state) || p.state == MirrorState::pausing ||
           p.state == MirrorState::paused || (p.state == MirrorState::failed && !p.final_failure);
  });
  if (any) out.push_back(FailTopic{topic.name, failure, std::move(text)});
}

// Same name and another id is proof at the first sight; absence is not.
bool check_identity(const MirroredTopic& topic, const SourceTopic* at_source, bool listing_empty,
                    SyncMemory& memory, std::vector<Request>& out) {
  if (at_source != nullptr) {
    memory.absent.erase(topic.name);
    if (is_same_topic(topic.id, topic.source_id, at_source->id)) {
      if (topic.source_id && topic.source_id->is_zero() && !at_source->id.is_zero())
        out.push_back(RememberTopicId{topic.name, at_source->id});
      return true;
    }
    fail_topic(topic, Failure::topic_recreated,
               "the source topic was deleted and created anew: its id is " +
                   at_source->id.to_string() + ", the copy is of " +
                   topic.source_id.value_or(topic.id).to_string(),
               out);
    return false;
  }
  const std::int32_t needed =
      listing_empty ? absences_for_deletion_when_empty : absences_for_deletion;
  std::int32_t& absent = memory.absent[topic.name];
  absent = std::min(absent + 1, absences_for_deletion_when_empty);
  if (absent >= needed)
    fail_topic(topic, Failure::topic_deleted, "The source topic is deleted", out);
  return false;
}

void follow_leaders(const MirroredTopic& topic, const SourceTopic& at_source,
                    std::vector<Request>& out) {
  const std::size_t n = std::min(topic.partitions.size(), at_source.partitions.size());
  for (std::size_t p = 0; p < n; ++p) {
    const LocalPartition& here = topic.partitions[p];
    const SourcePartition& there = at_source.partitions[p];
    const auto number = static_cast<std::int32_t>(p);
    if (!there.leader) continue;  // nothing to fetch from: what is known stays
    if (here.fetches_from != there.leader)
      out.push_back(AssignLeader{topic.name, number, *there.leader, there.leader_epoch});
    if (here.state == MirrorState::mirroring && there.leader_epoch &&
        *there.leader_epoch > here.leader_epoch - epoch_bump_threshold)
      out.push_back(BumpAhead{topic.name, number, *there.leader_epoch});
    const bool followed =
        here.behind_epoch && there.leader_epoch && *there.leader_epoch > *here.behind_epoch;
    if (here.state == MirrorState::failed && !here.final_failure && (here.unreachable || followed))
      out.push_back(CommandPartition{topic.name, number, PartitionCommand::source_returned});
  }
}

void keep_up(const Here& here, const Source& source, SyncMemory& memory,
             std::vector<Request>& out) {
  std::erase_if(memory.absent, [&](const auto& entry) {
    return std::ranges::none_of(here.topics,
                                [&](const MirroredTopic& t) { return t.name == entry.first; });
  });
  std::map<std::string_view, const SourceTopic*> by_name;
  for (const SourceTopic& topic : source.topics) by_name[topic.name] = &topic;
  for (const MirroredTopic& topic : here.topics) {
    if (!wants_source(topic)) {
      memory.absent.erase(topic.name);
      continue;
    }
    if (topic.excluded && topic.desired == MirrorState::mirroring)
      out.push_back(StopTopic{topic.name});
    const auto found = by_name.find(topic.name);
    const SourceTopic* at_source = found == by_name.end() ? nullptr : found->second;
    if (at_source == nullptr && !source.complete) continue;
    if (!check_identity(topic, at_source, source.topics.empty(), memory, out)) continue;
    // Never fewer: partitions cannot be taken away, and a listing may be short for a moment.
    if (at_source->partitions.size() > topic.partitions.size())
      out.push_back(
          AddPartitions{topic.name, static_cast<std::int32_t>(at_source->partitions.size())});
    if (topic.desired == MirrorState::mirroring) follow_leaders(topic, *at_source, out);
  }
}

bool may_adopt(const OtherTopic& here, const SourceTopic& there) {
  return here.mirror.empty() && !there.id.is_zero() && here.id == there.id;
}

// A loop is refused before anything is attached, and a mirror there that is being stopped is waited
// for: until then the topic stays what it is, with its producers.
void adopt(const SourceTopic& topic, std::vector<Request>& out) {
  if (!topic.reverse) return;  // the next sync asks again
  if (*topic.reverse == Reverse::loop)
    out.push_back(Conflict{topic.name,
                           "Detected mirror loop for mirror: the source mirrors this topic from "
                           "this cluster; stop that mirror there before you copy the topic back"});
  else if (*topic.reverse == Reverse::not_stopped)
    out.push_back(Conflict{topic.name,
                           "the source's own mirror of this topic from this cluster is not "
                           "STOPPED yet"});
  else
    out.push_back(
        CreateTopic{topic.name, topic.id, static_cast<std::int32_t>(topic.partitions.size())});
}

// A topic that is in this mirror with any desired state is not discovered again: one that an
// operator stopped stays stopped.
void discover(const Here& here, const Source& source, std::vector<Request>& out) {
  std::map<std::string_view, const MirroredTopic*> mirrored;
  for (const MirroredTopic& topic : here.topics) mirrored[topic.name] = &topic;
  std::map<std::string_view, const OtherTopic*> others;
  std::map<base::Uuid, const OtherTopic*> other_ids;
  for (const OtherTopic& topic : here.other_topics) {
    others[topic.name] = &topic;
    other_ids[topic.id] = &topic;
  }
  for (const SourceTopic& topic : source.topics) {
    if (!topic.included || topic.partitions.empty() || mirrored.contains(topic.name)) continue;
    const bool has_id = !topic.id.is_zero();
    if (const auto it = others.find(topic.name); it != others.end()) {
      const OtherTopic& other = *it->second;
      if (!other.mirror.empty())
        out.push_back(Conflict{topic.name, "the topic belongs to mirror " + other.mirror});
      else if (!has_id)
        // Attaching would cut its log to nothing, on no better ground than a name.
        out.push_back(Conflict{topic.name,
                               "a topic of this name exists here, and the source has no "
                               "topic ids to tell whether it is the same"});
      else if (other.id != topic.id)
        out.push_back(Conflict{topic.name, "a topic of this name exists here with another id, " +
                                               other.id.to_string() + " instead of " +
                                               topic.id.to_string()});
      else
        adopt(topic, out);
      continue;
    }
    if (const auto it = other_ids.find(topic.id); has_id && it != other_ids.end()) {
      out.push_back(Conflict{topic.name, "its topic id is taken by topic " + it->second->name});
      continue;
    }
    out.push_back(
        CreateTopic{topic.name, topic.id, static_cast<std::int32_t>(topic.partitions.size())});
  }
}

void fail_all(const Here& here, const std::string& found, std::vector<Request>& out) {
  for (const MirroredTopic& topic : here.topics)
    if (wants_source(topic))
      fail_topic(topic, Failure::cluster_changed,
                 cluster_changed_text(*here.source_cluster_id, found), out);
}

}  // namespace

bool is_same_topic(const base::Uuid& here, const std::optional<base::Uuid>& remembered,
                   const base::Uuid& at_source) {
  if (at_source.is_zero() || (remembered && remembered->is_zero())) return true;
  return at_source == remembered.value_or(here);
}

std::vector<std::string> to_be_adopted(const Here& here, const Source& source) {
  std::map<std::string_view, const OtherTopic*> others;
  for (const OtherTopic& topic : here.other_topics) others[topic.name] = &topic;
  std::vector<std::string> names;
  for (const SourceTopic& topic : source.topics) {
    const auto other = others.find(topic.name);
    if (topic.included && other != others.end() && may_adopt(*other->second, topic))
      names.push_back(topic.name);
  }
  return names;
}

std::vector<Request> reconcile_commands(const Here& here) {
  std::vector<Request> out;
  command_partitions(here, out);
  return out;
}

Plan reconcile(const Here& here, const Source& source, SyncMemory memory) {
  Plan plan{.requests = {}, .memory = std::move(memory)};
  std::vector<Request>& out = plan.requests;
  if (source.reachable) {
    const bool foreign = here.source_cluster_id && source.cluster_id &&
                         *here.source_cluster_id != *source.cluster_id;
    if (foreign) {
      fail_all(here, *source.cluster_id, out);  // what it lists is of no concern
    } else {
      if (!here.source_cluster_id && source.cluster_id)
        out.push_back(RememberCluster{*source.cluster_id});
      discover(here, source, out);
      keep_up(here, source, plan.memory, out);
    }
  }
  command_partitions(here, out);
  return plan;
}

}  // namespace mirror
