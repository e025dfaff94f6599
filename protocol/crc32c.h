// The two checksums of Kafka's record formats.
#pragma once
#include <cstdint>

#include "protocol/base/bytes.h"

namespace protocol {

// CRC-32C (Castagnoli): batches of magic 2, producer snapshots.
std::uint32_t crc32c(base::Bytes bytes);
// CRC-32 (IEEE, as in gzip): entries of magic 0 and 1.
std::uint32_t crc32(base::Bytes bytes);

}  // namespace protocol
