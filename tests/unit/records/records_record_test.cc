#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

#include "protocol/base/random.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/record.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;

namespace {

// A batch of `count` declared records whose record region is `region`.
base::Buffer batch_of(base::Bytes region, std::int32_t count, Codec codec = Codec::none) {
  BatchOptions options;
  options.last_offset = 9;
  base::Buffer batch = BatchBuilder(options).build();
  batch.insert(batch.end(), region.begin(), region.end());
  store_be(batch.data() + 8, static_cast<std::int32_t>(batch.size() - 12));
  store_be(batch.data() + 21, static_cast<std::int16_t>(codec));
  store_be(batch.data() + 57, count);
  store_be(batch.data() + 17, crc32c(base::Bytes(batch).subspan(21)));
  return batch;
}

base::Error read_all(base::Bytes batch, int* count = nullptr,
                     OffsetRule rule = OffsetRule::rising) {
  auto reader = RecordReader::open(batch, 0, rule);
  if (reader.has_error()) return reader.error();
  Record record;
  int n = 0;
  while (reader->next(record)) ++n;
  if (count != nullptr) *count = n;
  CHECK(!reader->next(record));
  return reader->error();
}

base::Error read_region(const char* hex, std::int32_t count) {
  return read_all(batch_of(record_vectors::from_hex(hex), count));
}

}  // namespace

TEST_CASE("records and the batch's count bear each other out") {
  // length 6, attributes, timestamp +0, offset +0, null key, null value, no headers
  CHECK(
      !read_region("0c0000000101"
                   "00",
                   1));
  CHECK(read_region("0c000000010100", 2) == BatchErrc::bad_count);
  CHECK(read_region("0c000000010100"
                    "0c000002010100",
                    1) == BatchErrc::bad_count);
  CHECK(
      !read_region("0c000000010100"
                   "0c000002010100",
                   2));
  CHECK(!read_region("", 0));
  CHECK(read_region("00", 0) == BatchErrc::bad_count);
  CHECK(read_region("", 1) == BatchErrc::bad_count);
}

TEST_CASE("records of every size are read as they were written") {
  // Around the limits of varints of one, two, three and more bytes.
  constexpr std::int64_t times[] = {
      0, 1, -1, 63, 64, 8191, 8192, 1048575, 1048576, 134217727, 1073741824, 1LL << 40, -1048577};
  constexpr int sizes[] = {-1, 0, 1, 2, 59, 63, 64, 100, 8100, 8191, 8192, 1048576};
  constexpr std::int64_t base = 1'000'000'000'000;
  struct Expected {
    std::int64_t timestamp;
    std::optional<base::Buffer> key, value;
    int headers;
  };
  base::Random random(7);
  const auto bytes_of = [&random](int size) -> std::optional<base::Buffer> {
    if (size < 0) return std::nullopt;
    return base::Buffer(static_cast<std::size_t>(size), static_cast<std::byte>(random.below(256)));
  };
  const auto view = [](const std::optional<base::Buffer>& bytes) -> std::optional<base::Bytes> {
    if (!bytes) return std::nullopt;
    return base::Bytes(*bytes);
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<Expected> expected;
    BatchBuilder builder{BatchOptions{}};
    for (int i = 0; i < (round % 10 == 0 ? 200 : 20); ++i) {
      const bool large = random.chance(2);
      const auto size = [&] { return sizes[random.below(large ? std::size(sizes) : 8)]; };
      expected.push_back({base + times[random.below(std::size(times))], bytes_of(size()),
                          bytes_of(size()), static_cast<int>(random.chance(20))});
      if (i == 0) expected.back().timestamp = base;
      const Expected& one = expected.back();
      const std::vector<RecordHeader> headers(static_cast<std::size_t>(one.headers),
                                              RecordHeader{"h", view(one.value)});
      builder.add(one.timestamp, view(one.key), view(one.value), headers);
    }
    const base::Buffer batch = std::move(builder).build();
    auto reader = RecordReader::open(batch);
    REQUIRE(reader.has_value());
    Record record;
    std::size_t at = 0;
    for (; reader->next(record); ++at) {
      CAPTURE(round, at);
      REQUIRE(at < expected.size());
      const Expected& one = expected[at];
      REQUIRE(record.offset == static_cast<base::Offset>(at));
      REQUIRE(record.timestamp == one.timestamp);
      REQUIRE(record.key.has_value() == one.key.has_value());
      if (one.key) REQUIRE(std::ranges::equal(*record.key, *one.key));
      REQUIRE(record.value.has_value() == one.value.has_value());
      if (one.value) REQUIRE(std::ranges::equal(*record.value, *one.value));
      REQUIRE(record.headers.size() == static_cast<std::size_t>(one.headers));
    }
    CHECK(!reader->error());
    CHECK(at == expected.size());
  }
}

