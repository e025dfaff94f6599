#include "protocol/batch.h"

#include <string>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/legacy.h"

namespace protocol {
namespace {

constexpr std::size_t length_at = 8;
constexpr std::size_t leader_epoch_at = 12;
constexpr std::size_t magic_at = 16;
constexpr std::size_t crc_at = 17;
constexpr std::size_t attributes_at = 21;  // the checksum of magic 2 covers all from here
constexpr std::size_t last_offset_delta_at = 23;
constexpr std::size_t base_timestamp_at = 27;
constexpr std::size_t max_timestamp_at = 35;
constexpr std::size_t producer_id_at = 43;
constexpr std::size_t producer_epoch_at = 51;
constexpr std::size_t base_sequence_at = 53;
constexpr std::size_t record_count_at = 57;

constexpr std::size_t legacy_crc_at = 12;
constexpr std::int16_t log_append_time_bit = 0x08;

class BatchCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "batch"; }
  std::string message(int value) const override {
    switch (static_cast<BatchErrc>(value)) {
      case BatchErrc::incomplete:
        return "batch is not complete";
      case BatchErrc::corrupt_length:
        return "batch length is too small for its format";
      case BatchErrc::too_large:
        return "batch is larger than allowed";
      case BatchErrc::unknown_magic:
        return "batch has an unknown magic number";
      case BatchErrc::bad_crc:
        return "batch checksum does not match";
      case BatchErrc::bad_offset:
        return "batch offsets are out of range";
      case BatchErrc::bad_count:
        return "batch record count does not match its records";
      case BatchErrc::corrupt_record:
        return "record does not parse";
      case BatchErrc::bad_control:
        return "control record is too short";
    }
    return "unknown batch error";
  }
};

// -1 on the wire says "absent"; other negative numbers say nothing better.
template <class T>
std::optional<T> present(T value) {
  return value < 0 ? std::nullopt : std::optional<T>(value);
}

std::uint32_t size_min(std::uint8_t magic) {
  if (magic >= 2) return batch_header_bytes;
  return batch_overhead_bytes + (magic == 0 ? legacy_size_min_v0 : legacy_size_min_v1);
}

// The parsers write into their caller's BatchInfo: walking small batches is a hot path, and a
// Result by value costs more than the parsing.
std::optional<BatchErrc> read_header_v2(const std::byte* at, BatchInfo& info) {
  auto base_offset = load_be<std::int64_t>(at);
  auto delta = load_be<std::int32_t>(at + last_offset_delta_at);
  auto count = load_be<std::int32_t>(at + record_count_at);
  // The offset after the last one must fit, too.
  if (base_offset < 0 || delta < 0 ||
      base_offset > std::numeric_limits<base::Offset>::max() - 1 - delta) {
    return BatchErrc::bad_offset;
  }
  if (count < 0) return BatchErrc::bad_count;
  info.magic = 2;
  info.base_offset = base_offset;
  info.last_offset = base_offset + delta;
  info.partition_leader_epoch = present(load_be<std::int32_t>(at + leader_epoch_at));
  info.crc = load_be<std::uint32_t>(at + crc_at);
  info.attributes = load_be<std::int16_t>(at + attributes_at);
  info.base_timestamp = load_be<std::int64_t>(at + base_timestamp_at);
  info.max_timestamp = load_be<std::int64_t>(at + max_timestamp_at);
  info.producer_id = present(load_be<std::int64_t>(at + producer_id_at));
  info.producer_epoch = present(load_be<std::int16_t>(at + producer_epoch_at));
  info.base_sequence = present(load_be<std::int32_t>(at + base_sequence_at));
  info.record_count = count;
  return std::nullopt;
}

std::optional<BatchErrc> read_header(base::Bytes bytes, std::uint32_t size_max, BatchInfo& info) {
  if (bytes.size() < batch_overhead_bytes) return BatchErrc::incomplete;
  auto length = load_be<std::int32_t>(bytes.data() + length_at);
  // Judged before the magic is there: a scan must not wait for bytes that a wrong length promises.
  if (length < static_cast<std::int32_t>(legacy_size_min_v0)) return BatchErrc::corrupt_length;
  std::uint64_t size = std::uint64_t{batch_overhead_bytes} + static_cast<std::uint32_t>(length);
  if (size > size_max) return BatchErrc::too_large;
  if (bytes.size() < batch_magic_end) return BatchErrc::incomplete;
  auto magic = load_be<std::uint8_t>(bytes.data() + magic_at);
  if (magic > 2) return BatchErrc::unknown_magic;
  if (size < size_min(magic)) return BatchErrc::corrupt_length;
  if (magic == 2) {
    if (bytes.size() < batch_header_bytes) return BatchErrc::incomplete;
    if (auto error = read_header_v2(bytes.data(), info)) return error;
  } else {
    auto legacy = parse_legacy_header(bytes);
    if (legacy.has_error()) return static_cast<BatchErrc>(legacy.error().value());
    info = *legacy;
  }
  info.size_bytes = static_cast<std::uint32_t>(size);
  return std::nullopt;
}

