#include "protocol/compress.h"

#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"

namespace protocol {
namespace {

constexpr std::size_t output_first_bytes = 4096;
constexpr std::size_t snappy_block_bytes = 32768;
// A snappy copy of 3 bytes yields 64 at most, so a block that claims more than this is lying.
constexpr std::size_t snappy_ratio_max = 22;
// Larger windows are legal (level 22 asks for 128 MiB) but take a way that allocates by real
// output.
constexpr int zstd_window_log_max = 23;
constexpr int zstd_level = 3;

constexpr std::array<std::byte, 8> xerial_magic{std::byte{0x82}, std::byte{'S'}, std::byte{'N'},
                                                std::byte{'A'},  std::byte{'P'}, std::byte{'P'},
                                                std::byte{'Y'},  std::byte{0}};
constexpr std::size_t xerial_header_bytes = 16;  // magic, version, lowest compatible version

class CompressCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "compress"; }
  std::string message(int value) const override {
    switch (static_cast<CompressErrc>(value)) {
      case CompressErrc::unknown_codec:
        return "unknown compression codec";
      case CompressErrc::corrupt:
        return "compressed data is corrupt";
      case CompressErrc::over_budget:
        return "compressed data would become too large";
    }
    return "unknown compression error";
  }
};

const char* chars(base::Bytes bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
Bytef* zlib_in(base::Bytes bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

// Output that grows by doubling while data really comes, up to the budget and one byte more: the
// byte more tells "exactly full and done" from "full and going on".
class Output {
 public:
  explicit Output(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  base::MutableBytes room() {
    if (used_ == buffer_.size()) {
      std::size_t want = std::max(output_first_bytes, buffer_.size() * 2);
      buffer_.resize(std::min(want, bytes_max_ + 1));
    }
    return base::MutableBytes(buffer_).subspan(used_);
  }
  void commit(std::size_t bytes) { used_ += bytes; }
  bool over_budget() const { return used_ > bytes_max_; }
  base::Buffer take() {
    buffer_.resize(used_);
    return std::move(buffer_);
  }

 private:
  base::Buffer buffer_;
  std::size_t used_ = 0;
  std::size_t bytes_max_;
};

base::Buffer gzip_compress(base::Bytes input) {
  z_stream z{};
  constexpr int window_bits = 15 + 16;  // 16 asks for a gzip header
  CHECK(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) ==
        Z_OK);
  base::Buffer out(deflateBound(&z, input.size()));
  z.next_in = zlib_in(input);
  z.avail_in = static_cast<uInt>(input.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  int status = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  CHECK(status == Z_STREAM_END);
  return out;
}

bool starts_gzip_member(base::Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

base::Result<base::Buffer> gzip_decompress(base::Bytes input, std::size_t bytes_max) {
  z_stream z{};
  constexpr int window_bits = 15 + 16;
  CHECK(inflateInit2(&z, window_bits) == Z_OK);
  std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&z, &inflateEnd);
  Output out(bytes_max);
  z.next_in = zlib_in(input);
  z.avail_in = static_cast<uInt>(input.size());
  for (;;) {
    base::MutableBytes room = out.room();
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    int status = inflate(&z, Z_NO_FLUSH);
    out.commit(room.size() - z.avail_out);
    if (out.over_budget()) return CompressErrc::over_budget;
    if (status == Z_STREAM_END) {
      // What follows the last member and is none itself is padding, which Java skips as well.
      if (!starts_gzip_member(input.last(z.avail_in))) return out.take();
      CHECK(inflateReset(&z) == Z_OK);
      continue;
    }
    // No progress with room left means that the input ends too early.
    if (status != Z_OK) return CompressErrc::corrupt;
  }
}

void append(base::Buffer& out, base::Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_int32(base::Buffer& out, std::int32_t value) {
  std::array<std::byte, 4> raw{};
  store_be(raw.data(), value);
  append(out, raw);
}

base::Buffer snappy_compress(base::Bytes input) {
  base::Buffer out(xerial_magic.begin(), xerial_magic.end());
  append_int32(out, 1);
  append_int32(out, 1);
  while (!input.empty()) {
    base::Bytes block = input.first(std::min(input.size(), snappy_block_bytes));
    std::size_t at = out.size() + 4, length = 0;
    out.resize(at + snappy::MaxCompressedLength(block.size()));
    snappy::RawCompress(chars(block), block.size(), reinterpret_cast<char*>(out.data() + at),
                        &length);
    store_be(out.data() + at - 4, static_cast<std::int32_t>(length));
    out.resize(at + length);
    input = input.subspan(block.size());
  }
  return out;
}

base::Result<void> snappy_block(base::Bytes block, std::size_t bytes_max, base::Buffer& out) {
  std::size_t length = 0;
  if (!snappy::GetUncompressedLength(chars(block), block.size(), &length) ||
      length > block.size() * snappy_ratio_max) {
    return CompressErrc::corrupt;
  }
  if (length > bytes_max - out.size()) return CompressErrc::over_budget;
  std::size_t at = out.size();
  out.resize(at + length);
  if (!snappy::RawUncompress(chars(block), block.size(),
                             reinterpret_cast<char*>(out.data() + at))) {
    return CompressErrc::corrupt;
  }
  return {};
}

bool starts_xerial(base::Bytes bytes) {
  return bytes.size() >= xerial_header_bytes &&
         std::equal(xerial_magic.begin(), xerial_magic.end(), bytes.begin());
}

base::Result<base::Buffer> snappy_decompress(base::Bytes input, std::size_t bytes_max) {
  base::Buffer out;
  if (!starts_xerial(input)) {
    TRY_VOID(snappy_block(input, bytes_max, out));
    return out;
  }
  while (!input.empty()) {
    // Again at any block border: streams may be joined end to end.
    if (starts_xerial(input)) {
      input = input.subspan(xerial_header_bytes);
      continue;
    }
    if (input.size() < 4) return CompressErrc::corrupt;
    auto length = load_be<std::int32_t>(input.data());
    input = input.subspan(4);
    if (length < 0 || static_cast<std::size_t>(length) > input.size()) {
      return CompressErrc::corrupt;
    }
    TRY_VOID(snappy_block(input.first(static_cast<std::size_t>(length)), bytes_max, out));
    input = input.subspan(static_cast<std::size_t>(length));
  }
  return out;
}

std::uint32_t rotate_left(std::uint32_t value, unsigned by) {
  return value << by | value >> (32 - by);
}

std::uint32_t load_le32(const std::byte* from) {
  std::uint32_t value = 0;
  for (unsigned i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(from[i]);
  return value;
}

// xxHash32 with seed 0, which the header of an lz4 frame is guarded by; the lz4 library keeps its
// own one to itself.
std::uint32_t xxhash32(base::Bytes bytes) {
  constexpr std::uint32_t p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u,
                          p5 = 374761393u;
  const std::byte* at = bytes.data();
  const std::byte* end = at + bytes.size();
  std::uint32_t h = p5;
  if (bytes.size() >= 16) {
    std::array<std::uint32_t, 4> lanes{p1 + p2, p2, 0, 0u - p1};
    for (; end - at >= 16; at += 16) {
      for (std::size_t i = 0; i < 4; ++i) {
        lanes[i] = rotate_left(lanes[i] + load_le32(at + 4 * i) * p2, 13) * p1;
      }
    }
    h = rotate_left(lanes[0], 1) + rotate_left(lanes[1], 7) + rotate_left(lanes[2], 12) +
        rotate_left(lanes[3], 18);
  }
  h += static_cast<std::uint32_t>(bytes.size());
  for (; end - at >= 4; at += 4) h = rotate_left(h + load_le32(at) * p3, 17) * p4;
  for (; at != end; ++at) h = rotate_left(h + std::to_integer<std::uint32_t>(*at) * p5, 11) * p1;
  h = (h ^ h >> 15) * p2;
  h = (h ^ h >> 13) * p3;
  return h ^ h >> 16;
}

constexpr std::size_t lz4_magic_bytes = 4;

// Bytes of the frame header in front of its checksum byte; 0 if this is no lz4 frame.
std::size_t lz4_header_bytes(base::Bytes frame) {
  constexpr std::uint32_t magic = 0x184d2204;
  if (frame.size() < 7 || load_le32(frame.data()) != magic) return 0;
  auto flags = std::to_integer<unsigned>(frame[4]);
  std::size_t bytes = 6 + ((flags & 0x08) != 0 ? 8u : 0u) + ((flags & 0x01) != 0 ? 4u : 0u);
  return bytes < frame.size() ? bytes : 0;
}

std::byte lz4_header_checksum(base::Bytes header, Lz4Header kind) {
  base::Bytes guarded = kind == Lz4Header::quirk ? header : header.subspan(lz4_magic_bytes);
  return static_cast<std::byte>(xxhash32(guarded) >> 8 & 0xff);
}

base::Buffer lz4_compress(base::Bytes input, Lz4Header kind) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;  // Java's reader takes nothing else
  base::Buffer out(LZ4F_compressFrameBound(input.size(), &preferences));
  std::size_t n =
      LZ4F_compressFrame(out.data(), out.size(), input.data(), input.size(), &preferences);
  CHECK(!LZ4F_isError(n));
  out.resize(n);
  if (kind == Lz4Header::quirk) {
    std::size_t header = lz4_header_bytes(out);
    CHECK(header != 0);
    out[header] = lz4_header_checksum(base::Bytes(out).first(header), kind);
  }
  return out;
}

base::Result<base::Buffer> lz4_decompress(base::Bytes input, std::size_t bytes_max) {
  LZ4F_dctx* context = nullptr;
  CHECK(!LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)));
  std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> guard(
      context, &LZ4F_freeDecompressionContext);
  Output out(bytes_max);
  // The historical header checksum is replaced by the right one before the library looks at it.
  base::Buffer mended;
  std::size_t header = lz4_header_bytes(input);
  if (header != 0 && input[header] == lz4_header_checksum(input.first(header), Lz4Header::quirk)) {
    mended = base::to_buffer(input.first(header));
    mended.push_back(lz4_header_checksum(mended, Lz4Header::standard));
    input = input.subspan(header + 1);
  }
  base::Bytes front = mended.empty() ? input : base::Bytes(mended);
  base::Bytes back = mended.empty() ? base::Bytes() : input;
  for (;;) {
    base::MutableBytes room = out.room();
    std::size_t made = room.size(), eaten = front.size();
    std::size_t hint = LZ4F_decompress(context, room.data(), &made, front.data(), &eaten, nullptr);
    if (LZ4F_isError(hint)) return CompressErrc::corrupt;
    out.commit(made);
    if (out.over_budget()) return CompressErrc::over_budget;
    front = front.subspan(eaten);
    if (front.empty() && !back.empty()) {
      front = back;
      back = {};
      continue;
    }
    if (front.empty() && hint == 0) return out.take();
    if (eaten == 0 && made == 0) return CompressErrc::corrupt;
  }
}

base::Buffer zstd_compress(base::Bytes input) {
  base::Buffer out(ZSTD_compressBound(input.size()));
  std::size_t n = ZSTD_compress(out.data(), out.size(), input.data(), input.size(), zstd_level);
  CHECK(!ZSTD_isError(n));
  out.resize(n);
  return out;
}

// For frames with a large window: straight into an output that is tried larger and larger, so that
// the output itself is the window.
base::Result<base::Buffer> zstd_decompress_whole(ZSTD_DCtx* context, base::Bytes input,
                                                 std::size_t bytes_max) {
  std::size_t room = std::max(output_first_bytes, input.size() * 4);
  for (;;) {
    room = std::min(room, bytes_max);
    base::Buffer out(room);
    std::size_t n =
        ZSTD_decompressDCtx(context, out.data(), out.size(), input.data(), input.size());
    if (!ZSTD_isError(n)) {
      out.resize(n);
      return out;
    }
    if (ZSTD_getErrorCode(n) != ZSTD_error_dstSize_tooSmall) return CompressErrc::corrupt;
    if (room == bytes_max) return CompressErrc::over_budget;
    room *= 4;
  }
}

base::Result<base::Buffer> zstd_decompress(base::Bytes input, std::size_t bytes_max) {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  CHECK(context != nullptr);
  CHECK(!ZSTD_isError(
      ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, zstd_window_log_max)));
  Output out(bytes_max);
  ZSTD_inBuffer in{input.data(), input.size(), 0};
  for (;;) {
    base::MutableBytes room = out.room();
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    std::size_t before = in.pos;
    std::size_t hint = ZSTD_decompressStream(context.get(), &to, &in);
    if (ZSTD_isError(hint)) {
      if (ZSTD_getErrorCode(hint) != ZSTD_error_frameParameter_windowTooLarge) {
        return CompressErrc::corrupt;
      }
      CHECK(!ZSTD_isError(ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_and_parameters)));
      return zstd_decompress_whole(context.get(), input, bytes_max);
    }
    out.commit(to.pos);
    if (out.over_budget()) return CompressErrc::over_budget;
    if (hint == 0 && in.pos == in.size) return out.take();
    if (in.pos == before && to.pos == 0) return CompressErrc::corrupt;
  }
}

}  // namespace

