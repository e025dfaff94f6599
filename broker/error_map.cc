#include "broker/error_map.h"

#include "broker/error.h"
#include "protocol/batch.h"
#include "protocol/compress.h"
#include "storage/error.h"

namespace broker {
namespace {

using protocol::ErrorCode;

ErrorCode from_broker(BrokerErrc error) {
  switch (error) {
    case BrokerErrc::unknown_topic:
      return ErrorCode::unknown_topic_or_partition;
    case BrokerErrc::unknown_topic_id:
      return ErrorCode::unknown_topic_id;
    case BrokerErrc::topic_exists:
    case BrokerErrc::topic_id_in_use:
      return ErrorCode::topic_already_exists;
    case BrokerErrc::inconsistent_topic_id:
      return ErrorCode::inconsistent_topic_id;
    case BrokerErrc::invalid_topic_name:
      return ErrorCode::invalid_topic_exception;
    case BrokerErrc::invalid_partition_count:
      return ErrorCode::invalid_partitions;
    // Retriable: the client asks for metadata and comes again.
    case BrokerErrc::not_a_replica:
    case BrokerErrc::not_here:
    case BrokerErrc::not_settled:
    case BrokerErrc::busy:
    case BrokerErrc::stopping:
      return ErrorCode::not_leader_or_follower;
    // Final for every released client (docs/decisions.md).
    case BrokerErrc::read_only:
    case BrokerErrc::mirror_not_stopped:
      return ErrorCode::policy_violation;
    case BrokerErrc::unknown_mirror:
      return ErrorCode::unknown_cluster_mirror;
    case BrokerErrc::fenced_leader_epoch:
      return ErrorCode::fenced_leader_epoch;
    case BrokerErrc::unknown_leader_epoch:
      return ErrorCode::unknown_leader_epoch;
    case BrokerErrc::negative_limit:  // as Kafka does
      return ErrorCode::unknown_server_error;
    case BrokerErrc::transaction_unknown:
      return ErrorCode::invalid_txn_state;
  }
  return ErrorCode::unknown_server_error;
}

ErrorCode from_storage(storage::StorageErrc error) {
  using storage::StorageErrc;
  switch (error) {
    case StorageErrc::offset_out_of_range:
      return ErrorCode::offset_out_of_range;
    case StorageErrc::corrupt_batch:
      return ErrorCode::corrupt_message;
    case StorageErrc::batch_too_large:
      return ErrorCode::message_too_large;
    case StorageErrc::out_of_order_sequence:
      return ErrorCode::out_of_order_sequence_number;
    case StorageErrc::coordinator_fenced:
      return ErrorCode::transaction_coordinator_fenced;
    case StorageErrc::invalid_producer_epoch:
      return ErrorCode::invalid_producer_epoch;
    case StorageErrc::duplicate_sequence_too_old:
      return ErrorCode::duplicate_sequence_number;
    case StorageErrc::invalid_producer_state:
      return ErrorCode::invalid_txn_state;
    case StorageErrc::conflict:
      return ErrorCode::not_leader_or_follower;
    case StorageErrc::short_read:
    case StorageErrc::out_of_order_offset:
    case StorageErrc::epoch_above_leader:
    case StorageErrc::epoch_goes_back:
    case StorageErrc::corrupt_file:
    case StorageErrc::offline:
    case StorageErrc::no_space:
    case StorageErrc::locked:
    case StorageErrc::wrong_cluster:
    case StorageErrc::not_found:
    case StorageErrc::sync_failed:
      return ErrorCode::kafka_storage_error;
  }
  return ErrorCode::kafka_storage_error;
}

}  // namespace

ErrorCode kafka_error(const base::Error& error) {
  if (!error) return ErrorCode::none;
  if (error.category() == broker_category())
    return from_broker(static_cast<BrokerErrc>(error.value()));
  if (error.category() == storage::storage_category())
    return from_storage(static_cast<storage::StorageErrc>(error.value()));
  if (error.category() == protocol::batch_category()) {
    return error == protocol::BatchErrc::too_large ? ErrorCode::message_too_large
                                                   : ErrorCode::corrupt_message;
  }
  // Codecs, when a batch is to be rebuilt.
  if (error.category() == protocol::compress_category()) return ErrorCode::corrupt_message;
  // The system's: every call of ours that can fail with these is one to the disk.
  return ErrorCode::kafka_storage_error;
}

}  // namespace broker
