#include "broker/group_coordinator.h"

#include <utility>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/error_map.h"

namespace broker {

namespace asio = boost::asio;
using protocol::ErrorCode;

namespace {

groups::Limits limits_of(const Config& config) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::int32_t>(config.integer(name));
  };
  groups::Limits limits;
  limits.session_timeout_min_ms = number("group.min.session.timeout.ms");
  limits.session_timeout_max_ms = number("group.max.session.timeout.ms");
  limits.initial_rebalance_delay_ms = number("group.initial.rebalance.delay.ms");
  limits.members_max = number("group.max.size");
  limits.offset_metadata_bytes_max = number("offset.metadata.max.bytes");
  limits.offsets_retention_ms = config.integer("offsets.retention.minutes") * 60 * 1000;
  limits.record_bytes_max = coordinator_record_bytes_max;
  return limits;
}

groups::consumer::Settings consumer_settings_of(const Config& config) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::int32_t>(config.integer(name));
  };
  groups::consumer::Settings settings;
  settings.session_timeout_ms = number("group.consumer.session.timeout.ms");
  settings.heartbeat_interval_ms = number("group.consumer.heartbeat.interval.ms");
  settings.max_size = number("group.consumer.max.size");
  settings.assignment_interval_ms = number("group.consumer.assignment.interval.ms");
  settings.regex_refresh_interval_ms = number("group.consumer.regex.refresh.interval.ms");
  settings.classic_max_size = number("group.max.size");
  settings.migration_policy =
      *groups::consumer::parse_migration_policy(config.text("group.consumer.migration.policy"));
  settings.assignors.clear();
  for (const std::string& name : config.list("group.consumer.assignors"))
    settings.assignors.push_back(*groups::consumer::find_assignor(name));
  return settings;
}

}  // namespace

NewTopic offsets_topic(const Config& config) {
  NewTopic topic;
  topic.name = std::string(consumer_offsets_topic);
  topic.partitions = static_cast<std::int32_t>(config.integer("offsets.topic.num.partitions"));
  topic.internal = true;
  topic.configs = {{"cleanup.policy", "compact"},
                   {"compression.type", "producer"},
                   {"segment.bytes", config.text("offsets.topic.segment.bytes")}};
  return topic;
}

GroupCoordinator::GroupCoordinator(Broker& broker)
    : broker_(broker),
      limits_(limits_of(broker.config())),
      consumer_settings_(consumer_settings_of(broker.config())),
      partitions_(broker, groups_kind, [this](Shard& shard, std::shared_ptr<Partition> partition) {
        return std::make_shared<GroupPartition>(shard, std::move(partition), limits_,
                                                consumer_settings_);
      }) {}

asio::awaitable<base::Result<void>> GroupCoordinator::ensure_topic() {
  return partitions_.ensure_topic(offsets_topic(broker_.config()));
}

asio::awaitable<groups::JoinReply> GroupCoordinator::join(const protocol::JoinGroupRequest& asked,
                                                          groups::Caller caller) {
  auto ask = [&asked, caller = std::move(caller)](GroupPartition& partition) {
    return partition.join(asked, caller);
  };
  return partitions_.at_home(asked.group_id, std::move(ask));
}

asio::awaitable<groups::SyncReply> GroupCoordinator::sync(const protocol::SyncGroupRequest& asked) {
  auto ask = [&asked](GroupPartition& partition) { return partition.sync(asked); };
  return partitions_.at_home(asked.group_id, std::move(ask));
}

asio::awaitable<CoordinatorOutcome<std::vector<groups::ListedGroup>>> GroupCoordinator::list(
    std::vector<std::string> states, std::vector<std::string> types) {
  auto look = [states = std::move(states), types = std::move(types)](groups::GroupShard& state,
                                                                     groups::Now) {
    groups::Decided<std::vector<groups::ListedGroup>> listed;
    listed.answer = state.list(states, types);
    return listed;
  };
  auto ask = [look = std::move(look)](GroupPartition& partition) { return partition.decide(look); };
  return partitions_.collect(std::move(ask));
}

asio::awaitable<ErrorCode> GroupCoordinator::commit_mirrored(std::string group,
                                                             std::vector<MirroredOffset> offsets) {
  const auto ready = co_await ensure_topic();
  if (ready.has_error()) co_return kafka_error(ready.error());
  groups::OffsetCommit commit;
  commit.group = group;
  for (MirroredOffset& one : offsets) {
    groups::OffsetCommit::Entry& entry = commit.entries.emplace_back();
    entry.topic = std::move(one.topic);
    entry.partition = one.partition;
    entry.offset = one.offset;
    entry.leader_epoch = one.leader_epoch;
    entry.metadata = std::move(one.metadata);
    entry.commit_timestamp_ms = one.commit_timestamp_ms;
  }
  auto ask = [&commit](groups::GroupShard& state, groups::Now now) {
    return state.commit_mirrored(commit, now);
  };
  const auto outcome = co_await decide(group, std::move(ask));
  co_return outcome.error != ErrorCode::none ? outcome.error : outcome.value;
}

asio::awaitable<ErrorCode> GroupCoordinator::end_transaction(std::int32_t partition,
                                                             TransactionMarker marker) {
  const TopicPtr topic = Shard::current()->catalog()->find(consumer_offsets_topic);
  if (!topic || partition < 0 || static_cast<std::size_t>(partition) >= topic->partitions.size())
    co_return ErrorCode::unknown_topic_or_partition;
  const base::TopicPartition id = {topic->id, partition};
  auto ask = [marker](GroupPartition& found) { return found.end_transaction(marker); };
  co_return co_await partitions_.at(id, std::move(ask), ErrorCode::not_coordinator);
}

asio::awaitable<void> GroupCoordinator::forget_topic(Shard* shard, std::string name) {
  for (const auto& one : partitions_.open_all(*shard)) co_await one->forget_topic(name);
}

void GroupCoordinator::topic_deleted(const std::string& name) {
  if (name == consumer_offsets_topic) return partitions_.topic_deleted();
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    partitions_.spawn(shard, forget_topic(&shard, name));
  }
}

}  // namespace broker
