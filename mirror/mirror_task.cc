#include "mirror/mirror_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/log.h"

namespace mirror {
namespace {

std::shared_ptr<const MirrorSettings> settings_for(const std::string& mirror, MirrorConfig config,
                                                   const CoordinatorOptions& options,
                                                   const std::string& our_cluster_id) {
  auto settings = std::make_shared<MirrorSettings>();
  settings->mirror = mirror;
  settings->config = std::move(config);
  settings->retry.initial_ms = options.retry_backoff_initial.count();
  settings->retry.cap_ms = options.retry_backoff_max.count();
  settings->retry.max_attempts = options.retry_attempts_max;
  settings->our_cluster_id = our_cluster_id;
  settings->client_id = fmt::format("mirror-manager-src-{}-{}", mirror, options.node_id);
  return settings;
}

}  // namespace

MirrorTask::MirrorTask(Target& target, StateStore& store, PartitionStates& states,
                       const CoordinatorOptions& options, MirrorDefinition definition,
                       MirrorConfig config)
    : target_(target),
      store_(store),
      states_(states),
      options_(options),
      definition_(std::move(definition)),
      settings_(settings_for(definition_.name, std::move(config), options, target.cluster_id())),
      executor_(target.executor(0)),
      tasks_(executor_),
      sync_timer_(executor_),
      demand_pause_(1000),
      groups_(*this, target, tasks_) {}

MirrorTask::~MirrorTask() = default;

boost::asio::awaitable<void> MirrorTask::start() {
  for (std::size_t i = 0; i < target_.shard_count(); ++i) {
    // From its shard to ours; the task may be gone when the word arrives.
    auto wanted = [weak = weak_from_this(), executor = executor_] {
      boost::asio::post(executor, [weak] {
        if (const auto task = weak.lock()) task->sync_wanted_by_shard();
      });
    };
    shards_.push_back(
        std::make_shared<MirrorShard>(target_, states_, i, settings_, wanted, settle_offsets()));
    boost::asio::post(target_.executor(i), [shard = shards_.back()] { shard->start(); });
  }
  co_await place_partitions();
  tasks_.spawn("mirror sync", sync_loop());
  tasks_.spawn("mirror groups", groups_.run());
}

// From a shard to ours and back; the task may be gone when the question arrives.
SettleOffsets MirrorTask::settle_offsets() {
  return [weak = weak_from_this(), executor = executor_](
             std::string topic, GroupPartition at) -> boost::asio::awaitable<void> {
    auto work = [weak, topic = std::move(topic), at]() -> boost::asio::awaitable<void> {
      if (const auto task = weak.lock()) co_await task->groups_.settle(topic, at);
    };
    return run_on(executor, std::move(work));
  };
}

boost::asio::awaitable<void> MirrorTask::stop() {
  stopping_ = true;
  if (client_) client_->close();
  groups_.close();
  sync_timer_.cancel();
  co_await tasks_.wait();
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto end = [shard =
                    std::exchange(shards_[i], nullptr)]() mutable -> boost::asio::awaitable<void> {
      const auto last = std::move(shard);
      co_await last->stop();
    };
    co_await run_on(target_.executor(i), std::move(end));
  }
  shards_.clear();
}

std::vector<LocalTopic> MirrorTask::topics() const {
  std::vector<LocalTopic> mine = target_.topics();
  std::erase_if(mine, [this](const LocalTopic& topic) { return topic.mirror != name(); });
  return mine;
}

// ---- Settings.

void MirrorTask::publish(MirrorConfig config) {
  settings_ = settings_for(name(), std::move(config), options_, target_.cluster_id());
  for (std::size_t i = 0; i < shards_.size(); ++i)
    boost::asio::post(target_.executor(i), [shard = shards_[i], settings = settings_] {
      shard->set_settings(settings);
    });
}

// The definition is edited here before it is saved, so that of two changes at the same time the
// later one to be saved holds both.
boost::asio::awaitable<base::Result<void>> MirrorTask::change_config(ConfigMap configs,
                                                                     MirrorConfig config) {
  definition_.configs = std::move(configs);
  MirrorDefinition copy = definition_;
  auto saved = co_await target_.save_mirror(std::move(copy));
  if (saved && !stopping_) publish(std::move(config));
  co_return saved;
}

// ---- Partitions on their shards.

