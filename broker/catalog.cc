#include "broker/catalog.h"

#include <algorithm>
#include <utility>

#include "broker/broker.h"
#include "broker/catalog_lock.h"
#include "broker/error.h"
#include "broker/group_coordinator.h"
#include "broker/log_store.h"
#include "broker/topic_config.h"
#include "broker/transaction_coordinator.h"
#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/internal_topics.h"
#include "storage/error.h"

namespace broker {
namespace {

constexpr std::size_t topic_name_max = 249;

constexpr std::string_view topics_prefix = "topics/";
constexpr std::string_view mirrors_prefix = "mirrors/";
// Topics whose record is gone and whose logs may still be there.
constexpr std::string_view deleting_prefix = "deleting/";

std::string topic_key(const base::Uuid& id) {
  return std::string(topics_prefix) + id.to_string();
}
std::string deleting_key(const base::Uuid& id) {
  return std::string(deleting_prefix) + id.to_string();
}

spdlog::logger& catalog_log() {
  return base::logger("broker");
}

}  // namespace

bool is_valid_topic_name(std::string_view name) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= topic_name_max && name != "." && name != ".." &&
         std::ranges::all_of(name, legal);
}

std::optional<std::string> find_collision(const Snapshot& catalog, std::string_view name) {
  if (name.find_first_of("._") == std::string_view::npos) return std::nullopt;
  const auto same = [](char a, char b) { return (a == '.' ? '_' : a) == (b == '.' ? '_' : b); };
  for (const auto& [other, topic] : catalog.topics())
    if (other != name && std::ranges::equal(other, name, same)) return other;
  return std::nullopt;
}

TopicPtr Snapshot::find(std::string_view name) const {
  const auto at = topics_.find(name);
  return at == topics_.end() ? nullptr : at->second;
}

TopicPtr Snapshot::find(const base::Uuid& id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

MirrorPtr Snapshot::mirror(std::string_view name) const {
  const auto at = mirrors_.find(name);
  return at == mirrors_.end() ? nullptr : at->second;
}

void Snapshot::put(TopicPtr topic) {
  by_id_[topic->id] = topic;
  topics_[topic->name] = std::move(topic);
}

void Snapshot::erase(const Topic& topic) {
  by_id_.erase(topic.id);
  topics_.erase(topic.name);
}

Catalog::Catalog(Broker& broker, std::unique_ptr<storage::MetadataStore> store)
    : broker_(broker), store_(std::move(store)), lock_(std::make_unique<CatalogLock>()) {}

Catalog::~Catalog() = default;

base::Result<void> Catalog::load() {
  auto snapshot = std::make_shared<Snapshot>();
  TRY(const auto topics, store_->range(topics_prefix));
  for (const storage::Entry& entry : topics) {
    TRY(auto topic, storage::decode_topic(entry.value));
    snapshot->put(std::make_shared<const Topic>(std::move(topic)));
  }
  TRY(const auto mirrors, store_->range(mirrors_prefix));
  for (const storage::Entry& entry : mirrors) {
    TRY(auto mirror, storage::decode_mirror(entry.value));
    std::string name = mirror.name;
    snapshot->mirrors_[std::move(name)] =
        std::make_shared<const storage::MirrorRecord>(std::move(mirror));
  }
  TRY_VOID(load_settings(*snapshot));
  snapshot_ = std::move(snapshot);
  return finish_deletions();
}

base::Result<void> Catalog::finish_deletions() {
  TRY(const auto entries, store_->range(deleting_prefix));
  for (const storage::Entry& entry : entries) {
    TRY(const auto topic, storage::decode_topic(entry.value));
    // A new topic of the same name may have its logs there by now.
    if (!snapshot_->find(topic.name)) {
      for (std::size_t i = 0; i < topic.partitions.size(); ++i)
        TRY_VOID(broker_.logs().delete_log(topic.name, static_cast<std::int32_t>(i)));
      catalog_log().info("the deletion of topic {} was finished", topic.name);
    }
    const std::vector<storage::Write> writes = {{entry.key, std::nullopt}};
    TRY_VOID(store_->txn({}, writes));
  }
  return {};
}

base::Result<void> Catalog::raise_all_epochs() {
  auto next = std::make_shared<Snapshot>(*snapshot_);
  std::vector<storage::Write> writes;
  for (const auto& [name, old] : snapshot_->topics()) {
    Topic topic = *old;
    for (storage::PartitionRecord& partition : topic.partitions) {
      ++partition.leader_epoch;
      partition.leader = broker_.node_id();
    }
    writes.push_back({topic_key(topic.id), storage::encode(topic)});
    next->put(std::make_shared<const Topic>(std::move(topic)));
  }
  if (!writes.empty()) TRY_VOID(store_->txn({}, writes));
  snapshot_ = std::move(next);
  return {};
}

base::Result<std::shared_ptr<Partition>> Catalog::open_partition(const TopicPtr& topic,
                                                                 std::int32_t index) {
  const base::TopicPartition id = {topic->id, index};
  Shard& home = broker_.shard_of(id);
  const SnapshotPtr known = home.catalog();
  TRY(auto opened, broker_.logs().open_log(topic->name, index, topic->id,
                                           log_config(topic->configs, known->config())));
  auto partition = std::make_shared<Partition>(home, topic, index, std::move(opened),
                                               produce_rules(topic->configs, known->config()));
  // While a topic is mirrored, and until its mirror has handed the partition over, the epoch cache
  // belongs to the source's history.
  if (topic->mirror.empty()) TRY_VOID(partition->log().begin_epoch(partition->leader_epoch()));
  return partition;
}

boost::asio::awaitable<void> Catalog::publish(SnapshotPtr next, std::vector<TopicPtr> touched) {
  snapshot_ = next;
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard* const shard = &broker_.shard(i);
    auto deliver = [shard, next, touched]() -> boost::asio::awaitable<bool> {
      shard->set_catalog(next);
      for (const TopicPtr& topic : touched) {
        for (std::size_t p = 0; p < topic->partitions.size(); ++p) {
          const auto partition = shard->find({topic->id, static_cast<std::int32_t>(p)});
          if (partition)
            partition->update(topic, log_config(topic->configs, next->config()),
                              produce_rules(topic->configs, next->config()));
        }
      }
      co_return true;
    };
    jobs.push_back({shard, std::move(deliver)});
  }
  co_await on_each(std::move(jobs));
}

