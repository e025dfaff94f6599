// Topics, partitions, leader epochs and mirror definitions.
//
// Shard 0 owns the metadata store and makes one change at a time: check, transaction (durable),
// open or remove logs on their shards, then publish a new immutable snapshot to every shard. A
// change has reached all shards when its coroutine returns.
//
// The coroutines may be awaited on any shard; they hop to shard 0 and back by themselves.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/config.h"
#include "protocol/base/ids.h"
#include "protocol/base/random.h"
#include "protocol/base/result.h"
#include "storage/metadata/records.h"
#include "storage/metadata/store.h"

namespace broker {

class Broker;
class CatalogLock;
class Partition;

using Topic = storage::TopicRecord;
using TopicPtr = std::shared_ptr<const Topic>;
using MirrorPtr = std::shared_ptr<const storage::MirrorRecord>;

// Desired states of a mirrored topic, KIP-1279's numbers.
constexpr std::int8_t desired_none = -1;
constexpr std::int8_t desired_mirroring = 3;
constexpr std::int8_t desired_paused = 5;
constexpr std::int8_t desired_stopped = 7;

constexpr std::string_view mirror_state_topic = "__mirror_state";
constexpr std::int32_t partitions_per_topic_max = 10'000;

// Whether clients may not write because the topic is a copy.
inline bool is_mirrored(const Topic& topic) {
  return !topic.mirror.empty() && topic.desired_state != desired_stopped;
}

// Kafka's rule: 1 to 249 characters of [a-zA-Z0-9._-], neither "." nor "..".
bool is_valid_topic_name(std::string_view name);

// The quotas that clients have, by entity. Keys of the inner map are Kafka's: producer_byte_rate …
using QuotaValues = std::map<std::string, double>;
using QuotaTable = std::map<storage::QuotaEntity, QuotaValues>;

// The settings that groups have of their own, by group.
using GroupConfigs = std::map<std::string, ConfigValues, std::less<>>;

class Snapshot {
 public:
  TopicPtr find(std::string_view name) const;
  TopicPtr find(const base::Uuid& id) const;
  // Sorted by name.
  const std::map<std::string, TopicPtr, std::less<>>& topics() const { return topics_; }
  MirrorPtr mirror(std::string_view name) const;
  const std::map<std::string, MirrorPtr, std::less<>>& mirrors() const { return mirrors_; }
  // The broker's settings, with those that were changed at run time. Broker::config() are those it
  // was started with.
  const Config& config() const { return *config_; }
  const QuotaTable& quotas() const { return *quotas_; }
  // Another pointer means that something was changed.
  const std::shared_ptr<const GroupConfigs>& groups() const { return groups_; }

 private:
  friend class Catalog;
  void put(TopicPtr topic);
  void erase(const Topic& topic);

  std::map<std::string, TopicPtr, std::less<>> topics_;
  std::unordered_map<base::Uuid, TopicPtr> by_id_;
  std::map<std::string, MirrorPtr, std::less<>> mirrors_;
  std::shared_ptr<const Config> config_;
  std::shared_ptr<const QuotaTable> quotas_ = std::make_shared<QuotaTable>();
  std::shared_ptr<const GroupConfigs> groups_ = std::make_shared<GroupConfigs>();
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// A topic whose name differs from this one only in '.' and '_': Kafka's metrics count the two as
// the same, so they cannot both be there.
std::optional<std::string> find_collision(const Snapshot& catalog, std::string_view name);

struct NewTopic {
  std::string name;
  std::optional<base::Uuid> id;  // a fresh one when absent
  std::int32_t partitions = 1;
  std::map<std::string, std::string> configs = {};  // must have been validated
  bool internal = false;
  std::string mirror = {};
  std::int8_t desired_state = desired_none;
  std::optional<base::Uuid> source_id = {};
};

class Catalog {
 public:
  Catalog(Broker& broker, std::unique_ptr<storage::MetadataStore> store);
  ~Catalog();

  // Reads everything from the store, and finishes deletions that a crash interrupted. Before any
  // shard runs.
  base::Result<void> load();
  // A28: the leader epoch of every partition rises with every start, durably, before anything is
  // served. Before any shard runs.
  base::Result<void> raise_all_epochs();

  // The newest snapshot; shard 0 only. Elsewhere ask Shard::catalog().
  SnapshotPtr snapshot() const { return snapshot_; }