boost::asio::awaitable<void> MirrorTask::place_partitions() {
  if (placing_ || stopping_) co_return;  // whoever is at it looks at the newest list
  placing_ = true;
  std::vector<std::vector<base::TopicPartition>> present(shards_.size());
  for (const LocalTopic& topic : topics())
    for (std::size_t p = 0; p < topic.leader_epochs.size(); ++p) {
      const base::TopicPartition id{topic.id, static_cast<std::int32_t>(p)};
      present[target_.shard_of(id)].push_back(id);
    }
  // First the old ones: a new one may have the name, or even the id, of one that is gone.
  if (!placed_.empty()) co_await drop_gone(present);
  if (!stopping_) co_await add_missing(present);
  placing_ = false;
}

// Partitions that were deleted here: their drivers go first, then their records.
boost::asio::awaitable<void> MirrorTask::drop_gone(
    const std::vector<std::vector<base::TopicPartition>>& present) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto work = [shard = shards_[i],
                 keep = present[i]]() -> boost::asio::awaitable<std::vector<base::TopicPartition>> {
      co_return shard->keep_only(keep);
    };
    for (const base::TopicPartition& id : co_await run_on(target_.executor(i), std::move(work))) {
      placed_.erase(id);
      to_forget_.insert(id);
    }
    if (stopping_) co_return;
  }
  const std::set<base::TopicPartition> ids = to_forget_;
  for (const base::TopicPartition& id : ids) {
    PartitionKey key{name(), id};
    const auto forgotten = co_await store_.forget(std::move(key));
    if (forgotten)
      to_forget_.erase(id);
    else
      base::logger("mirror").error("{}: the record of a deleted partition stays for now: {}",
                                   name(), forgotten.error().message());
  }
}

boost::asio::awaitable<void> MirrorTask::add_missing(
    const std::vector<std::vector<base::TopicPartition>>& present) {
  for (std::size_t i = 0; i < shards_.size() && !stopping_; ++i) {
    std::vector<std::pair<base::TopicPartition, std::optional<Record>>> add;
    for (const base::TopicPartition& id : present[i])
      if (!placed_.contains(id) && !to_forget_.contains(id))
        add.emplace_back(id, store_.find({name(), id}));
    if (add.empty()) continue;
    auto work = [shard = shards_[i], list = std::move(add)]() mutable
        -> boost::asio::awaitable<std::vector<base::TopicPartition>> {
      std::vector<base::TopicPartition> done;
      for (auto& [id, record] : list)
        if (shard->add(id, std::move(record))) done.push_back(id);
      co_return done;
    };
    const auto done = co_await run_on(target_.executor(i), std::move(work));
    placed_.insert(done.begin(), done.end());
  }
}

boost::asio::awaitable<std::vector<PartitionSnapshot>> MirrorTask::snapshot() {
  std::vector<PartitionSnapshot> all;
  for (std::size_t i = 0; i < shards_.size() && !stopping_; ++i) {
    auto work = [shard = shards_[i]]() -> boost::asio::awaitable<std::vector<PartitionSnapshot>> {
      co_return shard->snapshot();
    };
    auto some = co_await run_on(target_.executor(i), std::move(work));
    std::ranges::move(some, std::back_inserter(all));
  }
  co_return all;
}

boost::asio::awaitable<Here> MirrorTask::look_here() {
  const std::vector<PartitionSnapshot> partitions = co_await snapshot();
  Here here;
  here.states_loaded = true;
  here.source_cluster_id = config().source_cluster_id;
  std::map<std::string, std::size_t> places;
  for (LocalTopic& topic : target_.topics()) {
    if (topic.mirror != name()) {
      here.other_topics.push_back({topic.name, topic.id, topic.mirror});
      continue;
    }
    places[topic.name] = here.topics.size();
    MirroredTopic one{
        .name = topic.name,
        .id = topic.id,
        .source_id = topic.source_id,
        .desired = state_from_number(topic.desired_state).value_or(MirrorState::unknown),
        .excluded = config().filter.excludes(topic.name),
        .partitions = {}};
    for (const LeaderEpoch epoch : topic.leader_epochs) {
      LocalPartition partition;
      partition.leader_epoch = epoch;
      one.partitions.push_back(partition);
    }
    here.topics.push_back(std::move(one));
  }
  for (const PartitionSnapshot& partition : partitions) {
    const auto place = places.find(partition.topic);
    if (place == places.end()) continue;
    auto& list = here.topics[place->second].partitions;
    const auto index = static_cast<std::size_t>(partition.partition);
    if (index < list.size()) list[index] = partition.local;
  }
  co_return here;
}

