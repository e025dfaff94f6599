// What a leader demands of the bytes that a producer sent for one partition.
//
// Kafka decompresses every batch to look at its records. We do so only where the topic's policy
// cannot be kept otherwise: keys on a compacted topic, a compression.type of the topic's own. Of
// other compressed batches the header is believed, which the checksum covers: record count, offset
// range and largest timestamp. A producer that lies there harms the readers of its own records and
// nothing else, for no part of the broker follows what compressed records say. Uncompressed records
// are always read.
#pragma once
#include <cstdint>
#include <optional>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"

namespace protocol {

struct ProduceRules {
  std::uint32_t max_message_bytes = 1'048'588;
  bool compacted = false;  // cleanup.policy has compact: every record needs a key
  TimestampType timestamp_type = TimestampType::create_time;
  std::optional<Codec> compression_type;  // absent: "producer", keep what came
  bool zstd_allowed = true;               // false for Produce below version 7
  // message.timestamp.before.max.ms and .after.max.ms, against now_ms; absent: no bound.
  std::optional<std::int64_t> timestamp_before_max_ms;
  std::optional<std::int64_t> timestamp_after_max_ms;
  std::int64_t now_ms = 0;
};

// Kafka's error numbers.
enum class ProduceError : std::int16_t {
  none = 0,
  corrupt_message = 2,
  message_too_large = 10,
  invalid_timestamp = 32,
  unsupported_for_message_format = 43,
  unsupported_compression_type = 76,
  invalid_record = 87,
};

struct ProduceVerdict {
  ProduceError error = ProduceError::none;
  const char* reason = "";  // a sentence for the log and for the client when error is set
  BatchInfo info;           // as it came; valid when error is none
  // What prepare_produce() has to do; with neither set the bytes are appended as they came.
  std::optional<Codec> rebuild;               // write the records anew under this codec
  std::optional<std::int64_t> max_timestamp;  // to set together with the topic's timestamp type
};

// `bytes`: the record field of one partition in a Produce request. Checks the checksum too.
ProduceVerdict check_produce(base::Bytes bytes, const ProduceRules& rules);

// Does to an accepted batch what its verdict asks for, in place where that is possible. Returns the
// new batch if it had to be rebuilt (`batch` is then no longer of use). Offset and leader epoch are
// still to be set by the log. Fails if the records do not decompress or the rebuilt batch is too
// large.
base::Result<std::optional<base::Buffer>> prepare_produce(base::MutableBytes batch,
                                                          const ProduceVerdict& verdict,
                                                          const ProduceRules& rules);

}  // namespace protocol
