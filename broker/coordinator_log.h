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
#include "broker/transaction_marker.h"
#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/error_code.h"

namespace broker {

class Shard;

// What is done with the content of an internal topic's log, in its order.
struct LogContent {
  // Each record that has a key.
  std::function<void(base::Bytes key, std::optional<base::Bytes> value, const groups::Place& place)>
      record;
  // Each end of a transaction. May be empty, for topics without transactions.
  std::function<void(base::ProducerId producer, bool committed)> marker;
};
// Gives what is in whole batches from offset `from` on to `apply`; answers the offset after the
// last batch.
base::Result<base::Offset> apply_content(base::Bytes batches, base::Offset from,
                                         const LogContent& apply);

class CoordinatorLog {
 public:
  CoordinatorLog(Shard& home, std::shared_ptr<Partition> partition)
      : home_(home), partition_(std::move(partition)) {}

  const Partition& partition() const { return *partition_; }
  bool closed() const { return partition_->closed(); }
  bool offline() const { return partition_->log().offline().has_value(); }
  bool empty() const { return partition_->log_start() == partition_->log_end(); }

  // Gives all that there is to `apply`, in order. Others have their turn meanwhile.
  boost::asio::awaitable<base::Result<void>> replay(LogContent apply);
  // none if the producer may add to its transaction, or the marker end it; invalid_producer_epoch,
  // and invalid_producer_id_mapping for what is no producer's id. Kafka's rules for what a
  // coordinator writes: sequences are not looked at.
  protocol::ErrorCode check(const groups::Producer& producer) const;
  protocol::ErrorCode check(const TransactionMarker& marker) const;
  // All of them or, after an error, some; they lie one after the other from the offset on that is
  // answered. Not on disk yet: see flush().
  base::Result<base::Offset> append(std::span<const groups::Record> records,
                                    const std::optional<groups::Producer>& transaction,
                                    std::int64_t now_ms);
  base::Result<void> append(const TransactionMarker& marker, std::int64_t now_ms);
  // Waits until everything that was appended up to now is on disk.
  boost::asio::awaitable<base::Result<void>> flush();

 private:
  Shard& home_;
  std::shared_ptr<Partition> partition_;
};

}  // namespace broker
