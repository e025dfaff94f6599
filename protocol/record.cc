#include "protocol/record.h"

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/legacy.h"

namespace protocol {
namespace {

// Takes varints and byte strings off the front of a span. After a failure it only fails.
class Cursor {
 public:
  explicit Cursor(base::Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  base::Bytes rest() const { return {at_, end_}; }

  std::int32_t varint() {
    auto raw = static_cast<std::uint32_t>(unsigned_varint(5));
    return static_cast<std::int32_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  std::int64_t varlong() {
    std::uint64_t raw = unsigned_varint(10);
    return static_cast<std::int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  std::uint8_t byte() {
    base::Bytes one = bytes(1);
    return one.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(one[0]);
  }
  base::Bytes bytes(std::int64_t length) {
    if (length < 0 || static_cast<std::uint64_t>(length) > left()) return fail();
    const std::byte* const from = at_;
    at_ += length;
    return {from, at_};
  }
  // A varint length of -1 says null; any other negative one is damage.
  std::optional<base::Bytes> nullable_bytes() {
    std::int32_t length = varint();
    if (length == -1) return std::nullopt;
    return bytes(length);
  }

 private:
  base::Bytes fail() {
    ok_ = false;
    at_ = end_;
    return {};
  }
  std::uint64_t unsigned_varint(unsigned bytes_max) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes_max && i < left(); ++i) {
      auto b = std::to_integer<std::uint8_t>(at_[i]);
      value |= static_cast<std::uint64_t>(b & 0x7f) << (7 * i);
      if ((b & 0x80) == 0) {
        at_ += i + 1;
        return value;
      }
    }
    fail();
    return 0;
  }

  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

// A varint of at most three bytes, as it stands. False: it is longer, or cut off.
[[gnu::always_inline]] inline bool take_short(const std::byte*& at, const std::byte* end,
                                              std::uint32_t& raw) {
  if (end - at < 3) return false;
  const auto first = std::to_integer<std::uint32_t>(at[0]);
  const auto second = std::to_integer<std::uint32_t>(at[1]);
  const auto third = std::to_integer<std::uint32_t>(at[2]);
  if (first < 0x80) {
    raw = first;
    at += 1;
  } else if (second < 0x80) {
    raw = (first & 0x7f) | second << 7;
    at += 2;
  } else {
    raw = (first & 0x7f) | (second & 0x7f) << 7 | third << 14;
    at += 3;
    return third < 0x80;
  }
  return true;
}

constexpr std::int32_t zigzag(std::uint32_t raw) {
  return static_cast<std::int32_t>((raw >> 1) ^ (~(raw & 1) + 1));
}

// Takes a string of bytes with its length, -1 for null. False: its length is unusual, or it is cut
// off.
[[gnu::always_inline]] inline bool take_string(const std::byte*& at, const std::byte* end,
                                               std::optional<base::Bytes>& out) {
  std::uint32_t raw = 0;
  if (!take_short(at, end, raw)) return false;
  const std::int32_t length = zigzag(raw);
  if (length < 0) {
    out = std::nullopt;
    return length == -1;
  }
  if (length > end - at) return false;
  out = base::Bytes(at, static_cast<std::size_t>(length));
  at += length;
  return true;
}

// Sums of numbers from outside wrap instead of being undefined; what they mean is the sender's
// business.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

base::Result<RecordReader> RecordReader::open(base::Bytes batch, std::size_t output_bytes_max,
                                              OffsetRule rule) {
  RecordReader reader;
  reader.rule_ = rule;
  TRY(reader.info_, parse_batch(batch));
  const BatchInfo& info = reader.info_;
  batch = batch.first(info.size_bytes);
  std::size_t budget = output_bytes_max != 0 ? output_bytes_max : output_budget(batch.size());
  if (info.magic < 2) {
    if (info.codec() == Codec::none) {
      reader.rest_ = batch;
      return reader;
    }
    TRY(LegacyEntry wrapper, parse_legacy_entry(batch));
    TRY(LegacyInner inner, open_legacy_wrapper(wrapper, budget));
    reader.decompressed_ = std::move(inner.entries);
    reader.legacy_base_ = inner.base;
    reader.rest_ = reader.decompressed_;
    return reader;
  }
  reader.rest_ = batch.subspan(batch_header_bytes);
  // A batch that compaction emptied keeps its codec bits and has nothing to decompress.
  if (info.codec() == Codec::none || reader.rest_.empty()) return reader;
  TRY(reader.decompressed_, decompress(info.codec(), reader.rest_, budget));
  reader.rest_ = reader.decompressed_;
  return reader;
}

bool RecordReader::at_end() const {
  return info_.magic < 2 ? rest_.empty() : returned_ == *info_.record_count;
}

bool RecordReader::next(Record& out) {
  if (error_) return false;
  if (at_end()) {
    if (!rest_.empty()) error_ = BatchErrc::bad_count;
    return false;
  }
  if (info_.magic == 2 && next_simple(out)) return true;
  auto read = info_.magic < 2 ? next_legacy(out) : next_v2(out);
  if (read.has_error()) error_ = read.error();
  return !error_;
}

base::Result<void> RecordReader::next_legacy(Record& out) {
  TRY(LegacyEntry entry, parse_legacy_entry(rest_));
  rest_ = rest_.subspan(entry.info.size_bytes);
  base::Offset offset = entry.info.last_offset;
  // No inner offset is above the wrapper's, which the sum must not pass.
  if (info_.codec() != Codec::none && offset > info_.last_offset - legacy_base_ &&
      legacy_base_ != 0) {
    return BatchErrc::bad_offset;
  }
  out.offset = legacy_base_ + offset;
  out.timestamp = info_.log_append_time() ? info_.max_timestamp : entry.info.max_timestamp;
  out.key = entry.key;
  out.value = entry.value;
  out.headers = {};
  return {};
}

// Most records have no headers and small numbers: these quickly, since a broker looks at each
// record that is produced. False: not such a one, and nothing was taken.
bool RecordReader::next_simple(Record& out) {
  const std::byte* at = rest_.data();
  const std::byte* const all = at + rest_.size();
  std::uint32_t length = 0, timestamp = 0, offset = 0;
  if (!take_short(at, all, length)) return false;
  if (zigzag(length) < 1 || zigzag(length) > all - at) return false;
  const std::byte* const end = at + zigzag(length);
  ++at;  // attributes: no bit has a meaning yet
  if (!take_short(at, end, timestamp) || !take_short(at, end, offset)) return false;
  if (!take_string(at, end, out.key)) return false;
  if (!take_string(at, end, out.value)) return false;
  if (end - at != 1 || *at != std::byte{0}) return false;  // the number of headers
  if (!accept_offset(zigzag(offset))) return false;
  out.offset = wrapping_sum(info_.base_offset, zigzag(offset));
  out.timestamp = info_.log_append_time() ? info_.max_timestamp
                                          : wrapping_sum(info_.base_timestamp, zigzag(timestamp));
  out.headers = {};
  rest_ = {end, all};
  ++returned_;
  return true;
}

bool RecordReader::accept_offset(std::int32_t delta) {
  if (rule_ == OffsetRule::rising &&
      (delta <= last_offset_delta_ || delta > info_.last_offset - info_.base_offset))
    return false;
  last_offset_delta_ = delta;
  return true;
}

base::Result<void> RecordReader::next_v2(Record& out) {
  if (rest_.empty()) return BatchErrc::bad_count;
  Cursor outer(rest_);
  Cursor in(outer.bytes(outer.varint()));
  if (!outer.ok()) return BatchErrc::corrupt_record;
  in.byte();  // record attributes: no bit has a meaning yet
  std::int64_t timestamp_delta = in.varlong();
  std::int32_t offset_delta = in.varint();
  out.key = in.nullable_bytes();
  out.value = in.nullable_bytes();
  std::int32_t header_count = in.varint();
  // Two bytes are the least that a header takes, so a false count costs no memory.
  if (!in.ok() || header_count < 0 || static_cast<std::size_t>(header_count) > in.left() / 2) {
    return BatchErrc::corrupt_record;
  }
  headers_.clear();
  for (std::int32_t i = 0; i < header_count; ++i) {
    std::string_view key = base::as_text(in.bytes(in.varint()));
    headers_.push_back({key, in.nullable_bytes()});
  }
  if (!in.ok() || in.left() > 0) return BatchErrc::corrupt_record;
  if (!accept_offset(offset_delta)) return BatchErrc::bad_offset;
  out.offset = wrapping_sum(info_.base_offset, offset_delta);
  out.timestamp = info_.log_append_time() ? info_.max_timestamp
                                          : wrapping_sum(info_.base_timestamp, timestamp_delta);
  out.headers = headers_;
  rest_ = outer.rest();
  ++returned_;
  return {};
}

base::Result<base::Offset> first_offset(base::Bytes batch) {
  TRY(BatchInfo info, parse_batch(batch));
  if (info.magic < 2 && info.codec() == Codec::none) return info.base_offset;
  TRY(RecordReader reader, RecordReader::open(batch));
  Record record;
  if (reader.next(record)) return record.offset;
  if (reader.error()) return reader.error();
  return info.base_offset;
}

base::Result<ControlRecord> parse_control(const Record& record) {
  if (!record.key || record.key->size() < 4) return BatchErrc::bad_control;
  ControlRecord control;
  control.version = load_be<std::int16_t>(record.key->data());
  control.type = static_cast<ControlType>(load_be<std::int16_t>(record.key->data() + 2));
  if (control.version < 0) return BatchErrc::bad_control;
  if (control.type == ControlType::abort || control.type == ControlType::commit) {
    if (!record.value || record.value->size() < 6) return BatchErrc::bad_control;
    control.coordinator_epoch = load_be<std::int32_t>(record.value->data() + 2);
  }
  return control;
}

base::Result<std::optional<ControlRecord>> read_control(base::Bytes batch) {
  TRY(BatchInfo info, parse_batch(batch));
  if (!info.control() || info.record_count == 0) return std::optional<ControlRecord>();
  TRY(RecordReader reader, RecordReader::open(batch));
  Record record;
  if (!reader.next(record)) return reader.error() ? reader.error() : BatchErrc::bad_control;
  TRY(ControlRecord control, parse_control(record));
  return std::optional<ControlRecord>(control);
}

}  // namespace protocol
