#include "broker/groups/consumer/describe.h"

#include "broker/groups/consumer/membership.h"

namespace broker::groups::consumer {
namespace {

using DescribedGroup = protocol::ConsumerGroupDescribeResponse::Group;

// Topics that are gone have no name to show.
template <class Assignment>
void show_partitions(const Partitions& partitions, const TopicsView& topics, Assignment& out) {
  for (const auto& [id, numbers] : partitions) {
    const std::optional<TopicFacts> topic = topics.find(id);
    if (!topic) continue;
    auto& shown = out.topic_partitions.emplace_back();
    shown.topic_id = id;
    shown.topic_name = topic->name;
    shown.partitions.assign(numbers.begin(), numbers.end());
  }
}

}  // namespace

DescribedGroup describe(const ConsumerGroup& group, const TopicsView& topics,
                        const Settings& settings) {
  DescribedGroup out;
  out.group_id = group.id();
  out.group_state = name_of(group.state());
  out.group_epoch = group.epoch;
  out.assignment_epoch = group.assignment_epoch;
  out.assignor_name = name_of(preferred_assignor(group.subscriptions(), settings));
  for (const auto& [id, member] : group.members()) {
    DescribedGroup::Member& shown = out.members.emplace_back();
    shown.member_id = id;
    shown.instance_id = member.instance_id;
    shown.rack_id = member.rack_id;
    shown.member_epoch = member.epoch;
    shown.client_id = member.client_id;
    shown.client_host = member.client_host;
    shown.subscribed_topic_names.assign(member.topics.begin(), member.topics.end());
    shown.subscribed_topic_regex = member.regex;
    // What it has yet to give up it still answers for.
    Partitions held = without_epochs(member.assigned);
    for (const auto& [topic, partitions] : without_epochs(member.revoking))
      held[topic].insert(partitions.begin(), partitions.end());
    show_partitions(held, topics, shown.assignment);
    show_partitions(group.target_of(id), topics, shown.target_assignment);
    shown.member_type = member.classic ? 0 : 1;
  }
  return out;
}

}  // namespace broker::groups::consumer
