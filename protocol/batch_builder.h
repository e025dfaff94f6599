// Builds magic-2 batches: internal topics, transaction markers, rebuilt producer batches, tests.
// Uncompressed output is byte for byte what Kafka's own builder makes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"
#include "protocol/record.h"

namespace protocol {

struct BatchOptions {
  base::Offset base_offset = 0;
  // Larger than the last record's offset where compaction removed records at the end.
  std::optional<base::Offset> last_offset;
  // In place of the largest timestamp of the records, for a batch that compaction emptied.
  std::optional<std::int64_t> max_timestamp_ms;
  std::optional<base::LeaderEpoch> partition_leader_epoch;
  Codec codec = Codec::none;
  // Set: the batch is LogAppendTime with this time.
  std::optional<std::int64_t> log_append_time_ms;
  std::optional<base::ProducerId> producer_id;
  std::optional<base::ProducerEpoch> producer_epoch;
  std::optional<std::int32_t> base_sequence;
  bool transactional = false;
  bool control = false;
  // Set: the delete horizon bit is on and timestamps count from here.
  std::optional<std::int64_t> delete_horizon_ms;
};

class BatchBuilder {
 public:
  explicit BatchBuilder(BatchOptions options);

  // Adds a record at the next offset. Arguments are copied.
  void add(std::int64_t timestamp_ms, std::optional<base::Bytes> key,
           std::optional<base::Bytes> value, std::span<const RecordHeader> headers = {});
  // Adds a record at `offset`, which must be above the last one's and less than 2^31 above the
  // base.
  void add_at(base::Offset offset, std::int64_t timestamp_ms, std::optional<base::Bytes> key,
              std::optional<base::Bytes> value, std::span<const RecordHeader> headers = {});

  std::int32_t count() const { return count_; }
  // Size so far before compression, header included.
  std::size_t size_bytes() const { return batch_header_bytes + records_.size(); }
  // The finished batch, checksum set. The builder must not be used any more. A batch without
  // records needs options.last_offset, and its codec is none, as Kafka's cleaner leaves it.
  base::Buffer build() &&;

 private:
  BatchOptions options_;
  base::Buffer records_;
  std::int32_t count_ = 0;
  base::Offset next_offset_;
  std::optional<std::int64_t> base_timestamp_;
  std::int64_t max_timestamp_ = no_timestamp;
};

enum class TransactionResult : std::uint8_t { abort = 0, commit = 1 };

struct EndTransactionMarker {
  base::ProducerId producer_id = 0;
  base::ProducerEpoch producer_epoch = 0;
  std::int32_t coordinator_epoch = 0;
  TransactionResult result = TransactionResult::abort;
};

// One-record control batches. The log sets offset and leader epoch when it appends them.
base::Buffer end_transaction_marker(const EndTransactionMarker& marker, std::int64_t now_ms);
// KIP-1279's record after which all producer state of the partition is forgotten.
base::Buffer producer_id_reset(std::int64_t now_ms);

// The records of a magic-2 batch anew: offsets 0..n-1 from base offset 0, under `codec`; header
// fields else unchanged. For produced batches that may not be appended as they came.
base::Result<base::Buffer> rebuild_batch(base::Bytes batch, Codec codec);

}  // namespace protocol
