#include "storage/error.h"

#include <boost/system/error_category.hpp>
#include <string>

namespace storage {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "storage"; }
  std::string message(int code) const override {
    switch (static_cast<StorageErrc>(code)) {
      case StorageErrc::short_read:
        return "the file ends before the bytes that were asked for";
      case StorageErrc::offset_out_of_range:
        return "the offset is below the log start or above the log end";
      case StorageErrc::out_of_order_offset:
        return "the batch does not begin at or after the log end";
      case StorageErrc::epoch_above_leader:
        return "the batch carries a leader epoch above the partition's";
      case StorageErrc::epoch_goes_back:
        return "the batch carries a leader epoch below that of an earlier batch";
      case StorageErrc::corrupt_batch:
        return "the record batch is damaged";
      case StorageErrc::corrupt_file:
        return "the file's content breaks its format";
      case StorageErrc::offline:
        return "the log is offline after a failed write or sync";
      case StorageErrc::no_space:
        return "the disk's reserve is reached";
      case StorageErrc::batch_too_large:
        return "the record batch is larger than allowed";
      case StorageErrc::out_of_order_sequence:
        return "the producer's sequence number leaves a gap";
      case StorageErrc::coordinator_fenced:
        return "a later transaction coordinator was here";
      case StorageErrc::invalid_producer_epoch:
        return "the producer was fenced by a newer epoch";
      case StorageErrc::duplicate_sequence_too_old:
        return "the producer repeats a sequence that is no longer remembered";
      case StorageErrc::invalid_producer_state:
        return "the producer writes outside of its open transaction";
      case StorageErrc::locked:
        return "another process holds the directory";
      case StorageErrc::wrong_cluster:
        return "the directory belongs to another cluster or node";
      case StorageErrc::not_found:
        return "not found";
      case StorageErrc::conflict:
        return "a compare of the transaction does not hold";
      case StorageErrc::sync_failed:
        return "the device did not confirm a sync";
    }
    return "unknown storage error";
  }
};

}  // namespace

const boost::system::error_category& storage_category() {
  static const Category category;
  return category;
}

}  // namespace storage
