#include <catch2/catch.hpp>

#include <array>
#include <limits>

#include "protocol/batch.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/legacy.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;

namespace {

base::Buffer sample(BatchOptions options = {}) {
  BatchBuilder builder(options);
  builder.add(1000, base::as_bytes("key"), base::as_bytes("value"));
  builder.add(900, std::nullopt, base::as_bytes("second"));
  return std::move(builder).build();
}

template <class T>
void put(base::Buffer& batch, std::size_t at, T value) {
  store_be(batch.data() + at, value);
}

// Makes the checksum right again after put().
void sum(base::Buffer& batch) {
  put(batch, 17, crc32c(base::Bytes(batch).subspan(21)));
}

base::Error error_of(base::Bytes bytes, std::uint32_t size_max = batch_bytes_max) {
  auto info = parse_batch(bytes, size_max);
  return info.has_error() ? info.error() : base::Error();
}

}  // namespace

TEST_CASE("the checksums have their published check values") {
  CHECK(crc32c(base::as_bytes("123456789")) == 0xe3069283u);
  CHECK(crc32(base::as_bytes("123456789")) == 0xcbf43926u);
  CHECK(crc32c({}) == 0);
  CHECK(crc32({}) == 0);
}

TEST_CASE("a header is read in full") {
  BatchOptions options;
  options.base_offset = 1'000'000'000'000;
  options.last_offset = 1'000'000'000'009;
  options.partition_leader_epoch = 7;
  options.producer_id = 4711;
  options.producer_epoch = base::ProducerEpoch{3};
  options.base_sequence = std::numeric_limits<std::int32_t>::max() - 4;
  options.transactional = true;
  auto info = parse_batch(sample(options));
  REQUIRE(info.has_value());
  CHECK(info->base_offset == 1'000'000'000'000);
  CHECK(info->last_offset == 1'000'000'000'009);
  CHECK(info->next_offset() == 1'000'000'000'010);
  CHECK(info->partition_leader_epoch == 7);
  CHECK(info->base_timestamp == 1000);
  CHECK(info->max_timestamp == 1000);
  CHECK(info->producer_id == 4711);
  CHECK(info->producer_epoch == 3);
  CHECK(info->record_count == 2);
  CHECK(info->transactional());
  CHECK(!info->control());
  CHECK(!info->log_append_time());
  CHECK(!info->has_delete_horizon());
  // Sequences wrap to 0 behind the largest number.
  CHECK(info->last_sequence() == 4);
}

TEST_CASE("absent numbers are absent") {
  auto info = parse_batch(sample());
  REQUIRE(info.has_value());
  CHECK(!info->partition_leader_epoch);
  CHECK(!info->producer_id);
  CHECK(!info->producer_epoch);
  CHECK(!info->base_sequence);
  CHECK(!info->last_sequence());
}

TEST_CASE("every prefix is incomplete and never anything worse") {
  base::Buffer batch = sample();
  for (std::size_t n = 0; n < batch.size(); ++n) {
    INFO(n);
    CHECK(error_of(base::Bytes(batch).first(n)) == BatchErrc::incomplete);
  }
  CHECK(!error_of(batch));
  CHECK(parse_batch_header(base::Bytes(batch).first(batch_header_bytes)).has_value());
  CHECK(parse_batch_header(base::Bytes(batch).first(batch_header_bytes - 1)).error() ==
        BatchErrc::incomplete);
}

