// What the coordinator tells of its mirrors.
#include <algorithm>
#include <set>
#include <utility>

#include "mirror/coordinator_body.h"

namespace mirror {

using boost::asio::awaitable;

namespace {

template <class T>
bool allows(const std::optional<std::vector<T>>& list, const T& value) {
  return !list || std::ranges::find(*list, value) != list->end();
}

// The partitions that are asked for of this topic; nullptr: none of them. Empty list: all.
const std::vector<std::int32_t>* asked_partitions(const DescribeFilter& filter,
                                                  const LocalTopic& topic) {
  static const std::vector<std::int32_t> all;
  if (!filter.topics && !filter.topic_ids) return &all;
  if (filter.topics)
    if (const auto found = filter.topics->find(topic.name); found != filter.topics->end())
      return &found->second;
  if (filter.topic_ids)
    if (const auto found = filter.topic_ids->find(topic.id); found != filter.topic_ids->end())
      return &found->second;
  return nullptr;
}

// Every partition that the topic has stands in the answer, with or without a driver so far.
TopicDescription describe_topic(const LocalTopic& topic, const std::vector<std::int32_t>& asked_for,
                                std::vector<PartitionDescription> known) {
  TopicDescription out{.name = topic.name,
                       .id = topic.id,
                       .desired_state = topic.desired_state,
                       .error_message = {},
                       .partitions = {}};
  const auto count = static_cast<std::int32_t>(topic.leader_epochs.size());
  for (std::int32_t p = 0; p < count; ++p) {
    if (!asked_for.empty() && std::ranges::find(asked_for, p) == asked_for.end()) continue;
    const auto found = std::ranges::find(known, p, &PartitionDescription::partition);
    if (found != known.end()) {
      out.partitions.push_back(std::move(*found));
    } else {
      PartitionDescription& unknown = out.partitions.emplace_back();
      unknown.partition = p;
      unknown.state = name(MirrorState::unknown);
    }
  }
  return out;
}

}  // namespace

awaitable<MirrorDescription> MirrorTask::describe(const DescribeFilter& filter) {
  MirrorDescription out;
  std::map<std::string, std::vector<PartitionDescription>> known;
  for (std::size_t i = 0; i < shards_.size() && !stopping_; ++i) {
    auto work =
        [shard =
             shards_[i]]() -> awaitable<std::map<std::string, std::vector<PartitionDescription>>> {
      co_return shard->describe();
    };
    auto some = co_await run_on(target_.executor(i), std::move(work));
    for (auto& [topic, partitions] : some)
      std::ranges::move(partitions, std::back_inserter(known[topic]));
  }
  out.name = name();
  out.configs = definition_.configs;
  if (const auto found = out.configs.find(config_key::bootstrap_servers);
      found != out.configs.end())
    out.source_bootstrap = found->second;
  out.source_cluster_id = source_cluster_id();
  out.source_reachable = reachable_;
  if (!source_problem_.empty()) out.error_message = source_problem_;
  for (const LocalTopic& topic : topics())
    if (const auto* asked_for = asked_partitions(filter, topic))
      out.topics.push_back(describe_topic(topic, *asked_for, std::move(known[topic.name])));
  if (!filter.topics && !filter.topic_ids)
    for (const auto& [topic, text] : conflicts_) {
      TopicDescription& conflict = out.topics.emplace_back();
      conflict.name = topic;
      conflict.error_message = text;
    }
  if (!groups_.problem().empty()) out.group_error = groups_.problem();
  if (filter.include_groups) out.groups = groups_.describe();
  co_return out;
}

awaitable<std::vector<MirrorListing>> Coordinator::Body::list(ListFilter filter) {
  std::vector<MirrorListing> all;
  for (const auto& [mirror, task] : tasks_) {
    MirrorListing one{.name = mirror,
                      .source_bootstrap = {},
                      .source_cluster_id = task->source_cluster_id(),
                      .topics = {},
                      .groups_include = join_list(task->config().group_include),
                      .groups_exclude = join_list(task->config().group_exclude)};
    if (!allows(filter.mirrors, mirror) ||
        !allows(filter.source_cluster_ids, one.source_cluster_id))
      continue;
    const ConfigMap& configs = task->definition().configs;
    if (const auto found = configs.find(config_key::bootstrap_servers); found != configs.end())
      one.source_bootstrap = found->second;
    for (const LocalTopic& topic : task->topics()) {
      const bool stopped_too = filter.states.has_value();
      if (stopped_too ? allows(filter.states, topic.desired_state)
                      : topic.desired_state != static_cast<std::int8_t>(MirrorState::stopped))
        one.topics.push_back(topic.name);
    }
    all.push_back(std::move(one));
  }
  co_return all;
}

awaitable<std::vector<MirrorDescription>> Coordinator::Body::describe(DescribeFilter filter) {
  std::vector<MirrorDescription> all;
  std::vector<TaskPtr> tasks;  // the list may change while shards are asked
  for (const auto& [mirror, task] : tasks_)
    if (allows(filter.mirrors, mirror) &&
        (!filter.source_cluster_id || *filter.source_cluster_id == task->source_cluster_id()))
      tasks.push_back(task);
  std::set<std::string> missing;
  if (filter.mirrors) missing.insert(filter.mirrors->begin(), filter.mirrors->end());
  for (const TaskPtr& task : tasks) {
    missing.erase(task->name());
    all.push_back(co_await task->describe(filter));
  }
  for (const std::string& mirror : missing) {
    if (tasks_.contains(mirror)) continue;  // of another source than was asked for
    MirrorDescription& unknown = all.emplace_back();
    unknown.name = mirror;
    unknown.outcome = {control_error::unknown_cluster_mirror,
                       "there is no mirror '" + mirror + "': list them to see which there are"};
  }
  co_return all;
}

awaitable<CoordinatorTotals> Coordinator::Body::totals() {
  CoordinatorTotals out;
  std::vector<TaskPtr> tasks;
  for (const auto& [mirror, task] : tasks_) tasks.push_back(task);
  DescribeFilter everything;
  for (const TaskPtr& task : tasks) {
    const MirrorDescription mirror = co_await task->describe(everything);
    out.sync_failures += task->sync_failures();
    for (const TopicDescription& topic : mirror.topics)
      for (const PartitionDescription& partition : topic.partitions) {
        ++out.partitions_by_state[partition.state];
        out.bytes_copied += partition.bytes_copied;
      }
  }
  co_return out;
}

}  // namespace mirror
