#include "protocol/batch_builder.h"

#include <algorithm>
#include <array>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"

namespace protocol {
namespace {

constexpr std::size_t batch_crc_at = 17;
constexpr std::size_t batch_attributes_at = 21;

void put_byte(base::Buffer& out, std::uint8_t value) {
  out.push_back(std::byte{value});
}

void put_bytes(base::Buffer& out, base::Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_unsigned_varint(base::Buffer& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) put_byte(out, static_cast<std::uint8_t>(value | 0x80));
  put_byte(out, static_cast<std::uint8_t>(value));
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

// Kafka's varint of 32 bits and varlong of 64 have the same bytes for the same number.
void put_varint(base::Buffer& out, std::int64_t value) {
  put_unsigned_varint(out, zigzag(value));
}

void put_nullable(base::Buffer& out, const std::optional<base::Bytes>& bytes) {
  if (!bytes) {
    put_varint(out, -1);
    return;
  }
  put_varint(out, static_cast<std::int64_t>(bytes->size()));
  put_bytes(out, *bytes);
}

std::size_t varint_bytes(std::int64_t value) {
  std::size_t bytes = 1;
  for (std::uint64_t rest = zigzag(value) >> 7; rest != 0; rest >>= 7) ++bytes;
  return bytes;
}

std::size_t nullable_bytes(const std::optional<base::Bytes>& bytes) {
  return bytes ? varint_bytes(static_cast<std::int64_t>(bytes->size())) + bytes->size()
               : varint_bytes(-1);
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::int16_t attributes_of(const BatchOptions& options) {
  int bits = static_cast<int>(options.codec);
  if (options.log_append_time_ms) bits |= 0x08;
  if (options.transactional) bits |= 0x10;
  if (options.control) bits |= 0x20;
  if (options.delete_horizon_ms) bits |= 0x40;
  return static_cast<std::int16_t>(bits);
}

template <class T>
void take(std::byte*& at, T value) {
  store_be(at, value);
  at += sizeof(T);
}

}  // namespace

BatchBuilder::BatchBuilder(BatchOptions options)
    : options_(options),
      next_offset_(options.base_offset),
      base_timestamp_(options.delete_horizon_ms) {
  CHECK(options_.base_offset >= 0);
  CHECK(is_known(options_.codec));
}

void BatchBuilder::add(std::int64_t timestamp_ms, std::optional<base::Bytes> key,
                       std::optional<base::Bytes> value, std::span<const RecordHeader> headers) {
  add_at(next_offset_, timestamp_ms, key, value, headers);
}

void BatchBuilder::add_at(base::Offset offset, std::int64_t timestamp_ms,
                          std::optional<base::Bytes> key, std::optional<base::Bytes> value,
                          std::span<const RecordHeader> headers) {
  CHECK(offset >= next_offset_);
  CHECK(offset - options_.base_offset <= std::numeric_limits<std::int32_t>::max());
  if (!base_timestamp_) base_timestamp_ = timestamp_ms;
  std::int64_t timestamp_delta = difference(timestamp_ms, *base_timestamp_);
  std::int64_t offset_delta = offset - options_.base_offset;
  auto header_count = static_cast<std::int64_t>(headers.size());
  std::size_t length = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) +
                       nullable_bytes(key) + nullable_bytes(value) + varint_bytes(header_count);
  for (const RecordHeader& header : headers) {
    length += nullable_bytes(base::as_bytes(header.key)) + nullable_bytes(header.value);
  }
  put_varint(records_, static_cast<std::int64_t>(length));
  put_byte(records_, 0);
  put_varint(records_, timestamp_delta);
  put_varint(records_, offset_delta);
  put_nullable(records_, key);
  put_nullable(records_, value);
  put_varint(records_, header_count);
  for (const RecordHeader& header : headers) {
    put_nullable(records_, base::as_bytes(header.key));
    put_nullable(records_, header.value);
  }
  max_timestamp_ = std::max(max_timestamp_, timestamp_ms);
  next_offset_ = offset + 1;
  ++count_;
}

base::Buffer BatchBuilder::build() && {
  base::Offset last = options_.last_offset.value_or(next_offset_ - 1);
  CHECK(last >= next_offset_ - 1 && last >= options_.base_offset);
  CHECK(last - options_.base_offset <= std::numeric_limits<std::int32_t>::max());
  if (count_ == 0) options_.codec = Codec::none;
  base::Buffer body = std::move(records_);
  if (options_.codec != Codec::none) body = compress(options_.codec, body);
  CHECK(body.size() <= batch_bytes_max - batch_header_bytes);
  base::Buffer out(batch_header_bytes + body.size());
  std::byte* at = out.data();
  take(at, options_.base_offset);
  take(at, static_cast<std::int32_t>(out.size() - batch_overhead_bytes));
  take(at, options_.partition_leader_epoch.value_or(-1));
  take(at, std::int8_t{2});
  take(at, std::uint32_t{0});  // the checksum, when all else stands
  take(at, attributes_of(options_));
  take(at, static_cast<std::int32_t>(last - options_.base_offset));
  take(at, base_timestamp_.value_or(no_timestamp));
  std::int64_t max_timestamp = options_.max_timestamp_ms.value_or(max_timestamp_);
  take(at, options_.log_append_time_ms.value_or(max_timestamp));
  take(at, options_.producer_id.value_or(-1));
  take(at, options_.producer_epoch.value_or(std::int16_t{-1}));
  take(at, options_.base_sequence.value_or(-1));
  take(at, count_);
  std::copy(body.begin(), body.end(), at);
  store_be(out.data() + batch_crc_at, crc32c(base::Bytes(out).subspan(batch_attributes_at)));
  return out;
}

namespace {

base::Buffer control_batch(BatchOptions options, ControlType type, base::Bytes value,
                           std::int64_t now_ms) {
  options.control = true;
  std::array<std::byte, 4> key{};
  store_be(key.data(), std::int16_t{0});
  store_be(key.data() + 2, static_cast<std::int16_t>(type));
  BatchBuilder builder(options);
  builder.add(now_ms, base::Bytes(key), value);
  return std::move(builder).build();
}

}  // namespace

base::Buffer end_transaction_marker(const EndTransactionMarker& marker, std::int64_t now_ms) {
  BatchOptions options;
  options.producer_id = marker.producer_id;
  options.producer_epoch = marker.producer_epoch;
  options.transactional = true;
  std::array<std::byte, 6> value{};
  store_be(value.data(), std::int16_t{0});
  store_be(value.data() + 2, marker.coordinator_epoch);
  bool commit = marker.result == TransactionResult::commit;
  return control_batch(options, commit ? ControlType::commit : ControlType::abort, value, now_ms);
}

base::Buffer producer_id_reset(std::int64_t now_ms) {
  // A flexible message of version 0: its version, then an empty list of tagged fields.
  std::array<std::byte, 3> value{};
  return control_batch({}, ControlType::producer_id_reset, value, now_ms);
}

base::Result<base::Buffer> rebuild_batch(base::Bytes batch, Codec codec) {
  TRY(RecordReader reader, RecordReader::open(batch, 0, OffsetRule::any));
  const BatchInfo& info = reader.info();
  if (info.magic != 2) return BatchErrc::unknown_magic;
  if (info.record_count == 0) return BatchErrc::bad_count;
  BatchOptions options;
  options.codec = codec;
  options.partition_leader_epoch = info.partition_leader_epoch;
  options.producer_id = info.producer_id;
  options.producer_epoch = info.producer_epoch;
  options.base_sequence = info.base_sequence;
  options.transactional = info.transactional();
  options.control = info.control();
  BatchBuilder builder(options);
  Record record;
  while (reader.next(record)) {
    builder.add(record.timestamp, record.key, record.value, record.headers);
    // A record can only grow by the wider varints of its new deltas, so this is far off.
    if (builder.size_bytes() > batch_bytes_max / 2) return BatchErrc::too_large;
  }
  if (reader.error()) return reader.error();
  return std::move(builder).build();
}

}  // namespace protocol