TEST_CASE("damaged headers are told apart") {
  base::Buffer batch = sample();
  SECTION("length") {
    for (std::int32_t length : {-1, 0, 13, 14, 48, std::numeric_limits<std::int32_t>::min()}) {
      INFO(length);
      put(batch, 8, length);
      CHECK(error_of(batch) == BatchErrc::corrupt_length);
    }
    put(batch, 8, 49);
    CHECK(!error_of(batch));
    put(batch, 8, std::numeric_limits<std::int32_t>::max());
    CHECK(error_of(batch) == BatchErrc::too_large);
    put(batch, 8, std::numeric_limits<std::int32_t>::max() - 12);
    CHECK(error_of(batch) == BatchErrc::incomplete);
  }
  SECTION("a limit is judged before more bytes are asked for") {
    auto size = static_cast<std::uint32_t>(batch.size());
    CHECK(error_of(base::Bytes(batch).first(12), size - 1) == BatchErrc::too_large);
    CHECK(error_of(batch, size - 1) == BatchErrc::too_large);
    CHECK(!error_of(batch, size));
  }
  SECTION("magic") {
    for (int magic : {3, 4, 127, 128, 255}) {
      put(batch, 16, static_cast<std::uint8_t>(magic));
      CHECK(error_of(batch) == BatchErrc::unknown_magic);
    }
  }
  SECTION("offsets") {
    put(batch, 0, std::int64_t{-1});
    CHECK(error_of(batch) == BatchErrc::bad_offset);
    put(batch, 0, std::numeric_limits<std::int64_t>::max() - 1);
    CHECK(error_of(batch) == BatchErrc::bad_offset);
    put(batch, 0, std::numeric_limits<std::int64_t>::max() - 2);
    CHECK(!error_of(batch));
    put(batch, 23, std::int32_t{-1});
    CHECK(error_of(batch) == BatchErrc::bad_offset);
  }
  SECTION("count") {
    put(batch, 57, std::int32_t{-1});
    CHECK(error_of(batch) == BatchErrc::bad_count);
    // More than the offset range, or none at all, is not the header's business.
    put(batch, 57, std::int32_t{1000});
    CHECK(!error_of(batch));
    put(batch, 57, std::int32_t{0});
    CHECK(!error_of(batch));
  }
}

TEST_CASE("the checksum covers every byte from the attributes on and none before") {
  base::Buffer batch = sample();
  CHECK(verify_crc(batch).has_value());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    INFO(i);
    if (i >= 8 && i < 12) continue;  // the length, which decides what the batch is
    if (i == 16) continue;           // the magic, which decides what the checksum is
    base::Buffer bent = batch;
    bent[i] ^= std::byte{0x10};
    CHECK(verify_crc(bent).has_value() == (i < 17));
  }
}

// B01: a checksum of 0 is a checksum. The value's last four bytes are chosen so that it comes out.
TEST_CASE("a batch whose checksum is zero is valid") {
  base::Buffer batch = sample();
  // The record ends in its header count, which must stay 0; the four bytes of value before it are
  // free.
  std::size_t at = batch.size() - 5;
  auto sum_with = [&](std::uint32_t free_bytes) {
    put(batch, at, free_bytes);
    return crc32c(base::Bytes(batch).subspan(21));
  };
  // The checksum is linear over GF(2) in those bits: collect pivots, then cancel what is left.
  std::uint32_t rest = sum_with(0);
  std::array<std::pair<std::uint32_t, std::uint32_t>, 32> pivots{};
  for (unsigned bit = 0; bit < 32; ++bit) {
    std::uint32_t choice = 1u << bit;
    std::uint32_t effect = sum_with(choice) ^ rest;
    for (unsigned top = 32; top-- > 0 && effect != 0;) {
      if ((effect >> top & 1) == 0) continue;
      if (pivots[top].first == 0) {
        pivots[top] = {effect, choice};
        break;
      }
      effect ^= pivots[top].first;
      choice ^= pivots[top].second;
    }
  }
  std::uint32_t solution = 0;
  for (unsigned top = 32; top-- > 0;) {
    if ((rest >> top & 1) == 0) continue;
    REQUIRE(pivots[top].first != 0);
    rest ^= pivots[top].first;
    solution ^= pivots[top].second;
  }
  REQUIRE(sum_with(solution) == 0);
  put(batch, 17, std::uint32_t{0});
  BatchIterator it(batch, CrcCheck::yes);
  REQUIRE(it.next());
  CHECK(it.info().crc == 0);
  CHECK(!it.next());
  CHECK(!it.stopped());
}

