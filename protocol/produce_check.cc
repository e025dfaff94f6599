#include "protocol/produce_check.h"

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/batch_builder.h"
#include "protocol/record.h"

namespace protocol {
namespace {

struct Fault {
  ProduceError error = ProduceError::none;
  const char* reason = "";
};

constexpr Fault fine{};

Fault check_bytes(base::Bytes bytes, const ProduceRules& rules, BatchInfo& info) {
  auto parsed = parse_batch(bytes);
  if (parsed.has_error()) {
    if (parsed.error() == BatchErrc::incomplete) {
      return {ProduceError::invalid_record, "The records do not hold exactly one whole batch."};
    }
    if (parsed.error() == BatchErrc::bad_offset || parsed.error() == BatchErrc::bad_count) {
      return {ProduceError::invalid_record, "The batch declares impossible offsets or counts."};
    }
    return {ProduceError::corrupt_message, "The batch header is damaged."};
  }
  info = *parsed;
  if (info.size_bytes != bytes.size()) {
    return {ProduceError::invalid_record, "The records do not hold exactly one whole batch."};
  }
  if (info.magic != 2) {
    return {ProduceError::invalid_record, "Only record batches of magic 2 can be written."};
  }
  if (info.size_bytes > rules.max_message_bytes) {
    return {ProduceError::message_too_large, "The batch is larger than max.message.bytes."};
  }
  if (verify_crc(bytes).has_error()) {
    return {ProduceError::corrupt_message, "The checksum of the batch does not match."};
  }
  return fine;
}

Fault check_header(const BatchInfo& info, const ProduceRules& rules) {
  if (info.base_offset != 0) {
    return {ProduceError::invalid_record, "The base offset of a produced batch must be 0."};
  }
  if (*info.record_count == 0) {
    return {ProduceError::invalid_record, "The batch has no records."};
  }
  if (*info.record_count != info.next_offset()) {
    return {ProduceError::invalid_record, "The record count does not match the offset range."};
  }
  if (info.control()) {
    return {ProduceError::invalid_record, "Clients must not write control records."};
  }
  if (info.producer_id && (!info.base_sequence || !info.producer_epoch)) {
    return {ProduceError::invalid_record, "A producer id needs an epoch and a sequence number."};
  }
  if (info.transactional() && !info.producer_id) {
    return {ProduceError::invalid_record, "A transactional batch needs a producer id."};
  }
  if (!is_known(info.codec())) {
    return {ProduceError::unsupported_compression_type, "The batch has an unknown codec."};
  }
  if (info.codec() == Codec::zstd && !rules.zstd_allowed) {
    return {ProduceError::unsupported_compression_type, "zstd needs a newer Produce version."};
  }
  return fine;
}

bool out_of_range(std::int64_t timestamp, const ProduceRules& rules) {
  constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
  CHECK(rules.now_ms >= 0);
  if (rules.timestamp_before_max_ms && timestamp < rules.now_ms - *rules.timestamp_before_max_ms) {
    return true;
  }
  if (!rules.timestamp_after_max_ms) return false;
  bool bounded = *rules.timestamp_after_max_ms < latest - rules.now_ms;
  return bounded && timestamp > rules.now_ms + *rules.timestamp_after_max_ms;
}

Fault check_timestamp(const BatchInfo& info, std::int64_t timestamp, const ProduceRules& rules) {
  if (rules.timestamp_type == TimestampType::create_time && timestamp != no_timestamp) {
    if (!out_of_range(timestamp, rules)) return fine;
    return {ProduceError::invalid_timestamp, "A timestamp is out of the topic's bounds."};
  }
  if (!info.log_append_time()) return fine;
  return {ProduceError::invalid_timestamp, "Producers must not set the LogAppendTime type."};
}

struct Scan {
  bool offsets_from_zero = true;
  std::int64_t max_timestamp = no_timestamp;
};

Fault check_records(base::Bytes bytes, const ProduceRules& rules, Scan& scan) {
  auto reader = RecordReader::open(bytes, 0, OffsetRule::any);
  if (reader.has_error()) {
    return {ProduceError::corrupt_message, "The records do not decompress."};
  }
  Fault record_fault, time_fault;
  Record record;
  for (base::Offset expected = 0; reader->next(record); ++expected) {
    if (record.offset != expected) scan.offsets_from_zero = false;
    scan.max_timestamp = std::max(scan.max_timestamp, record.timestamp);
    if (rules.compacted && !record.key) {
      record_fault = {ProduceError::invalid_record, "A compacted topic needs a key per record."};
      continue;
    }
    Fault fault = check_timestamp(reader->info(), record.timestamp, rules);
    if (fault.error != ProduceError::none) time_fault = fault;
  }
  if (reader->error()) {
    return {ProduceError::invalid_record, "The records do not parse as the batch declares them."};
  }
  // Kafka names the timestamp when different records have different faults.
  return time_fault.error != ProduceError::none ? time_fault : record_fault;
}

}  // namespace

ProduceVerdict check_produce(base::Bytes bytes, const ProduceRules& rules) {
  ProduceVerdict verdict;
  BatchInfo& info = verdict.info;
  Fault fault = check_bytes(bytes, rules, info);
  if (fault.error == ProduceError::none) fault = check_header(info, rules);
  if (fault.error != ProduceError::none) {
    verdict.error = fault.error;
    verdict.reason = fault.reason;
    return verdict;
  }
  Codec target = rules.compression_type.value_or(info.codec());
  Scan scan{true, info.max_timestamp};
  if (info.codec() == Codec::none || rules.compacted || target != info.codec()) {
    scan.max_timestamp = no_timestamp;
    fault = check_records(bytes, rules, scan);
  } else {
    fault = check_timestamp(info, info.max_timestamp, rules);
  }
  verdict.error = fault.error;
  verdict.reason = fault.reason;
  if (target != info.codec() || !scan.offsets_from_zero) verdict.rebuild = target;
  if (rules.timestamp_type == TimestampType::log_append_time) {
    verdict.max_timestamp = rules.now_ms;
  } else if (scan.max_timestamp != info.max_timestamp || info.log_append_time()) {
    verdict.max_timestamp = scan.max_timestamp;
  }
  return verdict;
}

base::Result<std::optional<base::Buffer>> prepare_produce(base::MutableBytes batch,
                                                          const ProduceVerdict& verdict,
                                                          const ProduceRules& rules) {
  CHECK(verdict.error == ProduceError::none);
  std::optional<base::Buffer> rebuilt;
  if (verdict.rebuild) {
    TRY(rebuilt, rebuild_batch(batch, *verdict.rebuild));
    if (rebuilt->size() > rules.max_message_bytes) return BatchErrc::too_large;
    batch = *rebuilt;
  }
  if (verdict.max_timestamp) {
    if (rules.timestamp_type == TimestampType::log_append_time) {
      set_log_append_time(batch, *verdict.max_timestamp);
    } else {
      set_max_timestamp(batch, *verdict.max_timestamp);
    }
  }
  return rebuilt;
}

}  // namespace protocol