const boost::system::error_category& compress_category() {
  static const CompressCategory category;
  return category;
}

std::string_view name(Codec codec) {
  switch (codec) {
    case Codec::none:
      return "none";
    case Codec::gzip:
      return "gzip";
    case Codec::snappy:
      return "snappy";
    case Codec::lz4:
      return "lz4";
    case Codec::zstd:
      return "zstd";
  }
  return "unknown";
}

base::Buffer compress(Codec codec, base::Bytes input, Lz4Header lz4) {
  CHECK(is_known(codec));
  // All codec libraries count in 32 bits somewhere; no batch is larger.
  CHECK(input.size() <= 0x7fffffff);
  switch (codec) {
    case Codec::none:
      break;
    case Codec::gzip:
      return gzip_compress(input);
    case Codec::snappy:
      return snappy_compress(input);
    case Codec::lz4:
      return lz4_compress(input, lz4);
    case Codec::zstd:
      return zstd_compress(input);
  }
  return base::to_buffer(input);
}

base::Result<base::Buffer> decompress(Codec codec, base::Bytes input,
                                      std::size_t output_bytes_max) {
  if (input.size() > 0x7fffffff) return CompressErrc::over_budget;
  // What the codecs count in 32 bits, they count right.
  output_bytes_max = std::min<std::size_t>(output_bytes_max, 0x7fffffff);
  switch (codec) {
    case Codec::none:
      break;
    case Codec::gzip:
      return gzip_decompress(input, output_bytes_max);
    case Codec::snappy:
      return snappy_decompress(input, output_bytes_max);
    case Codec::lz4:
      return lz4_decompress(input, output_bytes_max);
    case Codec::zstd:
      return zstd_decompress(input, output_bytes_max);
    default:
      return CompressErrc::unknown_codec;
  }
  if (input.size() > output_bytes_max) return CompressErrc::over_budget;
  return base::to_buffer(input);
}

}  // namespace protocol
