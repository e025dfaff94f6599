// The log behind a coordinator's state: one partition of an internal, compacted topic. On the
// partition's shard only.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "broker/groups/types.h"
#include "broker/partition.h"
#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

namespace broker {

class Shard;

// What is done with each record of an internal topic that has a key.
using ApplyRecord = std::function<void(base::Bytes key, std::optional<base::Bytes> value)>;
// Gives the records of whole batches from offset `from` on to `apply`; answers the offset after the
// last batch.
base::Result<base::Offset> apply_records(base::Bytes batches, base::Offset from,
                                         const ApplyRecord& apply);

class CoordinatorLog {
 public:
  CoordinatorLog(Shard& home, std::shared_ptr<Partition> partition)
      : home_(home), partition_(std::move(partition)) {}

  const Partition& partition() const { return *partition_; }
  bool closed() const { return partition_->closed(); }
  bool offline() const { return partition_->log().offline().has_value(); }
  bool empty() const { return partition_->log_start() == partition_->log_end(); }

  // Gives every record there is to `apply`, in order. Others have their turn meanwhile.
  boost::asio::awaitable<base::Result<void>> replay(ApplyRecord apply);
  // All of them or, after an error, some. Not on disk yet: see flush().
  base::Result<void> append(std::span<const groups::Record> records, std::int64_t now_ms);
  // Waits until everything that was appended up to now is on disk.
  boost::asio::awaitable<base::Result<void>> flush();

 private:
  Shard& home_;
  std::shared_ptr<Partition> partition_;
};

}  // namespace broker
