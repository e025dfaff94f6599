// The catalog's public changes: each hops to shard 0, takes the lock, checks, and hands over.
#include <algorithm>
#include <utility>

#include "broker/broker.h"
#include "broker/catalog.h"
#include "broker/catalog_lock.h"
#include "broker/error.h"
#include "protocol/internal_topics.h"

namespace broker {

namespace {

template <class T>
using Change = boost::asio::awaitable<base::Result<T>>;

}  // namespace

Change<TopicPtr> Catalog::create_topic(NewTopic topic) {
  auto change = [this, &topic]() -> Change<TopicPtr> {
    const auto guard = co_await lock_->take();
    co_return co_await create_locked(std::move(topic));
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::delete_topic(base::Uuid id) {
  auto change = [this, id]() -> Change<void> {
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(id);
    if (!topic) co_return BrokerErrc::unknown_topic_id;
    if (is_mirrored(*topic)) co_return BrokerErrc::mirror_not_stopped;
    co_return co_await delete_locked(topic);
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<TopicPtr> Catalog::add_partitions(std::string name, std::int32_t total, bool by_mirror) {
  auto change = [this, &name, total, by_mirror]() -> Change<TopicPtr> {
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(name);
    if (!topic) co_return BrokerErrc::unknown_topic;
    if (is_mirrored(*topic) && !by_mirror) co_return BrokerErrc::mirror_not_stopped;
    co_return co_await add_partitions_locked(topic, total);
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<base::LeaderEpoch> Catalog::bump_epoch(base::TopicPartition id, base::LeaderEpoch at_least) {
  auto change = [this, id, at_least]() -> Change<base::LeaderEpoch> {
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(id.topic_id);
    const auto index = static_cast<std::size_t>(id.partition);
    if (!topic || index >= topic->partitions.size()) co_return BrokerErrc::unknown_topic_id;
    const base::LeaderEpoch present = topic->partitions[index].leader_epoch;
    if (present >= at_least) co_return present;
    std::vector<Topic> changed = {*topic};
    changed[0].partitions[index].leader_epoch = at_least;
    CO_TRY_VOID(co_await replace_locked(std::move(changed)));
    co_return at_least;
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

// Any of these may fail half-way through only between a topic's creation and nothing else, so a
// mirror that calls again after an error finds the topic attached and goes on.
Change<TopicPtr> Catalog::attach_topic(std::string mirror, std::string name, base::Uuid id,
                                       std::int32_t partitions) {
  auto change = [this, &mirror, &name, id, partitions]() -> Change<TopicPtr> {
    if (protocol::is_coordinator_topic(name)) co_return BrokerErrc::topic_exists;
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(name);
    if (!topic) {
      NewTopic wanted;
      wanted.name = name;
      if (id.is_zero())
        wanted.source_id = id;
      else
        wanted.id = id;
      wanted.partitions = partitions;
      wanted.mirror = mirror;
      // How long the source keeps its records is not known here: after a failover nothing may go by
      // itself that was copied.
      wanted.configs = {{"retention.ms", "-1"}};
      co_return co_await create_locked(std::move(wanted));
    }
    if (!topic->mirror.empty() && topic->mirror != mirror) co_return BrokerErrc::topic_exists;
    if (topic->internal) co_return BrokerErrc::topic_exists;
    if (!id.is_zero() && topic->id != id) co_return BrokerErrc::inconsistent_topic_id;
    if (!is_mirrored(*topic)) {
      std::vector<Topic> changed = {*topic};
      changed[0].mirror = mirror;
      changed[0].desired_state = desired_none;  // read-only from now on
      changed[0].source_id.reset();
      if (id.is_zero()) changed[0].source_id = id;
      CO_TRY_VOID(co_await replace_locked(std::move(changed)));
    }
    if (static_cast<std::int32_t>(topic->partitions.size()) < partitions)
      co_return co_await add_partitions_locked(snapshot_->find(name), partitions);
    co_return snapshot_->find(name);
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::set_desired_state(std::vector<std::string> names, std::int8_t state) {
  auto change = [this, &names, state]() -> Change<void> {
    const auto guard = co_await lock_->take();
    std::vector<Topic> changed;
    for (const std::string& name : names) {
      const TopicPtr topic = snapshot_->find(name);
      if (!topic) co_return BrokerErrc::unknown_topic;
      if (topic->desired_state == state) continue;
      changed.push_back(*topic);
      changed.back().desired_state = state;
    }
    co_return co_await replace_locked(std::move(changed));
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::remember_source_id(std::string name, base::Uuid source_id) {
  auto change = [this, &name, source_id]() -> Change<void> {
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(name);
    if (!topic) co_return BrokerErrc::unknown_topic;
    std::vector<Topic> changed = {*topic};
    changed[0].source_id = source_id;
    co_return co_await replace_locked(std::move(changed));
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::detach_topics(std::vector<std::string> names) {
  auto change = [this, &names]() -> Change<void> {
    const auto guard = co_await lock_->take();
    std::vector<Topic> changed;
    for (const std::string& name : names) {
      const TopicPtr topic = snapshot_->find(name);
      if (!topic || topic->mirror.empty()) continue;  // done before
      if (is_mirrored(*topic)) co_return BrokerErrc::mirror_not_stopped;
      changed.push_back(*topic);
      changed.back().mirror.clear();
      changed.back().desired_state = desired_none;
      changed.back().source_id.reset();
    }
    co_return co_await replace_locked(std::move(changed));
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::save_mirror(storage::MirrorRecord mirror) {
  auto change = [this, &mirror]() -> Change<void> {
    const auto guard = co_await lock_->take();
    const std::vector<storage::Write> writes = {
        {"mirrors/" + mirror.name, storage::encode(mirror)}};
    CO_TRY_VOID(store_->txn({}, writes));
    auto next = std::make_shared<Snapshot>(*snapshot_);
    std::string name = mirror.name;
    next->mirrors_[std::move(name)] =
        std::make_shared<const storage::MirrorRecord>(std::move(mirror));
    co_await publish(std::move(next), std::vector<TopicPtr>());
    co_return base::Result<void>();
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

Change<void> Catalog::remove_mirror(std::string name) {
  auto change = [this, &name]() -> Change<void> {
    const auto guard = co_await lock_->take();
    const std::vector<storage::Write> writes = {{"mirrors/" + name, std::nullopt}};
    CO_TRY_VOID(store_->txn({}, writes));
    auto next = std::make_shared<Snapshot>(*snapshot_);
    next->mirrors_.erase(name);
    co_await publish(std::move(next), std::vector<TopicPtr>());
    co_return base::Result<void>();
  };
  co_return co_await on(broker_.shard(0), std::move(change));
}

}  // namespace broker