TEST_CASE("damaged records are refused") {
  auto corrupt = [](const char* hex) {
    INFO(hex);
    return read_region(hex, 1) == BatchErrc::corrupt_record;
  };
  CHECK(corrupt("0a0000000101"));            // too short for the header count
  CHECK(corrupt("0e00000001010000"));        // a byte too many
  CHECK(corrupt("0d000000010100"));          // negative length
  CHECK(corrupt("7e000000010100"));          // longer than the region
  CHECK(corrupt("ffffffff1f000000010100"));  // a varint beyond 32 bits' length
  CHECK(corrupt("ffffffffff"));              // a varint without end
  CHECK(corrupt("0c000000030100"));          // key length -2
  CHECK(corrupt("0c000000010300"));          // value length -2
  CHECK(corrupt("0c000000010101"));          // header count -1
  CHECK(
      corrupt("1400000001"
              "01feffffff0f"));  // a header count that no bytes back
  CHECK(
      corrupt("1000000001010201"
              "01"));  // a header with a null key
  CHECK(
      corrupt("1000000001010202"
              "61"));                        // a header without a value
  CHECK(corrupt("0c000000020100"));          // a key longer than the record
  CHECK(corrupt("12000000fcffffff0f"));      // a key of 2 GiB
  CHECK(corrupt("0c00ffffffffffffffffff"));  // a timestamp without end
}

TEST_CASE("record offsets rise within the declared range, unless taken as they come") {
  const char* same =
      "0c000002010100"
      "0c000002010100";
  const char* beyond = "0c000014010100";  // +10, the batch ends at +9
  const char* negative = "0c000001010100";
  for (const char* hex : {same, beyond, negative}) {
    INFO(hex);
    std::int32_t count = hex == same ? 2 : 1;
    base::Buffer batch = batch_of(record_vectors::from_hex(hex), count);
    CHECK(read_all(batch) == BatchErrc::bad_offset);
    int n = 0;
    CHECK(!read_all(batch, &n, OffsetRule::any));
    CHECK(n == count);
  }
}

TEST_CASE("sums of foreign numbers do not overflow") {
  // timestamp delta of the smallest 64-bit number, offset delta of the smallest 32-bit one
  base::Buffer batch = batch_of(record_vectors::from_hex("2c"
                                                         "00"
                                                         "ffffffffffffffffff01"
                                                         "ffffffff0f"
                                                         "01"
                                                         "01"
                                                         "00"
                                                         "0000"),
                                1);
  CHECK(read_all(batch, nullptr, OffsetRule::any) == BatchErrc::corrupt_record);
  batch = batch_of(record_vectors::from_hex("26"
                                            "00"
                                            "ffffffffffffffffff01"
                                            "ffffffff0f"
                                            "01"
                                            "01"
                                            "00"),
                   1);
  store_be(batch.data() + 27, std::numeric_limits<std::int64_t>::min());
  int n = 0;
  CHECK(!read_all(batch, &n, OffsetRule::any));
  CHECK(n == 1);
}

TEST_CASE("a moved reader goes on") {
  BatchOptions options;
  options.codec = Codec::zstd;
  BatchBuilder builder(options);
  for (int i = 0; i < 10; ++i) builder.add(i, base::as_bytes("key"), base::as_bytes("value"));
  base::Buffer batch = std::move(builder).build();
  auto opened = RecordReader::open(batch);
  REQUIRE(opened.has_value());
  Record record;
  REQUIRE(opened->next(record));
  RecordReader moved = std::move(*opened);
  CHECK(base::as_text(*record.key) == "key");
  int n = 1;
  while (moved.next(record)) ++n;
  CHECK(n == 10);
  CHECK(!moved.error());
}

