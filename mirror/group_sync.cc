#include "mirror/group_sync.h"

#include <algorithm>
#include <cctype>
#include <functional>

namespace mirror {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

bool takes_offsets(MirrorState state) {
  return state == MirrorState::mirroring || state == MirrorState::epoch_fencing;
}

bool is_consumer_group(std::string_view protocol_type, std::string_view type) {
  const bool consumers = protocol_type.empty() || protocol_type == "consumer";
  return consumers && (type.empty() || same_word(type, "classic") || same_word(type, "consumer"));
}

// An epoch above our own would send a consumer after newer metadata for ever.
CommittedOffset clamped(const CommittedOffset& source, const GroupPartition& here) {
  CommittedOffset out = source;
  out.offset = std::max(here.log_start, std::min(source.offset, here.durable_end));
  if (out.offset != source.offset)
    out.leader_epoch = out.offset == here.durable_end ? here.end_epoch : std::nullopt;
  if (out.leader_epoch && *out.leader_epoch > here.leader_epoch) out.leader_epoch.reset();
  return out;
}

GroupMemory::Value GroupMemory::value_of(const CommittedOffset& committed) {
  return {.offset = committed.offset,
          .leader_epoch = committed.leader_epoch.value_or(-1),
          .metadata_hash = std::hash<std::string>()(committed.metadata)};
}

bool GroupMemory::holds(const std::string& group, const base::TopicPartition& id,
                        const CommittedOffset& committed) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return false;
  const auto offset = found->second.offsets.find(id);
  return offset != found->second.offsets.end() && offset->second == value_of(committed);
}

bool GroupMemory::is_due(const std::string& group, std::int64_t now_ms) const {
  const auto found = groups_.find(group);
  return found != groups_.end() && now_ms - found->second.renewed_at_ms >= group_renewal_ms;
}

void GroupMemory::remember(const GroupCommit& done, std::int64_t now_ms) {
  const auto [place, is_new] = groups_.try_emplace(done.group);
  Group& group = place->second;
  for (const GroupOffset& offset : done.offsets)
    group.offsets[offset.id] = value_of(offset.committed);
  if (is_new || done.renews) group.renewed_at_ms = now_ms;
}

void GroupMemory::forget(const base::TopicPartition& id) {
  for (auto& [name, group] : groups_) group.offsets.erase(id);
}

std::vector<PlannedGroup> plan_groups(const std::vector<SourceGroup>& groups,
                                      const GroupPartitions& here, const GroupMemory& memory,
                                      std::int64_t now_ms) {
  std::vector<PlannedGroup> plan;
  plan.reserve(groups.size());
  for (const SourceGroup& group : groups) {
    PlannedGroup& planned = plan.emplace_back();
    planned.commit.group = group.name;
    planned.commit.renews = memory.is_due(group.name, now_ms);
    for (const SourceOffset& theirs : group.offsets) {
      const auto found = here.find({theirs.topic, theirs.partition});
      if (found == here.end() || theirs.committed.offset < 0) continue;
      const GroupPartition& partition = found->second;
      CommittedOffset ours = clamped(theirs.committed, partition);
      ++planned.progress.offsets;
      if (ours.offset < theirs.committed.offset) {
        ++planned.progress.clamped;
        planned.progress.behind += theirs.committed.offset - ours.offset;
      }
      if (planned.commit.renews || !memory.holds(group.name, partition.id, ours))
        planned.commit.offsets.push_back({theirs.topic, partition.id, std::move(ours)});
    }
  }
  return plan;
}

}  // namespace mirror
