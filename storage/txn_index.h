// Kafka's `.txnindex` of a segment: the aborted transactions whose markers lie in it, in the order
// of their markers. 34 bytes each: int16 version 0, int64 producer id, first offset, last (marker)
// offset, last stable offset. There is no file while there is no entry.
#pragma once
#include <vector>

#include "protocol/base/result.h"
#include "storage/index.h"
#include "storage/producer_state.h"

namespace storage {

class TxnIndex {
 public:
  TxnIndex(FileSystem& files, std::string path);

  // Takes the file if there is one; corrupt_file when it breaks its format.
  base::Result<void> open();
  base::Result<void> append(const CompletedTransaction& aborted);
  base::Result<std::vector<CompletedTransaction>> read_all() const;
  // Removes entries whose marker is at or above `offset`.
  base::Result<void> truncate_to(base::Offset offset);
  base::Result<void> remove();
  bool exists() const { return there_; }
  bool empty() const { return entries_.count() == 0; }
  IndexFile& entries() { return entries_; }

 private:
  FileSystem& files_;
  IndexFile entries_;
  bool there_ = false;
};

}  // namespace storage