TEST_CASE("decompression stops at the caller's budget") {
  BatchOptions options;
  options.codec = Codec::gzip;
  BatchBuilder builder(options);
  builder.add(0, std::nullopt, base::Bytes(base::Buffer(100'000)));
  base::Buffer batch = std::move(builder).build();
  CHECK(RecordReader::open(batch).has_value());
  CHECK(RecordReader::open(batch, 50'000).error() == CompressErrc::over_budget);
}

TEST_CASE("a codec that nobody knows is an error of the reading, not of the batch") {
  base::Buffer batch =
      batch_of(record_vectors::from_hex("0c000000010100"), 1, static_cast<Codec>(6));
  CHECK(parse_batch(batch).has_value());
  CHECK(RecordReader::open(batch).error() == CompressErrc::unknown_codec);
}

// B14: what a user writes as key is a key, whatever it looks like.
TEST_CASE("a user key that looks like a marker is none") {
  BatchBuilder builder({});
  builder.add(0, base::Bytes(record_vectors::from_hex("00000001")), std::nullopt);
  base::Buffer batch = std::move(builder).build();
  auto control = read_control(batch);
  REQUIRE(control.has_value());
  CHECK(!*control);
}

TEST_CASE("control records") {
  SECTION("markers") {
    base::Buffer batch = end_transaction_marker({9, 2, 33, TransactionResult::commit}, 5);
    auto info = parse_batch(batch);
    CHECK(info->control());
    CHECK(info->transactional());
    CHECK(info->producer_id == 9);
    CHECK(info->producer_epoch == 2);
    CHECK(!info->base_sequence);
    auto control = read_control(batch);
    REQUIRE((control.has_value() && control->has_value()));
    CHECK((*control)->type == ControlType::commit);
    CHECK((*control)->coordinator_epoch == 33);
  }
  SECTION("the reset of producer ids") {
    base::Buffer batch = producer_id_reset(5);
    auto info = parse_batch(batch);
    CHECK(info->control());
    CHECK(!info->transactional());
    CHECK(!info->producer_id);
    CHECK((*read_control(batch))->type == ControlType::producer_id_reset);
    CHECK(!(*read_control(batch))->coordinator_epoch);
    auto reader = RecordReader::open(batch);
    Record record;
    REQUIRE(reader->next(record));
    CHECK(base::to_hex(*record.key) == "00000007");
    CHECK(base::to_hex(*record.value) == "000000");
  }
  SECTION("too short") {
    auto parsed = [](const char* key, const char* value) {
      base::Buffer k = record_vectors::from_hex(key), v = record_vectors::from_hex(value);
      Record record;
      record.key = k;
      record.value = v;
      return parse_control(record);
    };
    CHECK(parsed("000000", "").error() == BatchErrc::bad_control);
    CHECK(parsed("00000000", "0000000000").error() == BatchErrc::bad_control);
    CHECK(parsed("00000000", "000000000011").has_value());
    CHECK(parsed("ffff0000", "000000000011").error() == BatchErrc::bad_control);
    CHECK(parsed("00010000", "00010000001122").has_value());  // a later version only adds
    CHECK(static_cast<int>(parsed("00000bad", "")->type) == 0xbad);
    CHECK(parse_control(Record{}).error() == BatchErrc::bad_control);
  }
  SECTION("emptied by compaction") {
    BatchOptions options;
    options.control = true;
    options.last_offset = 0;
    auto control = read_control(BatchBuilder(options).build());
    REQUIRE(control.has_value());
    CHECK(!*control);
  }
}

// E36, B18: the first record is not where the batch begins, and an emptied batch still has its
// range.
TEST_CASE("the first offset is that of the first record left") {
  BatchOptions options;
  options.base_offset = 20;
  options.last_offset = 29;
  BatchBuilder builder(options);
  builder.add_at(24, 0, std::nullopt, std::nullopt);
  base::Buffer batch = std::move(builder).build();
  CHECK(*first_offset(batch) == 24);
  base::Buffer emptied = BatchBuilder(options).build();
  CHECK(*first_offset(emptied) == 20);
  CHECK(parse_batch(emptied)->next_offset() == 30);
  CHECK(parse_batch(emptied)->record_count == 0);
}
