#include "broker/groups/consumer/migration.h"

#include <algorithm>
#include <map>
#include <utility>

#include "broker/groups/consumer/embedded_protocol.h"
#include "broker/groups/consumer/membership.h"
#include "broker/groups/consumer/records.h"
#include "protocol/base/check.h"

namespace broker::groups::consumer {
namespace {

using protocol::ErrorCode;

Refusal cannot_upgrade(const ClassicFacts& classic, std::string why) {
  return {ErrorCode::group_id_not_found,
          "the classic group " + classic.id + " cannot be upgraded: " + std::move(why)};
}

const base::Buffer* metadata_of(const std::vector<ClassicProtocol>& protocols,
                                std::string_view name) {
  const auto at = std::ranges::find(protocols, name, &ClassicProtocol::name);
  return at == protocols.end() ? nullptr : &at->metadata;
}

// Nothing: its bytes are malformed, or say what the group could not keep.
std::optional<Member> upgraded_member(const ClassicFacts& classic,
                                      const ClassicFacts::Member& member,
                                      const TopicsView& topics) {
  Partitions assigned;
  if (!member.assignment.empty()) {
    const auto assignment = parse_embedded_assignment(member.assignment);
    // User data is of an assignor that only the clients know.
    if (!assignment || (assignment->user_data && !assignment->user_data->empty()))
      return std::nullopt;
    for (const auto& [name, partitions] : assignment->partitions) {
      if (const std::optional<TopicFacts> topic = topics.find(name))
        assigned[topic->id] = partitions;
    }
  }
  const base::Buffer* metadata = metadata_of(member.protocols, classic.protocol);
  if (metadata == nullptr) return std::nullopt;
  const auto subscription = parse_embedded_subscription(*metadata);
  if (!subscription) return std::nullopt;
  Member out;
  out.id = member.id;
  out.instance_id = member.instance_id;
  if (subscription->rack && !subscription->rack->empty()) out.rack_id = subscription->rack;
  out.client_id = member.client_id;
  out.client_host = member.client_host;
  out.rebalance_timeout_ms = member.rebalance_timeout_ms;
  out.topics = TopicNames(subscription->topics.begin(), subscription->topics.end());
  out.classic = ClassicSide{member.session_timeout_ms, member.protocols};
  out.epoch = out.previous_epoch = classic.generation;
  out.assigned = with_epoch(assigned, classic.generation);
  return out;
}

// What most members prefer of the protocols that all of them know; nothing: they have none in
// common.
std::optional<std::string> common_protocol(const std::vector<const Member*>& members) {
  std::map<std::string, std::size_t> known, votes;
  for (const Member* member : members) {
    for (const ClassicProtocol& p : member->classic->protocols) ++known[p.name];
  }
  for (const Member* member : members) {
    for (const ClassicProtocol& p : member->classic->protocols) {
      if (known[p.name] != members.size()) continue;
      ++votes[p.name];
      break;
    }
  }
  const auto most = std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; });
  return most == votes.end() ? std::nullopt : std::optional(most->first);
}

// A member that stays, and under which id its target stands.
struct Staying {
  const Member* member = nullptr;
  const std::string* target_of = nullptr;
};

// Nothing: they have no protocol in common.
std::optional<ClassicFacts> classic_facts(const ConsumerGroup& group,
                                          const std::vector<Staying>& staying,
                                          const TopicsView& topics) {
  std::vector<const Member*> members;
  for (const Staying& one : staying) members.push_back(one.member);
  const std::optional<std::string> protocol = common_protocol(members);
  if (!protocol) return std::nullopt;
  ClassicFacts out;
  out.id = group.id();
  out.generation = group.epoch;
  out.of_consumers = true;
  out.protocol = *protocol;
  for (const auto& [member, target_of] : staying) {
    out.members.push_back(
        {member->id, member->instance_id, member->client_id, member->client_host,
         member->rebalance_timeout_ms, member->classic->session_timeout_ms,
         member->classic->protocols,
         assignment_for(*member->classic, *protocol, group.target_of(*target_of), topics)});
  }
  return out;
}

}  // namespace