TEST_CASE("base offset and leader epoch change without the checksum") {
  BatchOptions options;
  options.last_offset = 5;  // a gap at the end
  base::Buffer batch = sample(options);
  set_base_offset(batch, 5'000'000'000);
  set_partition_leader_epoch(batch, 12);
  CHECK(verify_crc(batch).has_value());
  auto info = parse_batch(batch);
  CHECK(info->base_offset == 5'000'000'000);
  CHECK(info->last_offset == 5'000'000'005);
  CHECK(info->partition_leader_epoch == 12);
  set_partition_leader_epoch(batch, std::nullopt);
  CHECK(!parse_batch(batch)->partition_leader_epoch);
}

TEST_CASE("timestamps change with the checksum") {
  base::Buffer batch = sample();
  set_log_append_time(batch, 77);
  auto info = parse_batch(batch);
  CHECK(info->log_append_time());
  CHECK(info->max_timestamp == 77);
  CHECK(info->base_timestamp == 1000);
  CHECK(verify_crc(batch).has_value());
  set_max_timestamp(batch, 1000);
  CHECK(base::to_hex(batch) == base::to_hex(sample()));
}

TEST_CASE("walking reports the valid prefix and why it ends") {
  base::Buffer bytes, first = sample();
  for (int i = 0; i < 3; ++i) bytes.insert(bytes.end(), first.begin(), first.end());
  auto count = [](BatchIterator& it) {
    int n = 0;
    while (it.next()) {
      CHECK(it.batch().size() == it.info().size_bytes);
      ++n;
    }
    return n;
  };
  SECTION("an exact end") {
    BatchIterator it(bytes, CrcCheck::yes);
    CHECK(count(it) == 3);
    CHECK(!it.stopped());
    CHECK(it.valid_bytes() == bytes.size());
  }
  SECTION("an incomplete tail, at every byte") {
    for (std::size_t cut = 1; cut < first.size(); ++cut) {
      BatchIterator it(base::Bytes(bytes).first(bytes.size() - cut), CrcCheck::yes);
      CHECK(count(it) == 2);
      CHECK(it.stopped() == BatchErrc::incomplete);
      CHECK(it.valid_bytes() == 2 * first.size());
      CHECK(!it.next());
    }
  }
  SECTION("damage in the middle") {
    bytes[first.size() + 30] ^= std::byte{1};
    BatchIterator it(bytes, CrcCheck::yes);
    CHECK(count(it) == 1);
    CHECK(it.stopped() == BatchErrc::bad_crc);
    BatchIterator blind(bytes);
    CHECK(count(blind) == 3);
  }
  SECTION("zeros behind, as of a preallocated file") {
    bytes.resize(bytes.size() + 100);
    BatchIterator it(bytes, CrcCheck::yes);
    CHECK(count(it) == 3);
    CHECK(it.stopped() == BatchErrc::corrupt_length);
    CHECK(it.valid_bytes() == 3 * first.size());
  }
  SECTION("nothing") {
    BatchIterator it({});
    CHECK(count(it) == 0);
    CHECK(!it.stopped());
  }
}

// B20, B24: nothing is narrowed to 32 bits or to unsigned on the way.
TEST_CASE("far offsets and old timestamps keep their value") {
  BatchOptions options;
  options.base_offset = 3'000'000'000;
  BatchBuilder builder(options);
  builder.add(1'700'000'000'000, base::as_bytes("a"), std::nullopt);
  builder.add(1'700'000'000'000 - 60LL * 86'400'000, base::as_bytes("b"), std::nullopt);
  builder.add(-5, base::as_bytes("c"), std::nullopt);
  base::Buffer batch = std::move(builder).build();
  auto reader = RecordReader::open(batch);
  Record record;
  REQUIRE(reader->next(record));
  REQUIRE(reader->next(record));
  CHECK(record.offset == 3'000'000'001);
  CHECK(record.timestamp == 1'694'816'000'000);
  REQUIRE(reader->next(record));
  CHECK(record.timestamp == -5);
  CHECK(parse_batch(batch)->max_timestamp == 1'700'000'000'000);
}

TEST_CASE("bits that no one assigned are kept and do no harm") {
  base::Buffer batch = sample();
  put(batch, 21, std::int16_t{0x7f80});
  sum(batch);
  auto info = parse_batch(batch);
  REQUIRE(info.has_value());
  CHECK(info->attributes == 0x7f80);
  CHECK(info->codec() == Codec::none);
  CHECK(!info->control());
}
