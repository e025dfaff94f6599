#include "broker/mirror_partition.h"

#include <algorithm>
#include <utility>

#include "broker/broker.h"
#include "broker/error.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/batch_builder.h"
#include "storage/error.h"

namespace broker {
namespace {

using mirror::LogPosition;
using mirror::TargetErrc;

base::Error of_storage_errc(storage::StorageErrc error) {
  using storage::StorageErrc;
  switch (error) {
    case StorageErrc::out_of_order_offset:
      return TargetErrc::out_of_order;
    case StorageErrc::epoch_above_leader:
      return TargetErrc::epoch_above_leader;
    case StorageErrc::epoch_goes_back:
      return TargetErrc::epoch_goes_back;
    case StorageErrc::corrupt_batch:
    case StorageErrc::batch_too_large:
      return TargetErrc::corrupt_batch;
    case StorageErrc::no_space:
      return TargetErrc::no_space;
    case StorageErrc::conflict:
      return TargetErrc::busy;
    default:
      return TargetErrc::storage_offline;
  }
}

base::Error of_broker_errc(BrokerErrc error) {
  switch (error) {
    case BrokerErrc::topic_exists:
    case BrokerErrc::mirror_not_stopped:
      return TargetErrc::already_exists;
    case BrokerErrc::topic_id_in_use:
      return TargetErrc::id_in_use;
    case BrokerErrc::inconsistent_topic_id:
      return TargetErrc::id_mismatch;
    case BrokerErrc::busy:
    case BrokerErrc::invalid_partition_count:
      return TargetErrc::busy;
    default:
      return TargetErrc::gone;
  }
}

}  // namespace

base::Error mirror_error(const base::Error& error) {
  if (!error || error.category() == mirror::target_category()) return error;
  if (error.category() == storage::storage_category())
    return of_storage_errc(static_cast<storage::StorageErrc>(error.value()));
  if (error.category() == broker_category())
    return of_broker_errc(static_cast<BrokerErrc>(error.value()));
  if (error.category() == protocol::batch_category()) return TargetErrc::corrupt_batch;
  return TargetErrc::storage_offline;  // the system's, from the disk
}

LogPosition MirrorPartition::position() const {
  const storage::Log& log = partition_->log();
  LogPosition position;
  position.log_start = log.log_start();
  position.log_end = log.log_end();
  position.durable_end = log.durable_end();
  position.last_epoch = log.last_epoch();
  position.leader_epoch = partition_->leader_epoch();
  return position;
}

base::Result<LogPosition> MirrorPartition::append(base::Bytes batches) {
  const auto done = partition_->append_verbatim(batches, base::wall_clock_ms());
  if (done.has_error()) return mirror_error(done.error());
  return position();
}

mirror::Task<LogPosition> MirrorPartition::flush() {
  const auto partition = partition_;
  CO_TRY_VOID(for_mirror(co_await partition->flush(partition->log_end())));
  co_return position();
}

mirror::Task<LogPosition> MirrorPartition::truncate_to(base::Offset offset) {
  CO_TRY_VOID(for_mirror(co_await partition_->truncate_to(offset)));
  co_return position();
}

mirror::Task<LogPosition> MirrorPartition::restart_at(base::Offset offset) {
  CO_TRY_VOID(for_mirror(co_await partition_->restart_at(offset)));
  co_return position();
}

base::Result<LogPosition> MirrorPartition::advance_log_start(base::Offset offset) {
  TRY_VOID(for_mirror(partition_->log().advance_log_start(offset)));
  return position();
}

std::optional<mirror::EpochEndOffset> MirrorPartition::end_offset_for(
    base::LeaderEpoch epoch) const {
  const auto end = partition_->log().end_offset_for(epoch);
  if (!end) return std::nullopt;
  return mirror::EpochEndOffset{end->epoch, end->end_offset};
}

mirror::Task<base::LeaderEpoch> MirrorPartition::bump_epoch(base::LeaderEpoch at_least) {
  co_return for_mirror(co_await broker_.catalog().bump_epoch(id(), at_least));
}

mirror::Task<LogPosition> MirrorPartition::write_abort_markers() {
  const std::int64_t now_ms = base::wall_clock_ms();
  for (const storage::OpenTransaction& open : partition_->log().open_transactions()) {
    protocol::EndTransactionMarker marker;
    marker.producer_id = open.producer_id;
    marker.producer_epoch = open.producer_epoch;
    marker.coordinator_epoch = std::max(open.coordinator_epoch, 0);
    marker.result = protocol::TransactionResult::abort;
    base::Buffer batch = protocol::end_transaction_marker(marker, now_ms);
    const auto appended = partition_->append_internal(batch, now_ms);
    if (appended.has_error()) co_return mirror_error(appended.error());
  }
  co_return co_await flush();
}

mirror::Task<LogPosition> MirrorPartition::write_producer_id_reset() {
  const std::int64_t now_ms = base::wall_clock_ms();
  base::Buffer batch = protocol::producer_id_reset(now_ms);
  const auto appended = partition_->append_internal(batch, now_ms);
  if (appended.has_error()) co_return mirror_error(appended.error());
  co_return co_await flush();
}

void MirrorPartition::refuse_writes(std::string mirror) {
  if (mirror != partition_->mirror())
    base::logger("broker").warn("{}-{}: mirror {} refuses writes, the catalog says it is of '{}'",
                                topic(), id().partition, mirror, partition_->mirror());
  partition_->refuse_writes();
}

mirror::Task<void> MirrorPartition::allow_writes() {
  const auto partition = partition_;
  CO_TRY_VOID(for_mirror(co_await partition->flush(partition->log_end())));
  co_return for_mirror(partition->allow_writes());
}

}  // namespace broker
