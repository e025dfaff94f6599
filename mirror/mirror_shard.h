// What one mirror has on one shard: the drivers of its partitions there, the fetchers they share, a
// client for questions to the source. The coordinator makes one per mirror and shard and talks to
// it by posting to the shard; everything here is called on the shard's thread.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mirror/group_sync.h"
#include "mirror/mirror_config.h"
#include "mirror/partition_driver.h"
#include "mirror/reconcile.h"
#include "mirror/source_client.h"
#include "mirror/state_store.h"
#include "mirror/target.h"
#include "mirror/task_group.h"
#include "protocol/base/random.h"

namespace mirror {

// Immutable, shared by the shards; a change makes another.
struct MirrorSettings {
  std::string mirror;
  MirrorConfig config;
  RetrySettings retry;
  std::string our_cluster_id;
  std::string client_id;
  // Of one response. Measured: 1 MiB stays in the cache between receiving and writing.
  std::int32_t response_budget_bytes = 1024 * 1024;
};

struct PartitionSnapshot {
  std::string topic;
  std::int32_t partition = 0;
  LocalPartition local;
  GroupPartition offsets;
};

struct LeaderAssignment {
  std::string topic;
  std::int32_t partition = 0;
  SourceLeader leader;
  base::Uuid source_topic_id;
};

// Returns when the groups' offsets of the partition are settled for its failover, or passed over.
using SettleOffsets = std::function<boost::asio::awaitable<void>(std::string, GroupPartition)>;

class MirrorShard final : public DriverHost {
 public:
  // `sync_wanted` is called on this shard when the source should be asked for its metadata soon.
  MirrorShard(Target& target, PartitionStates& states, std::size_t shard,
              std::shared_ptr<const MirrorSettings> settings, std::function<void()> sync_wanted,
              SettleOffsets settle_offsets);
  ~MirrorShard() override;

  void start();
  // Ends every coroutine; nothing of the target is touched afterwards.
  boost::asio::awaitable<void> stop();

  void set_settings(std::shared_ptr<const MirrorSettings> settings);
  // Does nothing when it is there already; false when the target does not have it (yet).
  bool add(base::TopicPartition id, std::optional<Record> record);
  // Drops partitions that are not in the list, and those whose log was deleted under them; answers
  // which they were.
  std::vector<base::TopicPartition> keep_only(const std::vector<base::TopicPartition>& ids);

  void command(const std::string& topic, std::int32_t partition, const Event& event);
  void set_brokers(const std::map<base::NodeId, Endpoint>& brokers) { brokers_ = brokers; }
  void assign(const LeaderAssignment& assignment);

  std::vector<PartitionSnapshot> snapshot() const;
  std::map<std::string, std::vector<PartitionDescription>> describe() const;

  // DriverHost
  boost::asio::any_io_executor executor() override { return executor_; }
  const std::string& mirror() const override { return settings_->mirror; }
  const Settings& settings() const override { return machine_settings_; }
  std::chrono::milliseconds source_deadline() const override;
  std::int32_t jitter_permille() override;
  void spawn(boost::asio::awaitable<void> task) override;
  Task<void> persist(base::TopicPartition id, Record record, LeaderEpoch leader_epoch) override;
  Task<void> forget(base::TopicPartition id) override;
  boost::asio::awaitable<void> settle_groups(std::string topic, GroupPartition at) override;
  Fetcher* fetcher_of(base::NodeId node) override;
  void align(std::shared_ptr<PartitionDriver> driver, Ticket ticket, Align what) override;

 private:
  struct AlignItem;

  boost::asio::awaitable<void> tick_loop();
  void tick();
  void drop_idle_fetchers(base::Clock::time_point now);
  void flush_some(base::Clock::time_point now);
  boost::asio::awaitable<void> run_fetcher(std::shared_ptr<Fetcher> fetcher);
  SourceClientOptions client_options() const;
  ConnectionOptions connection_options() const;
  PartitionDriver* find(const std::string& topic, std::int32_t partition) const;

  boost::asio::awaitable<void> align_loop();
  boost::asio::awaitable<void> align_batch(std::vector<AlignItem> items);
  void find_leaders(const SourceMetadata& metadata, std::vector<AlignItem>& items) const;
  boost::asio::awaitable<void> ask_leader(base::NodeId node, std::vector<AlignItem*> items);
  boost::asio::awaitable<void> ask_reverse(std::vector<AlignItem>& items);
  static bool doubts_metadata(const AlignItem& item);
  static void settle(std::vector<AlignItem>& items);

  Target& target_;
  PartitionStates& states_;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<const MirrorSettings> settings_;
  Settings machine_settings_;
  std::function<void()> sync_wanted_;
  SettleOffsets settle_offsets_;
  TaskGroup tasks_;
  base::Timer tick_timer_;
  base::Random random_ = base::Random::from_system();
  bool stopping_ = false;

  std::map<base::TopicPartition, std::shared_ptr<PartitionDriver>> drivers_;
  std::map<std::pair<std::string, std::int32_t>, PartitionDriver*> by_name_;
  std::map<base::NodeId, Endpoint> brokers_;
  struct FetcherSlot {
    std::shared_ptr<Fetcher> fetcher;
    std::optional<base::Clock::time_point> idle_since;
  };
  std::map<Endpoint, FetcherSlot> fetchers_;
  std::unique_ptr<SourceClient> client_;
  std::vector<AlignItem> align_queue_;
  bool aligning_ = false;
  base::Clock::time_point sync_asked_at_{};
  base::TopicPartition flush_next_;  // where the next round of flushes begins
};

struct MirrorShard::AlignItem {
  std::shared_ptr<PartitionDriver> driver;
  Ticket ticket = 0;
  Align what;
  base::NodeId leader = 0;
  Aligned answer;
  std::optional<Failed> failure;
};

}  // namespace mirror
