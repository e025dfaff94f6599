// What can go wrong in storage. broker/error_map.cc turns these into Kafka's numbers.
#pragma once
#include "protocol/base/result.h"

namespace storage {

enum class StorageErrc {
  short_read = 1,
  offset_out_of_range,  // below log start or above log end
  out_of_order_offset,  // a batch to be copied does not begin at or after the log end
  epoch_above_leader,   // a batch to be copied carries a leader epoch above the partition's
  epoch_goes_back,      // ... or one below an earlier batch's
  corrupt_batch,        // length, magic, CRC or count
  corrupt_file,         // a file of ours whose content breaks its format
  offline,   // an earlier write or sync of this log failed: nothing more is written until it is
             // reopened
  no_space,  // the reserve of the disk is reached; reads and deletes go on
  batch_too_large,
  out_of_order_sequence,   // idempotent producer: a gap
  invalid_producer_epoch,  // idempotent producer: fenced
  coordinator_fenced,      // a marker of a coordinator before the last
  duplicate_sequence_too_old,
  invalid_producer_state,
  locked,         // another process holds the directory
  wrong_cluster,  // meta.properties belongs to another cluster or node
  not_found,
  conflict,     // metadata transaction: a compare did not hold
  sync_failed,  // the device did not confirm a sync; what it was to keep may be lost
};

const boost::system::error_category& storage_category();
inline boost::system::error_code make_error_code(StorageErrc e) {
  return {static_cast<int>(e), storage_category()};
}

}  // namespace storage

template <>
struct boost::system::is_error_code_enum<storage::StorageErrc> : std::true_type {};
