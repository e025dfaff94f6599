#include "protocol/legacy.h"

#include <limits>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"

namespace protocol {
namespace {

constexpr std::size_t message_crc_at = 12;
constexpr std::size_t message_magic_at = 16;
constexpr std::size_t message_attributes_at = 17;
constexpr std::size_t timestamp_at = 18;

// A length of -1 says null.
bool take_nullable(base::Bytes& rest, std::optional<base::Bytes>& out) {
  if (rest.size() < 4) return false;
  auto length = load_be<std::int32_t>(rest.data());
  rest = rest.subspan(4);
  if (length == -1) {
    out.reset();
    return true;
  }
  if (length < 0 || static_cast<std::size_t>(length) > rest.size()) return false;
  out = rest.first(static_cast<std::size_t>(length));
  rest = rest.subspan(static_cast<std::size_t>(length));
  return true;
}

}  // namespace

base::Result<BatchInfo> parse_legacy_header(base::Bytes bytes) {
  if (bytes.size() < legacy_header_bytes_v0) return BatchErrc::incomplete;
  const std::byte* at = bytes.data();
  BatchInfo info;
  info.magic = load_be<std::uint8_t>(at + message_magic_at);
  info.base_offset = load_be<std::int64_t>(at);
  info.last_offset = info.base_offset;
  info.crc = load_be<std::uint32_t>(at + message_crc_at);
  // Only codec and timestamp type mean something here, and the latter only in magic 1; the bits of
  // magic 2 must not show through.
  std::int16_t bits = info.magic == 0 ? 0x07 : 0x0f;
  info.attributes = load_be<std::uint8_t>(at + message_attributes_at) & bits;
  if (info.magic == 1) {
    if (bytes.size() < legacy_header_bytes_v1) return BatchErrc::incomplete;
    info.base_timestamp = load_be<std::int64_t>(at + timestamp_at);
    info.max_timestamp = info.base_timestamp;
  }
  if (info.base_offset < 0 || info.base_offset == std::numeric_limits<base::Offset>::max()) {
    return BatchErrc::bad_offset;
  }
  if (info.codec() == Codec::none) info.record_count = 1;
  return info;
}

base::Result<LegacyEntry> parse_legacy_entry(base::Bytes bytes) {
  TRY(BatchInfo info, parse_batch(bytes));
  if (info.magic > 1) return BatchErrc::unknown_magic;
  base::Bytes rest =
      bytes.first(info.size_bytes)
          .subspan(info.magic == 0 ? legacy_header_bytes_v0 : legacy_header_bytes_v1);
  LegacyEntry entry{info, std::nullopt, std::nullopt};
  if (!take_nullable(rest, entry.key) || !take_nullable(rest, entry.value) || !rest.empty()) {
    return BatchErrc::corrupt_record;
  }
  return entry;
}

base::Result<LegacyInner> open_legacy_wrapper(const LegacyEntry& wrapper,
                                              std::size_t output_bytes_max) {
  CHECK(wrapper.info.codec() != Codec::none);
  if (!wrapper.value) return BatchErrc::corrupt_record;
  LegacyInner inner;
  TRY(inner.entries, decompress(wrapper.info.codec(), *wrapper.value, output_bytes_max));
  // Relative offsets count back from the last entry, so all headers are read first.
  BatchIterator it(inner.entries);
  base::Offset last = -1;
  while (it.next()) {
    if (it.info().magic != wrapper.info.magic || it.info().codec() != Codec::none) {
      return BatchErrc::corrupt_record;
    }
    last = it.info().last_offset;
  }
  if (it.stopped()) return it.stopped();
  if (last < 0) return BatchErrc::bad_count;
  // Some old producers left the wrapper's offset 0; then the inner offsets stand for themselves.
  if (wrapper.info.magic == 1 && wrapper.info.last_offset >= last) {
    inner.base = wrapper.info.last_offset - last;
  }
  return inner;
}

}  // namespace protocol
