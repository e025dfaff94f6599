// Message entries of magic 0 and 1: they are stored and walked, never written or converted here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"

namespace protocol {

// offset, size, checksum, magic, attributes; magic 1 adds a timestamp. Key and value length follow.
constexpr std::size_t legacy_header_bytes_v0 = 18;
constexpr std::size_t legacy_header_bytes_v1 = 26;
// What the size field counts at least: up to and with the two length fields.
constexpr std::uint32_t legacy_size_min_v0 = 14;
constexpr std::uint32_t legacy_size_min_v1 = 22;

// The header of an entry, its size and magic already checked. Needs legacy_header_bytes of its
// magic.
base::Result<BatchInfo> parse_legacy_header(base::Bytes bytes);

struct LegacyEntry {
  BatchInfo info;
  std::optional<base::Bytes> key;
  std::optional<base::Bytes> value;
};

// The whole entry at the front of `bytes`. Key and value must fill it exactly.
base::Result<LegacyEntry> parse_legacy_entry(base::Bytes bytes);

// The entries inside a compressed one, decompressed, and what their offsets count from.
struct LegacyInner {
  base::Buffer entries;
  base::Offset base = 0;
};
// Fails unless the inner entries are whole, of the wrapper's magic and uncompressed.
base::Result<LegacyInner> open_legacy_wrapper(const LegacyEntry& wrapper,
                                              std::size_t output_bytes_max);

}  // namespace protocol