// ---- Orders. They are gathered and sent without a suspension in between, so that what is desired
// cannot change before an order that was derived from it is on its way; and a shard takes them in
// the order in which they were sent.

MirrorTask::Orders MirrorTask::no_orders() const {
  Orders orders;
  orders.commands.resize(shards_.size());
  orders.leaders.resize(shards_.size());
  return orders;
}

void MirrorTask::order(Orders& orders, const LocalTopic& topic, std::int32_t partition,
                       Event event) const {
  const std::size_t shard = target_.shard_of({topic.id, partition});
  orders.commands[shard].push_back({topic.name, partition, std::move(event)});
}

namespace {

Event event_of(PartitionCommand command) {
  switch (command) {
    case PartitionCommand::start:
      return Start{};
    case PartitionCommand::pause:
      return Pause{};
    case PartitionCommand::resume:
      return Resume{};
    case PartitionCommand::stop:
      return Stop{};
    case PartitionCommand::source_returned:
      return SourceReturned{};
  }
  CHECK(false && "all commands are listed");
}

MirrorState desired_for(PartitionCommand command) {
  switch (command) {
    case PartitionCommand::pause:
      return MirrorState::paused;
    case PartitionCommand::stop:
      return MirrorState::stopped;
    default:
      return MirrorState::mirroring;
  }
}

}  // namespace

void MirrorTask::order(Orders& orders, const Request& request, const Source* source) const {
  if (const auto* command = std::get_if<CommandPartition>(&request)) {
    const auto topic = target_.topic(command->name);
    // The wish may have changed since the plan was made: a late Start would cut a log that clients
    // write to by now.
    if (topic && topic->mirror == name() &&
        topic->desired_state == static_cast<std::int8_t>(desired_for(command->command)))
      order(orders, *topic, command->partition, event_of(command->command));
  } else if (const auto* fail = std::get_if<FailTopic>(&request)) {
    const auto topic = target_.topic(fail->name);
    if (!topic) return;
    for (std::size_t p = 0; p < topic->leader_epochs.size(); ++p)
      order(orders, *topic, static_cast<std::int32_t>(p), MarkFailed{fail->failure, fail->text});
  } else if (const auto* bump = std::get_if<BumpAhead>(&request)) {
    if (const auto topic = target_.topic(bump->name))
      order(orders, *topic, bump->partition, SourceEpochSeen{bump->source_epoch});
  } else if (const auto* leader = std::get_if<AssignLeader>(&request)) {
    const auto topic = target_.topic(leader->name);
    if (!topic || source == nullptr) return;
    const auto found = std::ranges::find(source->topics, leader->name, &SourceTopic::name);
    if (found == source->topics.end()) return;
    orders.leaders[target_.shard_of({topic->id, leader->partition})].push_back(
        {leader->name, leader->partition, {leader->node, leader->leader_epoch}, found->id});
  }
}

void MirrorTask::send(Orders orders, std::optional<std::map<base::NodeId, Endpoint>> brokers) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (orders.commands[i].empty() && orders.leaders[i].empty() && !brokers) continue;
    boost::asio::post(target_.executor(i),
                      [shard = shards_[i], brokers, commands = std::move(orders.commands[i]),
                       leaders = std::move(orders.leaders[i])] {
                        if (brokers) shard->set_brokers(*brokers);
                        for (const LeaderAssignment& leader : leaders) shard->assign(leader);
                        for (const ShardCommand& one : commands)
                          shard->command(one.topic, one.partition, one.event);
                      });
  }
}

boost::asio::awaitable<void> MirrorTask::push_desired() {
  co_await place_partitions();
  if (stopping_) co_return;
  const Here here = co_await look_here();
  if (stopping_) co_return;
  Orders orders = no_orders();
  for (const Request& request : reconcile_commands(here)) order(orders, request, nullptr);
  send(std::move(orders), std::nullopt);
}

void MirrorTask::recover(const std::vector<std::string>& names) {
  Orders orders = no_orders();
  for (const std::string& name : names)
    if (const auto topic = target_.topic(name))
      for (std::size_t p = 0; p < topic->leader_epochs.size(); ++p)
        order(orders, *topic, static_cast<std::int32_t>(p), Recover{});
  send(std::move(orders), std::nullopt);
}

}  // namespace mirror