base::Buffer assignment_for(const ClassicSide& member, const std::string& protocol,
                            const Partitions& partitions, const TopicsView& topics) {
  EmbeddedAssignment out;
  const base::Buffer* metadata = metadata_of(member.protocols, protocol);
  const auto subscription =
      metadata != nullptr ? parse_embedded_subscription(*metadata) : std::nullopt;
  if (subscription) out.version = subscription->version;
  for (const auto& [id, numbers] : partitions) {
    if (const std::optional<TopicFacts> topic = topics.find(id))
      out.partitions[topic->name] = numbers;
  }
  return encode_embedded(out);
}

std::variant<Refusal, ConsumerGroup> upgrade(const ClassicFacts& classic,
                                             const Surroundings& around) {
  if (!allows_upgrade(around.settings.migration_policy))
    return cannot_upgrade(classic, "group.consumer.migration.policy does not allow it");
  if (!classic.of_consumers) return cannot_upgrade(classic, "it is not one of consumers");
  if (classic.members.size() > static_cast<std::size_t>(around.settings.max_size))
    return cannot_upgrade(classic, "it has more members than group.consumer.max.size");
  ConsumerGroup group(classic.id);
  group.epoch = group.assignment_epoch = classic.generation;
  for (const ClassicFacts::Member& one : classic.members) {
    std::optional<Member> member = upgraded_member(classic, one, around.topics);
    if (!member) {
      return cannot_upgrade(
          classic, "what member " + one.id + " says is malformed, or of an assignor of its own");
    }
    group.set_target(one.id, without_epochs(member->assigned));
    group.put(std::move(*member));
  }
  // No hash: the next join raises the epoch, whatever it brings.
  if (!classic.needs_rebalance)
    group.metadata_hash = hash_of_topics(group.subscriptions().topic_names(), around.topics);
  return group;
}

std::optional<ClassicFacts> downgrade(const ConsumerGroup& group,
                                      const std::set<std::string>& leaving,
                                      const Surroundings& around) {
  if (!allows_downgrade(around.settings.migration_policy)) return std::nullopt;
  std::vector<Staying> staying;
  for (const auto& [id, member] : group.members()) {
    if (leaving.contains(id)) continue;
    if (!member.classic) return std::nullopt;
    staying.push_back({&member, &id});
  }
  if (staying.empty() ||
      staying.size() > static_cast<std::size_t>(around.settings.classic_max_size))
    return std::nullopt;
  return classic_facts(group, staying, around.topics);
}

bool is_downgraded_without(const ConsumerGroup& group, const Member& replaced,
                           const Surroundings& around) {
  return allows_downgrade(around.settings.migration_policy) && !replaced.classic &&
         group.classic_members() + 1 == group.members().size() &&
         group.members().size() <= static_cast<std::size_t>(around.settings.classic_max_size);
}

void downgrade_with(const ConsumerGroup& group, const Member& replaced, const Member& fresh,
                    std::int32_t group_epoch, const Surroundings& around, Outcome& out) {
  std::vector<Staying> staying;
  for (const auto& [id, member] : group.members())
    staying.push_back({id == replaced.id ? &fresh : &member, &id});
  out.downgraded = classic_facts(group, staying, around.topics);
  // Whoever joins has a protocol in common with the others: that was seen before.
  CHECK(out.downgraded.has_value());
  out.downgraded->needs_rebalance = group.assignment_epoch < group_epoch;
  add_group_tombstones(out.records, group, RenamedMember{replaced.id, fresh.id});
  for (const auto& [id, member] : group.members()) cancel_timers(out, id);
}

void lose_members(const ConsumerGroup& group, const std::vector<std::string>& member_ids,
                  const Surroundings& around, Outcome& out) {
  // Only a member of the "consumer" protocol keeps such a group from being a classic one.
  const bool only_classic_left = group.classic_members() > 0;
  if (only_classic_left) {
    out.downgraded = downgrade(group, {member_ids.begin(), member_ids.end()}, around);
    if (out.downgraded) {
      add_group_tombstones(out.records, group);
      for (const auto& [id, member] : group.members()) cancel_timers(out, id);
      return;
    }
  }
  remove_members(group, member_ids, around, out);
}

}  // namespace broker::groups::consumer
