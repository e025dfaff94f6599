// A broker in memory, as far as mirroring needs one. All shards are one thread here. What was not
// flushed can be lost, and a call of each kind can be made to fail or to stall.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mirror/target.h"
#include "protocol/base/random.h"

namespace mirror_test {

using base::Offset;
using mirror::Task;

struct FakeBatch {
  Offset base = 0, next = 0;
  std::optional<base::LeaderEpoch> epoch;
  base::Buffer bytes;
};

class FakeTarget;

// What survives the driver: the log of one partition.
struct FakeLog {
  std::string topic;
  base::TopicPartition id;
  std::vector<FakeBatch> batches;
  Offset start = 0, end = 0, durable = 0;
  base::LeaderEpoch leader_epoch = 0;
  bool writable = false;
  bool gone = false;
  int markers = 0, resets = 0, open_transactions = 0;
  std::vector<std::string> events;  // what was done, in order
  base::Buffer bytes() const;
};

class FakePartition final : public mirror::TargetPartition {
 public:
  FakePartition(FakeTarget& target, std::shared_ptr<FakeLog> log)
      : target_(target), owned_(std::move(log)), log_(*owned_) {}
  const std::string& topic() const override { return log_.topic; }
  base::TopicPartition id() const override { return log_.id; }
  mirror::LogPosition position() const override;
  std::optional<base::Uuid> source_id() const override;
  bool is_gone() const override { return log_.gone; }
  base::Result<mirror::LogPosition> append(base::Bytes batches) override;
  Task<mirror::LogPosition> flush() override;
  Task<mirror::LogPosition> truncate_to(Offset offset) override;
  Task<mirror::LogPosition> restart_at(Offset offset) override;
  base::Result<mirror::LogPosition> advance_log_start(Offset offset) override;
  std::optional<mirror::EpochEndOffset> end_offset_for(base::LeaderEpoch epoch) const override;
  Task<base::LeaderEpoch> bump_epoch(base::LeaderEpoch at_least) override;
  Task<mirror::LogPosition> write_abort_markers() override;
  Task<mirror::LogPosition> write_producer_id_reset() override;
  void refuse_writes(std::string mirror) override;
  Task<void> allow_writes() override;

 private:
  void add_local(base::Buffer batch);
  FakeTarget& target_;
  std::shared_ptr<FakeLog> owned_;
  FakeLog& log_;
};

class FakeTarget final : public mirror::Target {
 public:
  FakeTarget(boost::asio::io_context& io, std::size_t shards) : io_(io), shards_(shards) {}

  FakeLog& log(const std::string& topic, std::int32_t partition);
  // Waits a turn of the loop, as the disk does.
  boost::asio::awaitable<void> turn();

  const std::string& cluster_id() const override { return cluster_id_; }
  std::size_t shard_count() const override { return shards_; }
  boost::asio::any_io_executor executor(std::size_t) override { return io_.get_executor(); }
  std::size_t shard_of(base::TopicPartition partition) const override;
  std::shared_ptr<mirror::TargetPartition> partition(base::TopicPartition id) override;

  std::vector<mirror::LocalTopic> topics() const override;
  std::optional<mirror::LocalTopic> topic(const std::string& name) const override;
  Task<mirror::LocalTopic> attach_topic(std::string mirror, std::string name, base::Uuid id,
                                        std::int32_t partitions) override;
  Task<void> add_partitions(std::string name, std::int32_t total) override;
  Task<void> set_desired_state(std::vector<std::string> names, std::int8_t state) override;
  Task<void> remember_source_id(std::string name, base::Uuid source_id) override;
  Task<void> detach_topics(std::vector<std::string> names) override;
  std::vector<mirror::MirrorDefinition> mirrors() const override;
  Task<void> save_mirror(mirror::MirrorDefinition definition) override;
  Task<void> remove_mirror(std::string name) override;
  std::int32_t state_partition_count() const override { return 50; }
  Task<void> append_state(std::int32_t state_partition, std::vector<StateRecord> records) override;
  Task<void> replay_state(
      std::function<void(base::Bytes, std::optional<base::Bytes>)> apply) override;

  boost::asio::awaitable<std::vector<base::Error>> commit_group_offsets(
      std::vector<mirror::GroupCommit> commits) override;

  // What was committed, by group, topic and partition.
  std::map<std::string, std::map<std::pair<std::string, std::int32_t>, mirror::CommittedOffset>>
      committed;
  std::set<std::string> groups_with_members;
  std::function<void(const mirror::GroupCommit&)> on_group_commit;
  int group_commits = 0;  // groups

  void add_ordinary_topic(const std::string& name, base::Uuid id, std::int32_t partitions);
  void remove_topic(const std::string& name);

  // Faults.
  int fail_state_appends = 0;
  bool fail_appends = false;
  // Counts.
  int state_appends = 0;

 private:
  boost::asio::io_context& io_;
  std::size_t shards_;
  std::string cluster_id_ = "destination-cluster-id";
  base::Random random_{7};
  std::map<std::string, mirror::LocalTopic> topics_;
  std::map<base::TopicPartition, std::shared_ptr<FakeLog>> logs_;
  std::map<std::string, mirror::MirrorDefinition> mirrors_;
  std::map<std::int32_t, std::vector<StateRecord>> states_;
};

}  // namespace mirror_test
