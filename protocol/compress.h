// Kafka's codecs. Decompression never believes a length that it reads: output grows as real data
// comes out of the codec and ends in an error at the budget, so a crafted header cannot cost
// memory.
#pragma once
#include <boost/system/error_category.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

namespace protocol {

// The numbers stand in bits 0-2 of a batch's attributes. 5 to 7 are unassigned: they may occur in
// an attribute field and are refused by compress() and decompress().
enum class Codec : std::uint8_t { none = 0, gzip = 1, snappy = 2, lz4 = 3, zstd = 4 };

constexpr bool is_known(Codec codec) {
  return codec <= Codec::zstd;
}
// Kafka's name ("gzip"), or "unknown".
std::string_view name(Codec codec);

enum class CompressErrc {
  unknown_codec = 1,
  corrupt,      // the codec refuses the input
  over_budget,  // the output would be larger than allowed
};
const boost::system::error_category& compress_category();
inline base::Error make_error_code(CompressErrc e) {
  return {static_cast<int>(e), compress_category()};
}

// What decompression of `input_bytes` bytes may produce unless the caller sets its own limit.
constexpr std::size_t output_budget(std::size_t input_bytes) {
  constexpr std::size_t floor_bytes = std::size_t{16} << 20, ratio_max = 100;
  return input_bytes > floor_bytes / ratio_max ? input_bytes * ratio_max : floor_bytes;
}

// How lz4 frames of magic 0 were written by old clients: their header checksum also covers the
// magic number. Such a frame is read with `quirk`, and written so when asked for.
enum class Lz4Header { standard, quirk };

// The whole record region of a batch as one stream at Kafka's default level. Only known codecs.
base::Buffer compress(Codec codec, base::Bytes input, Lz4Header lz4 = Lz4Header::standard);

base::Result<base::Buffer> decompress(Codec codec, base::Bytes input, std::size_t output_bytes_max);
inline base::Result<base::Buffer> decompress(Codec codec, base::Bytes input) {
  return decompress(codec, input, output_budget(input.size()));
}

}  // namespace protocol

template <>
struct boost::system::is_error_code_enum<protocol::CompressErrc> : std::true_type {};
