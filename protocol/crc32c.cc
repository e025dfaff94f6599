#include "protocol/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>

namespace protocol {

std::uint32_t crc32c(base::Bytes bytes) {
  // The library takes a non-const pointer and an int length, and leaves the inversions to us.
  constexpr std::size_t piece_max = std::size_t{1} << 30;
  unsigned int crc = 0xffffffffu;
  while (!bytes.empty()) {
    std::size_t n = std::min(bytes.size(), piece_max);
    auto* from = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(from, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  return ~crc;
}

std::uint32_t crc32(base::Bytes bytes) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace protocol