  // topic_exists, topic_id_in_use, invalid_topic_name, invalid_partition_count.
  boost::asio::awaitable<base::Result<TopicPtr>> create_topic(NewTopic topic);
  // Its logs are gone when this returns, their files after log.segment.delete.delay.ms.
  // unknown_topic_id; mirror_not_stopped while the topic is mirrored.
  boost::asio::awaitable<base::Result<void>> delete_topic(base::Uuid id);
  // unknown_topic; invalid_partition_count unless `total` is above the present count;
  // mirror_not_stopped while mirrored, unless the mirror itself asks (`by_mirror`).
  boost::asio::awaitable<base::Result<TopicPtr>> add_partitions(std::string name,
                                                                std::int32_t total,
                                                                bool by_mirror = false);
  // Replaces what is set on the topic by what `change` makes of it, in one step; nothing: it stays
  // as it is. The logs follow at once.
  template <class Values>
  using Alteration = std::function<std::optional<Values>(const Values&)>;
  boost::asio::awaitable<base::Result<TopicPtr>> alter_topic(
      std::string name, Alteration<std::map<std::string, std::string>> change);
  // The same for the settings of all brokers, or of this one alone.
  boost::asio::awaitable<base::Result<void>> alter_broker(bool of_cluster,
                                                          Alteration<ConfigValues> change);
  // The same for the settings of one group, which need not be there.
  boost::asio::awaitable<base::Result<void>> alter_group(std::string name,
                                                         Alteration<ConfigValues> change);
  // Sets what has a value and removes what has none. An entity without quotas is gone.
  using QuotaChange = std::map<std::string, std::optional<double>>;
  boost::asio::awaitable<base::Result<void>> alter_quotas(
      std::map<storage::QuotaEntity, QuotaChange> changes);
  // Raises the partition's leader epoch to at least `at_least`; answers the one that holds then.
  boost::asio::awaitable<base::Result<base::LeaderEpoch>> bump_epoch(base::TopicPartition id,
                                                                     base::LeaderEpoch at_least);

  // Mirrors. See mirror/target.h, whose broker side these are.
  boost::asio::awaitable<base::Result<TopicPtr>> attach_topic(std::string mirror, std::string name,
                                                              base::Uuid id,
                                                              std::int32_t partitions);
  boost::asio::awaitable<base::Result<void>> set_desired_state(std::vector<std::string> names,
                                                               std::int8_t state);
  boost::asio::awaitable<base::Result<void>> remember_source_id(std::string name,
                                                                base::Uuid source_id);
  boost::asio::awaitable<base::Result<void>> detach_topics(std::vector<std::string> names);
  boost::asio::awaitable<base::Result<void>> save_mirror(storage::MirrorRecord mirror);
  boost::asio::awaitable<base::Result<void>> remove_mirror(std::string name);

  // A partition of ours with its log, ready to be given to its shard. On the partition's shard.
  base::Result<std::shared_ptr<Partition>> open_partition(const TopicPtr& topic,
                                                          std::int32_t index);

  // Single values of the store that are nobody else's: producer-id block, cluster id. Shard 0 or
  // before any shard runs.
  storage::MetadataStore& store() { return *store_; }

 private:
  template <class T>
  using Task = boost::asio::awaitable<base::Result<T>>;

  // These run on shard 0 with the lock held.
  Task<TopicPtr> create_locked(NewTopic wanted);
  Task<void> delete_locked(TopicPtr topic);
  Task<TopicPtr> add_partitions_locked(TopicPtr topic, std::int32_t total);
  // Makes the new records durable and known everywhere.
  Task<void> replace_locked(std::vector<Topic> topics);
  // Opens the logs of the partitions from `from` on; all or none.
  Task<void> open_partitions(TopicPtr topic, std::int32_t from);
  Task<void> remove_partitions(TopicPtr topic, std::int32_t from);
  // Hands the snapshot to all shards, and the records in it to the partitions of `touched`.
  boost::asio::awaitable<void> publish(SnapshotPtr next, std::vector<TopicPtr> touched);
  base::Result<void> finish_deletions();
  base::Result<void> load_settings(Snapshot& into);

  Broker& broker_;
  std::unique_ptr<storage::MetadataStore> store_;
  std::unique_ptr<CatalogLock> lock_;
  SnapshotPtr snapshot_ = std::make_shared<Snapshot>();
  base::Random random_ = base::Random::from_system();
};

}  // namespace broker
