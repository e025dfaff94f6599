// The broker as the mirrors see it; see mirror/target.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "mirror/target.h"

namespace broker {

class Broker;

class MirrorTarget final : public mirror::Target {
 public:
  explicit MirrorTarget(Broker& broker) : broker_(broker) {}

  const std::string& cluster_id() const override;
  std::size_t shard_count() const override;
  boost::asio::any_io_executor executor(std::size_t shard) override;
  std::size_t shard_of(base::TopicPartition partition) const override;
  std::shared_ptr<mirror::TargetPartition> partition(base::TopicPartition id) override;

  std::vector<mirror::LocalTopic> topics() const override;
  std::optional<mirror::LocalTopic> topic(const std::string& name) const override;
  mirror::Task<mirror::LocalTopic> attach_topic(std::string mirror, std::string name, base::Uuid id,
                                                std::int32_t partitions) override;
  mirror::Task<void> add_partitions(std::string name, std::int32_t total) override;
  mirror::Task<void> set_desired_state(std::vector<std::string> names, std::int8_t state) override;
  mirror::Task<void> remember_source_id(std::string name, base::Uuid source_id) override;
  mirror::Task<void> detach_topics(std::vector<std::string> names) override;

  std::vector<mirror::MirrorDefinition> mirrors() const override;
  mirror::Task<void> save_mirror(mirror::MirrorDefinition definition) override;
  mirror::Task<void> remove_mirror(std::string name) override;

  boost::asio::awaitable<std::vector<base::Error>> commit_group_offsets(
      std::vector<mirror::GroupCommit> commits) override;

  std::int32_t state_partition_count() const override;
  mirror::Task<void> append_state(std::int32_t state_partition,
                                  std::vector<StateRecord> records) override;
  mirror::Task<void> replay_state(
      std::function<void(base::Bytes key, std::optional<base::Bytes> value)> apply) override;

 private:
  mirror::Task<base::TopicPartition> state_topic_partition(std::int32_t index);

  Broker& broker_;
};

}  // namespace broker
