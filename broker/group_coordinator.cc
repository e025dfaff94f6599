#include "broker/group_coordinator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/error_map.h"
#include "protocol/base/check.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

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

// Takes the next character from UTF-8 text.
std::uint32_t next_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const std::uint32_t first = byte(0);
  std::size_t length = 1;
  std::uint32_t point = first;
  if (first >= 0xf0) {
    length = 4;
    point = (first & 0x07u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 |
            (byte(3) & 0x3fu);
  } else if (first >= 0xe0) {
    length = 3;
    point = (first & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  } else if (first >= 0xc0) {
    length = 2;
    point = (first & 0x1fu) << 6 | (byte(1) & 0x3fu);
  }
  text.remove_prefix(std::min(length, text.size()));
  return point;
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

std::int32_t partition_for_group(std::string_view group, std::int32_t partitions) {
  std::uint32_t hash = 0;  // Java's String.hashCode, over UTF-16
  while (!group.empty()) {
    const std::uint32_t point = next_code_point(group);
    if (point < 0x10000) {
      hash = hash * 31 + point;
    } else {
      hash = hash * 31 + (0xd800 + ((point - 0x10000) >> 10));
      hash = hash * 31 + (0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  const auto signed_hash = static_cast<std::int32_t>(hash);
  if (signed_hash == std::numeric_limits<std::int32_t>::min()) return 0;
  return std::abs(signed_hash) % partitions;
}

GroupCoordinator::GroupCoordinator(Broker& broker)
    : broker_(broker),
      limits_(limits_of(broker.config())),
      consumer_settings_(consumer_settings_of(broker.config())),
      by_shard_(broker.shard_count()) {}

GroupCoordinator::~GroupCoordinator() = default;

void GroupCoordinator::spawn(Shard& shard, asio::awaitable<void> loop) {
  ++running_;
  asio::co_spawn(shard.executor(), std::move(loop), [this](std::exception_ptr failure) {
    --running_;
    if (failure) base::logger("groups").error("a loop of the groups ended by an exception");
  });
}

void GroupCoordinator::start() {
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    spawn(shard, housekeeping(&shard));
  }
}

std::optional<base::TopicPartition> GroupCoordinator::locate(std::string_view group) const {
  const Shard* here = Shard::current();
  CHECK(here != nullptr);
  const TopicPtr topic = here->catalog()->find(consumer_offsets_topic);
  if (!topic) return std::nullopt;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  return base::TopicPartition{topic->id, partition_for_group(group, count)};
}

Shard& GroupCoordinator::shard_of(const base::TopicPartition& id) const {
  return broker_.shard_of(id);
}

std::shared_ptr<GroupPartition> GroupCoordinator::find_or_open(Shard& shard,
                                                               const base::TopicPartition& id) {
  Partitions& mine = by_shard_[shard.index()];
  const auto at = mine.find(id.partition);
  if (at != mine.end()) {
    if (!at->second->ended()) return at->second;
    at->second->end(ErrorCode::not_coordinator);
    mine.erase(at);
  }
  if (shard.stopping()) return nullptr;
  auto partition = shard.find(id);
  if (!partition || partition->closed()) return nullptr;
  auto opened =
      std::make_shared<GroupPartition>(shard, std::move(partition), limits_, consumer_settings_);
  mine.emplace(id.partition, opened);
  spawn(shard, opened->run());
  return opened;
}

std::vector<std::shared_ptr<GroupPartition>> GroupCoordinator::open_all(Shard& shard) {
  std::vector<std::shared_ptr<GroupPartition>> all;
  const TopicPtr topic = shard.catalog()->find(consumer_offsets_topic);
  if (!topic) return all;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const base::TopicPartition id = {topic->id, i};
    if (&broker_.shard_of(id) != &shard) continue;
    if (auto one = find_or_open(shard, id)) all.push_back(std::move(one));
  }
  return all;
}

asio::awaitable<void> GroupCoordinator::housekeeping(Shard* shard) {
  open_all(*shard);
  const std::chrono::milliseconds interval(
      broker_.config().integer("offsets.retention.check.interval.ms"));
  for (;;) {
    co_await shard->stop_signal().wait(base::Clock::now() + interval);
    if (shard->stopping()) break;
    for (const auto& one : open_all(*shard)) co_await one->clean();
  }
  for (const auto& [index, one] : by_shard_[shard->index()])
    one->end(ErrorCode::coordinator_not_available);
}

asio::awaitable<base::Result<void>> GroupCoordinator::ensure_topic() {
  if (Shard::current()->catalog()->find(consumer_offsets_topic)) co_return base::Result<void>();
  const auto made = co_await broker_.catalog().create_topic(offsets_topic(broker_.config()));
  if (made.has_error() && made.error() != BrokerErrc::topic_exists) co_return made.error();
  co_return base::Result<void>();
}

asio::awaitable<groups::JoinReply> GroupCoordinator::join(const protocol::JoinGroupRequest& asked,
                                                          groups::Caller caller) {
  groups::JoinReply none;
  none.error = ErrorCode::not_coordinator;
  const auto place = locate(asked.group_id);
  if (!place) co_return none;
  Shard& target = shard_of(*place);
  auto job = [this, &target, &asked, &caller, &none,
              id = *place]() -> asio::awaitable<groups::JoinReply> {
    const auto partition = find_or_open(target, id);
    if (!partition) co_return none;
    co_return co_await partition->join(asked, caller);
  };
  co_return co_await on(target, std::move(job));
}

asio::awaitable<groups::SyncReply> GroupCoordinator::sync(const protocol::SyncGroupRequest& asked) {
  groups::SyncReply none;
  none.error = ErrorCode::not_coordinator;
  const auto place = locate(asked.group_id);
  if (!place) co_return none;
  Shard& target = shard_of(*place);
  auto job = [this, &target, &asked, &none, id = *place]() -> asio::awaitable<groups::SyncReply> {
    const auto partition = find_or_open(target, id);
    if (!partition) co_return none;
    co_return co_await partition->sync(asked);
  };
  co_return co_await on(target, std::move(job));
}

asio::awaitable<CoordinatorOutcome<std::vector<groups::ListedGroup>>> GroupCoordinator::list(
    std::vector<std::string> states, std::vector<std::string> types) {
  using Outcome = CoordinatorOutcome<std::vector<groups::ListedGroup>>;
  using Listed = groups::Decided<std::vector<groups::ListedGroup>>;
  auto ask = [&states, &types](groups::GroupShard& state, groups::Now) {
    Listed listed;
    listed.answer = state.list(states, types);
    return listed;
  };
  std::vector<Job<Outcome>> jobs;
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    auto job = [this, &shard, &ask]() -> asio::awaitable<Outcome> {
      Outcome all;
      for (const auto& one : open_all(shard)) {
        Outcome some = co_await one->decide(ask);
        // What is not ours to tell is left out, as from a broker that does not coordinate it.
        if (some.error == ErrorCode::coordinator_load_in_progress) co_return some;
        std::ranges::move(some.value, std::back_inserter(all.value));
      }
      co_return all;
    };
    jobs.push_back({&shard, std::move(job)});
  }
  Outcome all;
  for (Outcome& some : co_await on_each(std::move(jobs))) {
    if (some.error != ErrorCode::none) all.error = some.error;
    std::ranges::move(some.value, std::back_inserter(all.value));
  }
  if (all.error != ErrorCode::none) all.value.clear();
  co_return all;
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
  Shard& target = shard_of(id);
  auto job = [this, &target, id, marker]() -> asio::awaitable<ErrorCode> {
    const auto found = find_or_open(target, id);
    if (!found) co_return ErrorCode::not_coordinator;
    co_return co_await found->end_transaction(marker);
  };
  co_return co_await on(target, std::move(job));
}

asio::awaitable<void> GroupCoordinator::forget_topic(Shard* shard, std::string name) {
  for (const auto& one : open_all(*shard)) co_await one->forget_topic(name);
}

void GroupCoordinator::topic_deleted(const std::string& name) {
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    if (name != consumer_offsets_topic) {
      spawn(shard, forget_topic(&shard, name));
      continue;
    }
    asio::post(shard.executor(), [this, mine = &shard] {
      for (const auto& [index, one] : by_shard_[mine->index()])
        one->end(ErrorCode::not_coordinator);
      by_shard_[mine->index()].clear();
    });
  }
}

}  // namespace broker
