// One partition as its mirror sees it; see mirror::TargetPartition. On the partition's shard only.
#pragma once
#include <memory>
#include <string>

#include "broker/partition.h"
#include "mirror/target.h"

namespace broker {

class Broker;

// Our errors in the mirror's words.
base::Error mirror_error(const base::Error& error);
template <class T>
base::Result<T> for_mirror(base::Result<T> result) {
  if (result.has_error()) return mirror_error(result.error());
  return result;
}

class MirrorPartition final : public mirror::TargetPartition {
 public:
  MirrorPartition(Broker& broker, std::shared_ptr<Partition> partition)
      : broker_(broker), partition_(std::move(partition)) {}

  const std::string& topic() const override { return partition_->topic().name; }
  base::TopicPartition id() const override { return partition_->id(); }
  mirror::LogPosition position() const override;
  std::optional<base::Uuid> source_id() const override { return partition_->topic().source_id; }
  bool is_gone() const override { return partition_->closed(); }
  base::Result<mirror::LogPosition> append(base::Bytes batches) override;
  mirror::Task<mirror::LogPosition> flush() override;
  mirror::Task<mirror::LogPosition> truncate_to(base::Offset offset) override;
  mirror::Task<mirror::LogPosition> restart_at(base::Offset offset) override;
  base::Result<mirror::LogPosition> advance_log_start(base::Offset offset) override;
  std::optional<mirror::EpochEndOffset> end_offset_for(base::LeaderEpoch epoch) const override;
  mirror::Task<base::LeaderEpoch> bump_epoch(base::LeaderEpoch at_least) override;
  mirror::Task<mirror::LogPosition> write_abort_markers() override;
  mirror::Task<mirror::LogPosition> write_producer_id_reset() override;
  void refuse_writes(std::string mirror) override;
  mirror::Task<void> allow_writes() override;

 private:
  Broker& broker_;
  std::shared_ptr<Partition> partition_;
};

}  // namespace broker
