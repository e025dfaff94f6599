// One mirror, on shard 0: its definition, the periodic sync with its source, and its part on each
// shard. A dead source holds up nothing but its own mirror.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mirror/control_types.h"
#include "mirror/coordinator.h"
#include "mirror/group_rounds.h"
#include "mirror/mirror_config.h"
#include "mirror/mirror_shard.h"
#include "mirror/reconcile.h"
#include "mirror/source_client.h"
#include "mirror/state_store.h"
#include "mirror/target.h"
#include "mirror/task_group.h"

namespace mirror {

class MirrorTask : public GroupHost, public std::enable_shared_from_this<MirrorTask> {
 public:
  MirrorTask(Target& target, StateStore& store, PartitionStates& states,
             const CoordinatorOptions& options, MirrorDefinition definition, MirrorConfig config);
  ~MirrorTask() override;

  // Restores the partitions that are here, then begins to sync.
  boost::asio::awaitable<void> start();
  // Ends every coroutine on every shard.
  boost::asio::awaitable<void> stop();

  const std::string& name() const override { return definition_.name; }
  const MirrorDefinition& definition() const { return definition_; }
  const MirrorConfig& config() const override { return settings_->config; }
  std::string source_cluster_id() const { return config().source_cluster_id.value_or(""); }
  std::vector<LocalTopic> topics() const override;

  // Makes the config the mirror's, durably. `configs` parsed well.
  boost::asio::awaitable<base::Result<void>> change_config(ConfigMap configs, MirrorConfig config);
  // Asks the partitions for what is desired of them.
  boost::asio::awaitable<void> push_desired();
  // Sync now, or as soon as the one under way ends.
  void sync_now();
  // From FAILED: try again with the count at 0.
  void recover(const std::vector<std::string>& topics);

  boost::asio::awaitable<MirrorDescription> describe(const DescribeFilter& filter);
  boost::asio::awaitable<std::vector<PartitionSnapshot>> snapshot() override;
  bool source_answers() const override { return reachable_; }
  std::chrono::milliseconds refresh_interval() const override;
  SourceClientOptions groups_client_options(std::chrono::milliseconds limit) const override;
  std::uint64_t sync_failures() const { return sync_failures_; }

 private:
  struct ShardCommand {
    std::string topic;
    std::int32_t partition = 0;
    Event event;
  };
  struct Orders {
    std::vector<std::vector<ShardCommand>> commands;     // by shard
    std::vector<std::vector<LeaderAssignment>> leaders;  // by shard
  };

  // sync.cc
  boost::asio::awaitable<void> sync_loop();
  boost::asio::awaitable<void> sync_once();
  boost::asio::awaitable<void> wait_for_next_sync();
  void sync_wanted_by_shard();
  Source source_of(const base::Result<SourceMetadata>& metadata);
  boost::asio::awaitable<void> ask_reverse(const Here& here, Source& source);
  void note_contact(const base::Result<SourceMetadata>& metadata);
  bool absence_counts(base::Clock::time_point now);
  boost::asio::awaitable<void> carry_out(const std::vector<Request>& requests,
                                         const Source& source);
  boost::asio::awaitable<void> create_topic(CreateTopic request);
  boost::asio::awaitable<void> add_partitions(AddPartitions request);
  boost::asio::awaitable<void> remember_topic_id(RememberTopicId request);
  boost::asio::awaitable<void> want(std::vector<std::string> topics, MirrorState state);
  boost::asio::awaitable<void> remember_cluster(RememberCluster request);
  boost::asio::awaitable<void> want_unclaimed();

  // mirror_task.cc
  SettleOffsets settle_offsets();
  boost::asio::awaitable<void> place_partitions();
  boost::asio::awaitable<void> drop_gone(
      const std::vector<std::vector<base::TopicPartition>>& present);
  boost::asio::awaitable<void> add_missing(
      const std::vector<std::vector<base::TopicPartition>>& present);
  boost::asio::awaitable<Here> look_here();
  Orders no_orders() const;
  void order(Orders& orders, const Request& request, const Source* source) const;
  void order(Orders& orders, const LocalTopic& topic, std::int32_t partition, Event event) const;
  void send(Orders orders, std::optional<std::map<base::NodeId, Endpoint>> brokers);
  void publish(MirrorConfig config);

  Target& target_;
  StateStore& store_;
  PartitionStates& states_;
  const CoordinatorOptions& options_;
  MirrorDefinition definition_;
  std::shared_ptr<const MirrorSettings> settings_;
  boost::asio::any_io_executor executor_;
  TaskGroup tasks_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<MirrorShard>> shards_;
  std::set<base::TopicPartition> placed_;
  // Of partitions that are gone; their records must go too before one of the same id is placed.
  std::set<base::TopicPartition> to_forget_;
  bool placing_ = false;

  std::unique_ptr<SourceClient> client_;
  std::map<base::NodeId, Endpoint> brokers_;
  SyncMemory memory_;
  base::Timer sync_timer_;
  bool syncing_ = false;
  bool sync_again_ = false;
  base::Clock::time_point next_sync_at_{};
  base::Clock::time_point last_sync_at_{};
  std::chrono::milliseconds demand_pause_;
  std::optional<base::Clock::time_point> absence_counted_at_;
  bool reachable_ = false;
  bool ever_asked_ = false;
  std::string source_problem_;
  std::map<std::string, std::string> conflicts_;  // topic -> why it cannot be mirrored
  std::uint64_t sync_failures_ = 0;
  GroupRounds groups_;
};

}  // namespace mirror