std::uint32_t computed_crc(base::Bytes batch) {
  return crc32c(batch.subspan(attributes_at));
}

bool crc_matches(base::Bytes batch) {
  CHECK(batch.size() >= legacy_header_bytes_v0);
  const std::byte* at = batch.data();
  if (load_be<std::uint8_t>(at + magic_at) == 2) {
    CHECK(batch.size() >= batch_header_bytes);
    return load_be<std::uint32_t>(at + crc_at) == computed_crc(batch);
  }
  return load_be<std::uint32_t>(at + legacy_crc_at) == crc32(batch.subspan(magic_at));
}

void check_whole_v2(base::Bytes batch) {
  CHECK(batch.size() >= batch_header_bytes);
  CHECK(load_be<std::uint32_t>(batch.data() + length_at) == batch.size() - batch_overhead_bytes);
  CHECK(load_be<std::uint8_t>(batch.data() + magic_at) == 2);
}

void set_timestamp(base::MutableBytes batch, TimestampType type, std::int64_t timestamp_ms) {
  check_whole_v2(batch);
  std::byte* at = batch.data();
  auto attributes = load_be<std::int16_t>(at + attributes_at);
  if (type == TimestampType::log_append_time) {
    attributes = static_cast<std::int16_t>(attributes | log_append_time_bit);
  } else {
    attributes = static_cast<std::int16_t>(attributes & ~log_append_time_bit);
  }
  store_be(at + attributes_at, attributes);
  store_be(at + max_timestamp_at, timestamp_ms);
  store_be(at + crc_at, computed_crc(batch));
}

}  // namespace

const boost::system::error_category& batch_category() {
  static const BatchCategory category;
  return category;
}

std::optional<std::int32_t> BatchInfo::last_sequence() const {
  if (!base_sequence) return std::nullopt;
  return static_cast<std::int32_t>((*base_sequence + (last_offset - base_offset)) & 0x7fffffff);
}

base::Result<BatchInfo> parse_batch_header(base::Bytes bytes, std::uint32_t size_max) {
  BatchInfo info;
  if (auto error = read_header(bytes, size_max, info)) return *error;
  return info;
}

base::Result<BatchInfo> parse_batch(base::Bytes bytes, std::uint32_t size_max) {
  BatchInfo info;
  if (auto error = read_header(bytes, size_max, info)) return *error;
  if (bytes.size() < info.size_bytes) return BatchErrc::incomplete;
  return info;
}

base::Result<void> verify_crc(base::Bytes batch) {
  if (!crc_matches(batch)) return BatchErrc::bad_crc;
  return {};
}

void set_base_offset(base::MutableBytes batch, base::Offset offset) {
  check_whole_v2(batch);
  CHECK(offset >= 0);
  store_be(batch.data(), offset);
}

void set_partition_leader_epoch(base::MutableBytes batch, std::optional<base::LeaderEpoch> epoch) {
  check_whole_v2(batch);
  CHECK(!epoch || *epoch >= 0);
  store_be(batch.data() + leader_epoch_at, epoch.value_or(-1));
}

void set_log_append_time(base::MutableBytes batch, std::int64_t now_ms) {
  set_timestamp(batch, TimestampType::log_append_time, now_ms);
}

void set_max_timestamp(base::MutableBytes batch, std::int64_t timestamp_ms) {
  set_timestamp(batch, TimestampType::create_time, timestamp_ms);
}

bool BatchIterator::next() {
  if (stopped_ || valid_bytes_ == bytes_.size()) return false;
  base::Bytes rest = bytes_.subspan(valid_bytes_);
  auto error = read_header(rest, size_max_, info_);
  if (!error && rest.size() < info_.size_bytes) error = BatchErrc::incomplete;
  if (!error && crc_ == CrcCheck::yes && !crc_matches(rest.first(info_.size_bytes))) {
    error = BatchErrc::bad_crc;
  }
  if (error) {
    stopped_ = *error;
    return false;
  }
  valid_bytes_ += info_.size_bytes;
  return true;
}

}  // namespace protocol