Catalog::Task<void> Catalog::open_partitions(TopicPtr topic, std::int32_t from) {
  std::vector<std::vector<std::int32_t>> by_shard(broker_.shard_count());
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  for (std::int32_t i = from; i < count; ++i)
    by_shard[broker_.shard_index_of({topic->id, i})].push_back(i);
  std::vector<Job<base::Result<void>>> jobs;
  for (std::size_t s = 0; s < by_shard.size(); ++s) {
    if (by_shard[s].empty()) continue;
    Shard* const shard = &broker_.shard(s);
    auto open = [this, shard, topic,
                 mine = std::move(by_shard[s])]() -> boost::asio::awaitable<base::Result<void>> {
      for (const std::int32_t index : mine) {
        CO_TRY(auto partition, open_partition(topic, index));
        shard->add(std::move(partition));
      }
      co_return base::Result<void>();
    };
    jobs.push_back({shard, std::move(open)});
  }
  base::Result<void> all;
  for (const auto& one : co_await on_each(std::move(jobs)))
    if (one.has_error()) all = one;
  if (all.has_error()) {
    catalog_log().error("the logs of topic {} could not be made: {}", topic->name,
                        all.error().message());
    static_cast<void>(co_await remove_partitions(topic, from));  // logs what it cannot do
  }
  co_return all;
}

Catalog::Task<void> Catalog::remove_partitions(TopicPtr topic, std::int32_t from) {
  std::vector<Job<base::Result<void>>> jobs;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  const std::int64_t delay_ms = snapshot_->config().integer("log.segment.delete.delay.ms");
  for (std::int32_t i = from; i < count; ++i) {
    const base::TopicPartition id = {topic->id, i};
    Shard* const shard = &broker_.shard_of(id);
    auto remove = [this, shard, topic, id,
                   delay_ms]() -> boost::asio::awaitable<base::Result<void>> {
      const auto partition = shard->find(id);
      shard->remove(id);
      if (partition) co_await partition->close();
      auto work = [this, topic, id, delay_ms] {
        return broker_.logs().delete_log(topic->name, id.partition, delay_ms);
      };
      const auto deleted = co_await shard->on_disk(std::move(work));
      if (deleted.has_error())
        catalog_log().error("{}-{}: deleting the log failed: {}", topic->name, id.partition,
                            deleted.error().message());
      co_return deleted;
    };
    jobs.push_back({shard, std::move(remove)});
  }
  base::Result<void> all;
  for (const auto& one : co_await on_each(std::move(jobs)))
    if (one.has_error()) all = one;
  co_return all;
}

