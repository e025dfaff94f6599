// What a leader demands of the bytes that a producer sent for one partition, in the order in which
// Kafka asks: which of two faults is named is part of the answer.
//
// Kafka decompresses every batch to look at its records. We do so only where the topic's policy
// cannot be kept otherwise: keys on a compacted topic, a compression.type of the topic's own, a
// lower bound for timestamps, or a header whose largest timestamp is out of bounds. Of other
// compressed batches the header is believed, which the checksum covers: record count, offset range
// and largest timestamp. A producer that lies there harms the readers of its own records and
// nothing else, for no part of the broker follows what compressed records say. Uncompressed records
// are always read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"

namespace protocol {

struct ProduceRules {
  std::uint32_t max_message_bytes = 1'048'588;
  std::uint32_t segment_bytes = batch_bytes_max;  // no batch is larger than a segment
  bool compacted = false;  // cleanup.policy has compact: every record needs a key
  TimestampType timestamp_type = TimestampType::create_time;
  std::optional<Codec> compression_type;  // absent: "producer", keep what came
  // message.timestamp.before.max.ms and .after.max.ms, against now_ms; absent: no bound.
  std::optional<std::int64_t> timestamp_before_max_ms;
  std::optional<std::int64_t> timestamp_after_max_ms;
  std::int64_t now_ms = 0;
};

// Kafka's error numbers.
enum class ProduceError : std::int16_t {
  unknown_server_error = -1,  // a codec that does not exist, or what it cannot decompress
  none = 0,
  corrupt_message = 2,
  message_too_large = 10,
  record_list_too_large = 18,
  invalid_timestamp = 32,
  unsupported_compression_type = 76,
  invalid_record = 87,
};

// What can be said of the record field before the partition is looked for.
struct ProduceShape {
  ProduceError error = ProduceError::none;
  // The first bytes are no batch of any format: Kafka then refuses the request as a whole.
  std::optional<std::string> not_a_batch;
  bool transactional = false;
  std::size_t size_bytes = 0;  // of the one batch; a torn rest behind it is dropped
};
// zstd is refused below version 7 of Produce.
ProduceShape look_at_produce(base::Bytes bytes, bool zstd_allowed);

struct RecordFault {
  std::int32_t index = 0;  // in the batch
  std::string message;
};

struct ProduceVerdict {
  ProduceError error = ProduceError::none;
  // Set together with `faults`: which records are refused, and a sentence about them all.
  std::string message;
  std::vector<RecordFault> faults;
  BatchInfo info;  // as it came; valid when error is none
  // What prepare_produce() has to do; with neither set the bytes are appended as they came.
  std::optional<Codec> rebuild;               // write the records anew under this codec
  std::optional<std::int64_t> max_timestamp;  // to set together with the topic's timestamp type
};

// `bytes`: one batch, of the size that look_at_produce() told. Checks the checksum too.
ProduceVerdict check_produce(base::Bytes bytes, const ProduceRules& rules);

struct PreparedBatch {
  ProduceError error = ProduceError::none;  // too large after all, or it does not decompress
  std::optional<base::Buffer> rebuilt;      // the batch to append, instead of the one that came
};
// Does to an accepted batch what its verdict asks for, in place where that is possible. Offset and
// leader epoch are still to be set by the log.
PreparedBatch prepare_produce(base::MutableBytes batch, const ProduceVerdict& verdict,
                              const ProduceRules& rules);

}  // namespace protocol
