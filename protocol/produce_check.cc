#include "protocol/produce_check.h"

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/legacy.h"
#include "protocol/record.h"

namespace protocol {
namespace {

constexpr std::size_t size_at = 8;
constexpr std::size_t produce_magic_at = 16;
constexpr std::size_t produce_attributes_at = 21;
constexpr std::int16_t transactional_bit = 0x10;

// The next batch of any magic at the front of `bytes`, by its size and magic alone.
struct Front {
  std::optional<std::string> fault;
  std::size_t size_bytes = 0;  // 0: nothing whole
  std::uint8_t magic = 0;
};

Front front_of(base::Bytes bytes) {
  Front front;
  if (bytes.size() < batch_overhead_bytes) return front;
  const auto size = load_be<std::int32_t>(bytes.data() + size_at);
  if (size < static_cast<std::int32_t>(legacy_size_min_v0)) {
    front.fault = "a batch cannot have a size of " + std::to_string(size);
    return front;
  }
  if (bytes.size() < batch_magic_end) return front;
  front.magic = load_be<std::uint8_t>(bytes.data() + produce_magic_at);
  if (front.magic > 2) {
    front.fault =
        "there is no batch format " + std::to_string(static_cast<std::int8_t>(front.magic));
    return front;
  }
  const std::size_t whole = batch_overhead_bytes + static_cast<std::size_t>(size);
  if (whole <= bytes.size()) front.size_bytes = whole;
  return front;
}

std::int16_t attributes_of(base::Bytes batch) {
  if (batch.size() < produce_attributes_at + sizeof(std::int16_t)) return 0;
  return load_be<std::int16_t>(batch.data() + produce_attributes_at);
}

ProduceError check_bytes(base::Bytes bytes, const ProduceRules& rules, BatchInfo& info) {
  if (load_be<std::int64_t>(bytes.data()) != 0) return ProduceError::invalid_record;
  if (bytes.size() > rules.max_message_bytes) return ProduceError::message_too_large;
  if (bytes.size() < batch_header_bytes || verify_crc(bytes).has_error())
    return ProduceError::corrupt_message;
  if (!is_known(static_cast<Codec>(attributes_of(bytes) & 0x07)))
    return ProduceError::unknown_server_error;
  const auto parsed = parse_batch(bytes);
  if (parsed.has_error()) return ProduceError::invalid_record;  // offsets or count below zero
  info = *parsed;
  return ProduceError::none;
}

ProduceError check_header(const BatchInfo& info) {
  const bool good = *info.record_count > 0 && *info.record_count == info.next_offset() &&
                    !info.control() && (!info.producer_id || info.base_sequence);
  return good ? ProduceError::none : ProduceError::invalid_record;
}

// Kafka's sums wrap around, and so do these.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

bool out_of_bounds(std::int64_t timestamp, const ProduceRules& rules) {
  const std::int64_t age = minus(rules.now_ms, timestamp);
  return age > rules.timestamp_before_max_ms.value_or(unbounded) ||
         minus(0, age) > rules.timestamp_after_max_ms.value_or(unbounded);
}

bool bad_timestamp(const BatchInfo& info, std::int64_t timestamp, const ProduceRules& rules) {
  if (rules.timestamp_type == TimestampType::create_time && timestamp != no_timestamp)
    return out_of_bounds(timestamp, rules);
  return info.log_append_time();
}

std::string timestamp_fault(std::int64_t timestamp, const ProduceRules& rules) {
  if (rules.timestamp_type != TimestampType::create_time || timestamp == no_timestamp)
    return "only the broker may set the timestamp type LogAppendTime";
  std::string allowed;
  if (rules.timestamp_before_max_ms)
    allowed = " not before " + std::to_string(minus(rules.now_ms, *rules.timestamp_before_max_ms));
  if (rules.timestamp_after_max_ms)
    allowed += std::string(allowed.empty() ? "" : " and") + " not after " +
               std::to_string(minus(rules.now_ms, -*rules.timestamp_after_max_ms));
  return "the timestamp " + std::to_string(timestamp) + " is out of the topic's bounds:" + allowed;
}

struct Scan {
  ProduceError error = ProduceError::none;
  std::vector<RecordFault> faults;
  bool bad_times = false;
  bool offsets_from_zero = true;
  std::int64_t max_timestamp = no_timestamp;
};

Scan scan_records(base::Bytes bytes, const ProduceRules& rules) {
  Scan scan;
  auto reader = RecordReader::open(bytes, 0, OffsetRule::any);
  if (reader.has_error()) {
    scan.error = ProduceError::unknown_server_error;
    return scan;
  }
  Record record;
  for (std::int32_t index = 0; reader->next(record); ++index) {
    if (record.offset != index) scan.offsets_from_zero = false;
    scan.max_timestamp = std::max(scan.max_timestamp, record.timestamp);
    if (rules.compacted && !record.key) {
      scan.faults.push_back({index, "a compacted topic takes no record without a key"});
    } else if (bad_timestamp(reader->info(), record.timestamp, rules)) {
      scan.bad_times = true;
      scan.faults.push_back({index, timestamp_fault(record.timestamp, rules)});
    }
  }
  if (reader->error()) scan.error = ProduceError::invalid_record;
  return scan;
}

// Whether the header alone tells enough.
bool header_suffices(const BatchInfo& info, Codec target, const ProduceRules& rules) {
  return info.codec() != Codec::none && info.codec() == target && !rules.compacted &&
         !rules.timestamp_before_max_ms && !bad_timestamp(info, info.max_timestamp, rules);
}

void refuse_records(ProduceVerdict& verdict, Scan scan) {
  verdict.error = scan.bad_times ? ProduceError::invalid_timestamp : ProduceError::invalid_record;
  verdict.message = std::to_string(scan.faults.size()) + " of " +
                    std::to_string(*verdict.info.record_count) +
                    " records are refused, and the batch with them; record " +
                    std::to_string(scan.faults[0].index) + ": " + scan.faults[0].message;
  verdict.faults = std::move(scan.faults);
}

}  // namespace

ProduceShape look_at_produce(base::Bytes bytes, bool zstd_allowed) {
  ProduceShape shape;
  const Front first = front_of(bytes);
  if (first.fault) {
    shape.error = ProduceError::corrupt_message;
    shape.not_a_batch = first.fault;
    return shape;
  }
  if (first.size_bytes == 0 || first.magic != 2) {
    shape.error = ProduceError::invalid_record;
    return shape;
  }
  shape.size_bytes = first.size_bytes;
  const std::int16_t attributes = attributes_of(bytes.first(first.size_bytes));
  shape.transactional = (attributes & transactional_bit) != 0;
  if (static_cast<Codec>(attributes & 0x07) == Codec::zstd && !zstd_allowed) {
    shape.error = ProduceError::unsupported_compression_type;
    return shape;
  }
  const Front second = front_of(bytes.subspan(first.size_bytes));
  if (second.fault)
    shape.error = ProduceError::corrupt_message;
  else if (second.size_bytes > 0)
    shape.error = ProduceError::invalid_record;
  return shape;
}

ProduceVerdict check_produce(base::Bytes bytes, const ProduceRules& rules) {
  CHECK(bytes.size() >= batch_magic_end && rules.now_ms >= 0);
  ProduceVerdict verdict;
  BatchInfo& info = verdict.info;
  verdict.error = check_bytes(bytes, rules, info);
  if (verdict.error == ProduceError::none) verdict.error = check_header(info);
  if (verdict.error != ProduceError::none) return verdict;
  const Codec target = rules.compression_type.value_or(info.codec());
  Scan scan;
  scan.max_timestamp = info.max_timestamp;
  if (!header_suffices(info, target, rules)) scan = scan_records(bytes, rules);
  verdict.error = scan.error;
  if (verdict.error == ProduceError::none && !scan.faults.empty())
    refuse_records(verdict, std::move(scan));
  if (verdict.error != ProduceError::none) return verdict;
  if (target != info.codec() || !scan.offsets_from_zero) verdict.rebuild = target;
  if (rules.timestamp_type == TimestampType::log_append_time) {
    verdict.max_timestamp = rules.now_ms;
  } else if (scan.max_timestamp != info.max_timestamp || info.log_append_time()) {
    verdict.max_timestamp = scan.max_timestamp;
  }
  return verdict;
}

PreparedBatch prepare_produce(base::MutableBytes batch, const ProduceVerdict& verdict,
                              const ProduceRules& rules) {
  CHECK(verdict.error == ProduceError::none);
  PreparedBatch prepared;
  if (verdict.rebuild) {
    auto rebuilt = rebuild_batch(batch, *verdict.rebuild);
    if (rebuilt.has_error()) {
      prepared.error = rebuilt.error() == BatchErrc::too_large ? ProduceError::message_too_large
                                                               : ProduceError::unknown_server_error;
      return prepared;
    }
    prepared.rebuilt = std::move(*rebuilt);
    batch = *prepared.rebuilt;
    if (batch.size() > rules.max_message_bytes) prepared.error = ProduceError::message_too_large;
  }
  if (prepared.error == ProduceError::none && batch.size() > rules.segment_bytes)
    prepared.error = ProduceError::record_list_too_large;
  if (prepared.error != ProduceError::none || !verdict.max_timestamp) return prepared;
  if (rules.timestamp_type == TimestampType::log_append_time)
    set_log_append_time(batch, *verdict.max_timestamp);
  else
    set_max_timestamp(batch, *verdict.max_timestamp);
  return prepared;
}

}  // namespace protocol