Catalog::Task<TopicPtr> Catalog::create_locked(NewTopic wanted) {
  if (!is_valid_topic_name(wanted.name)) co_return BrokerErrc::invalid_topic_name;
  if (wanted.partitions < 1 || wanted.partitions > partitions_per_topic_max)
    co_return BrokerErrc::invalid_partition_count;
  if (snapshot_->find(wanted.name)) co_return BrokerErrc::topic_exists;
  const base::Uuid id = wanted.id ? *wanted.id : random_.uuid();
  if (snapshot_->find(id)) co_return BrokerErrc::topic_id_in_use;
  auto topic = std::make_shared<Topic>();
  topic->name = std::move(wanted.name);
  topic->id = id;
  topic->configs = std::move(wanted.configs);
  topic->internal = wanted.internal || protocol::is_coordinator_topic(topic->name);
  topic->mirror = std::move(wanted.mirror);
  topic->desired_state = wanted.desired_state;
  topic->source_id = wanted.source_id;
  topic->partitions.resize(static_cast<std::size_t>(wanted.partitions));
  for (storage::PartitionRecord& one : topic->partitions) one.leader = broker_.node_id();

  std::vector<storage::Write> writes = {{topic_key(id), storage::encode(*topic)}};
  CO_TRY_VOID(store_->txn({}, writes));
  const TopicPtr made = topic;
  const auto opened = co_await open_partitions(made, 0);
  if (opened.has_error()) {
    writes[0].value.reset();
    CO_TRY_VOID(store_->txn({}, writes));
    co_return opened.error();
  }
  auto next = std::make_shared<Snapshot>(*snapshot_);
  next->put(made);
  co_await publish(std::move(next), std::vector<TopicPtr>());
  catalog_log().info("topic {} created, id {}, {} partitions", made->name, made->id.to_string(),
                     made->partitions.size());
  co_return made;
}

Catalog::Task<void> Catalog::delete_locked(TopicPtr topic) {
  const std::vector<storage::Write> forget = {{topic_key(topic->id), std::nullopt},
                                              {deleting_key(topic->id), storage::encode(*topic)}};
  CO_TRY_VOID(store_->txn({}, forget));
  auto next = std::make_shared<Snapshot>(*snapshot_);
  next->erase(*topic);
  co_await publish(std::move(next), std::vector<TopicPtr>());
  CO_TRY_VOID(co_await remove_partitions(topic, 0));
  broker_.groups().topic_deleted(topic->name);
  broker_.transactions().topic_deleted(topic->name);
  const std::vector<storage::Write> finished = {{deleting_key(topic->id), std::nullopt}};
  CO_TRY_VOID(store_->txn({}, finished));
  catalog_log().info("topic {} deleted, id {}", topic->name, topic->id.to_string());
  co_return base::Result<void>();
}

Catalog::Task<TopicPtr> Catalog::add_partitions_locked(TopicPtr topic, std::int32_t total) {
  const auto present = static_cast<std::int32_t>(topic->partitions.size());
  if (total <= present || total > partitions_per_topic_max)
    co_return BrokerErrc::invalid_partition_count;
  auto larger = std::make_shared<Topic>(*topic);
  larger->partitions.resize(static_cast<std::size_t>(total));
  for (std::int32_t i = present; i < total; ++i)
    larger->partitions[static_cast<std::size_t>(i)].leader = broker_.node_id();
  std::vector<storage::Write> writes = {{topic_key(topic->id), storage::encode(*larger)}};
  CO_TRY_VOID(store_->txn({}, writes));
  const TopicPtr made = larger;
  const auto opened = co_await open_partitions(made, present);
  if (opened.has_error()) {
    writes[0].value = storage::encode(*topic);
    CO_TRY_VOID(store_->txn({}, writes));
    co_return opened.error();
  }
  auto next = std::make_shared<Snapshot>(*snapshot_);
  next->put(made);
  std::vector<TopicPtr> touched = {made};
  co_await publish(std::move(next), std::move(touched));
  co_return made;
}

Catalog::Task<void> Catalog::replace_locked(std::vector<Topic> topics) {
  std::vector<storage::Write> writes;
  std::vector<TopicPtr> touched;
  auto next = std::make_shared<Snapshot>(*snapshot_);
  for (Topic& one : topics) {
    writes.push_back({topic_key(one.id), storage::encode(one)});
    touched.push_back(std::make_shared<const Topic>(std::move(one)));
    next->put(touched.back());
  }
  if (writes.empty()) co_return base::Result<void>();
  CO_TRY_VOID(store_->txn({}, writes));
  co_await publish(std::move(next), std::move(touched));
  co_return base::Result<void>();
}

}  // namespace broker
