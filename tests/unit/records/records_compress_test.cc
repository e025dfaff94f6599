#include <catch2/catch.hpp>

#include <sys/resource.h>

#include "protocol/base/random.h"
#include "protocol/big_endian.h"
#include "protocol/compress.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;
using record_vectors::from_hex;

namespace {

const Codec all_codecs[] = {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};

base::Buffer text_of(std::size_t size, std::uint64_t seed) {
  base::Random random(seed);
  base::Buffer out(size);
  for (std::byte& b : out) b = static_cast<std::byte>('a' + random.below(4));
  return out;
}

base::Buffer joined(base::Bytes a, base::Bytes b) {
  base::Buffer out = base::to_buffer(a);
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

base::Error error_of(Codec codec, base::Bytes input, std::size_t budget = 16 << 20) {
  auto out = decompress(codec, input, budget);
  return out.has_error() ? out.error() : base::Error();
}

// The address sanitizer keeps freed memory back, so there the peak says nothing.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PEAK_IS_INFLATED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PEAK_IS_INFLATED 1
#endif

long peak_kib() {
#ifdef PEAK_IS_INFLATED
  return 0;
#endif
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("what is compressed comes back, at every interesting size") {
  for (Codec codec : all_codecs) {
    for (std::size_t size :
         {0u, 1u, 15u, 4095u, 4096u, 4097u, 32767u, 32768u, 32769u, 65536u, 65537u, 1'000'000u}) {
      INFO(name(codec) << " " << size);
      base::Buffer input = text_of(size, size + 1);
      auto back = decompress(codec, compress(codec, input));
      REQUIRE(back.has_value());
      CHECK((*back == input));
    }
  }
}

TEST_CASE("a budget that just suffices suffices, and one byte less does not") {
  for (Codec codec : all_codecs) {
    for (std::size_t size : {1u, 4096u, 5000u, 40'000u, 300'000u}) {
      INFO(name(codec) << " " << size);
      base::Buffer input = text_of(size, 3), packed = compress(codec, input);
      CHECK(!error_of(codec, packed, size));
      CHECK(error_of(codec, packed, size - 1) == CompressErrc::over_budget);
    }
  }
}

TEST_CASE("the budget grows with the input from a floor of 16 MiB") {
  CHECK(output_budget(0) == 16u << 20);
  CHECK(output_budget(100'000) == 16u << 20);
  CHECK(output_budget(1'000'000) == 100'000'000);
}

TEST_CASE("no prefix of a stream is taken for the whole") {
  base::Buffer input = text_of(70'000, 5);
  for (Codec codec : {Codec::gzip, Codec::lz4, Codec::zstd}) {
    base::Buffer packed = compress(codec, input);
    for (std::size_t n = 0; n < packed.size(); n += n < 64 ? 1 : 997) {
      INFO(name(codec) << " " << n);
      CHECK(error_of(codec, base::Bytes(packed).first(n)) == CompressErrc::corrupt);
    }
  }
  // Snappy's framing has no end mark: a prefix of whole blocks is a stream, all others are damaged.
  base::Buffer packed = compress(Codec::snappy, input);
  std::size_t whole = 0;
  for (std::size_t border = 16; border < packed.size(); ++whole) {
    auto out = decompress(Codec::snappy, base::Bytes(packed).first(border));
    REQUIRE(out.has_value());
    CHECK(out->size() == whole * 32768);
    std::size_t next = border + 4 + load_be<std::uint32_t>(packed.data() + border);
    for (std::size_t n : {border + 1, border + 3, border + 4, border + 5, next - 1}) {
      INFO(n);
      CHECK(error_of(Codec::snappy, base::Bytes(packed).first(n)) == CompressErrc::corrupt);
    }
    border = next;
  }
  CHECK(whole == 3);
}

TEST_CASE("codecs that nobody knows are refused") {
  for (int codec : {5, 6, 7}) {
    CHECK(error_of(static_cast<Codec>(codec), base::as_bytes("x")) == CompressErrc::unknown_codec);
    CHECK(name(static_cast<Codec>(codec)) == "unknown");
  }
}

TEST_CASE("gzip members joined end to end are one stream, and padding behind is skipped") {
  base::Buffer a = text_of(5000, 1), b = text_of(100, 2);
  base::Buffer both = joined(compress(Codec::gzip, a), compress(Codec::gzip, b));
  CHECK((*decompress(Codec::gzip, both) == joined(a, b)));
  both.resize(both.size() + 8);
  CHECK((*decompress(Codec::gzip, both) == joined(a, b)));
}

TEST_CASE("snappy framings") {
  base::Buffer block = from_hex("0a2468656c6c6f776f726c64");  // ten literal bytes
  SECTION("raw") {
    CHECK(base::as_text(*decompress(Codec::snappy, block)) == "helloworld");
  }
  base::Buffer head = from_hex("82534e415050590000000001000000010000000c");
  SECTION("framed, and joined at a block border") {
    base::Buffer framed = joined(head, block);
    CHECK(base::as_text(*decompress(Codec::snappy, framed)) == "helloworld");
    CHECK(base::as_text(*decompress(Codec::snappy, joined(framed, framed))) ==
          "helloworldhelloworld");
  }
  SECTION("no blocks at all") {
    CHECK(decompress(Codec::snappy, base::Bytes(head).first(16))->empty());
  }
  SECTION("block lengths that lie") {
    for (std::int32_t length : {-1, 0, 11, 13, 0x7fffffff, static_cast<std::int32_t>(0x80000000)}) {
      INFO(length);
      base::Buffer framed = joined(head, block);
      store_be(framed.data() + 16, length);
      CHECK(error_of(Codec::snappy, framed) == CompressErrc::corrupt);
    }
  }
  SECTION("output lengths that lie") {
    for (const char* hex : {"ffffffff0f", "ffffffff0f2468656c6c6f776f726c64",
                            "808080082468656c6c6f776f726c64", "0b2468656c6c6f776f726c64"}) {
      INFO(hex);
      CHECK(error_of(Codec::snappy, from_hex(hex)) == CompressErrc::corrupt);
      CHECK(error_of(Codec::snappy, {}) == CompressErrc::corrupt);
    }
  }
  SECTION("Java's block size") {
    base::Buffer packed = compress(Codec::snappy, base::Buffer(32769));
    auto first = load_be<std::uint32_t>(packed.data() + 16);
    auto second = load_be<std::uint32_t>(packed.data() + 20 + first);
    CHECK(packed.size() == 24 + first + second);
    CHECK(base::to_hex(base::Bytes(packed).last(second)) == "010000");
  }
}

TEST_CASE("lz4 frames are those that Java reads, and the old header checksum is read") {
  base::Buffer input = text_of(200'000, 9);
  base::Buffer packed = compress(Codec::lz4, input);
  // Version 1, independent blocks, no checksums, no content size; blocks of 64 KiB.
  CHECK(base::to_hex(base::Bytes(packed).first(6)) == "04224d186040");
  CHECK(base::to_hex(base::Bytes(packed).subspan(6, 1)) == "82");
  base::Buffer quirk = compress(Codec::lz4, input, Lz4Header::quirk);
  CHECK((quirk != packed));
  CHECK((*decompress(Codec::lz4, quirk) == input));
  CHECK((*decompress(Codec::lz4, packed) == input));
  quirk[6] ^= std::byte{1};
  CHECK(error_of(Codec::lz4, quirk) == CompressErrc::corrupt);
  CHECK((*decompress(Codec::lz4, joined(packed, packed)) == joined(input, input)));
  CHECK(error_of(Codec::lz4, joined(packed, base::as_bytes("tail of trash"))) ==
        CompressErrc::corrupt);
}

TEST_CASE("zstd frames of any window") {
  // A header that asks for a window of 128 MiB, as level 22 does, and one block of 1000 times c.
  base::Buffer wide = from_hex(
      "28b52ffd0088"
      "431f00"
      "63");
  SECTION("a window of 128 MiB") {
    long before = peak_kib();
    auto out = decompress(Codec::zstd, wide);
    REQUIRE(out.has_value());
    CHECK(base::as_text(*out) == std::string(1000, 'c'));
    CHECK(error_of(Codec::zstd, wide, 999) == CompressErrc::over_budget);
    CHECK(peak_kib() - before < 16 << 10);
  }
  SECTION("joined frames") {
    base::Buffer input = text_of(1000, 4), packed = compress(Codec::zstd, input);
    CHECK((*decompress(Codec::zstd, joined(packed, packed)) == joined(input, input)));
  }
}

// F05: what a length field claims costs nothing until bytes back it.
TEST_CASE("bombs and lies cost no memory") {
  long before = peak_kib();
  // A zstd frame that claims 1 TiB of content in its header.
  CHECK(error_of(Codec::zstd, from_hex("28b52ffde000000000000100000100"
                                       "00")) != base::Error());
  // An lz4 frame that claims 2^62 bytes.
  CHECK(error_of(Codec::lz4, from_hex("04224d18684000000000000000400000000000")) != base::Error());
  for (Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    INFO(name(codec));
    base::Buffer bomb;
    {
      base::Buffer zeros(std::size_t{24} << 20);
      bomb = compress(codec, zeros);
    }
    CHECK(error_of(codec, bomb, 1 << 20) == CompressErrc::over_budget);
  }
  CHECK(peak_kib() - before < 100 << 10);
}
