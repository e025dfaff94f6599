#include <catch2/catch.hpp>

#include "protocol/batch.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/legacy.h"
#include "protocol/record.h"

using namespace protocol;

namespace {

// An entry as old producers wrote it.
base::Buffer entry(std::uint8_t magic, base::Offset offset, std::uint8_t attributes,
                   std::int64_t timestamp, std::optional<base::Bytes> value) {
  base::Buffer out(magic == 0 ? legacy_header_bytes_v0 : legacy_header_bytes_v1);
  auto put_length = [&out](std::int32_t length) {
    out.resize(out.size() + 4);
    store_be(out.data() + out.size() - 4, length);
  };
  put_length(-1);
  put_length(value ? static_cast<std::int32_t>(value->size()) : -1);
  if (value) out.insert(out.end(), value->begin(), value->end());
  store_be(out.data(), offset);
  store_be(out.data() + 8, static_cast<std::int32_t>(out.size() - 12));
  store_be(out.data() + 16, magic);
  store_be(out.data() + 17, attributes);
  if (magic == 1) store_be(out.data() + 18, timestamp);
  store_be(out.data() + 12, crc32(base::Bytes(out).subspan(16)));
  return out;
}

base::Buffer joined(std::initializer_list<base::Buffer> parts) {
  base::Buffer out;
  for (const base::Buffer& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

base::Buffer wrapper(std::uint8_t magic, base::Offset offset, std::uint8_t attributes,
                     const base::Buffer& inner, std::int64_t timestamp = 9) {
  base::Buffer packed = compress(static_cast<Codec>(attributes & 7), inner,
                                 magic == 0 ? Lz4Header::quirk : Lz4Header::standard);
  return entry(magic, offset, attributes, timestamp, packed);
}

std::vector<base::Offset> offsets(base::Bytes batch, base::Error* error = nullptr) {
  std::vector<base::Offset> out;
  auto reader = RecordReader::open(batch);
  base::Error e = reader.has_error() ? reader.error() : base::Error();
  if (!e) {
    Record record;
    while (reader->next(record)) out.push_back(record.offset);
    e = reader->error();
  }
  if (error != nullptr) *error = e;
  return out;
}

base::Error error_of(base::Bytes batch) {
  base::Error error;
  offsets(batch, &error);
  return error;
}

const base::Bytes text = base::as_bytes("value");

}  // namespace

TEST_CASE("headers of old entries") {
  base::Buffer v0 = entry(0, 5, 0xf8, 0, text);
  auto info = parse_batch(v0);
  REQUIRE(info.has_value());
  CHECK(verify_crc(v0).has_value());
  CHECK(info->magic == 0);
  CHECK(info->base_offset == 5);
  CHECK(info->last_offset == 5);
  CHECK(info->record_count == 1);
  CHECK(info->max_timestamp == no_timestamp);
  CHECK(!info->partition_leader_epoch);
  CHECK(!info->producer_id);
  // No bit of today's batches shows through.
  CHECK(!info->log_append_time());
  CHECK(!info->transactional());
  CHECK(!info->control());
  CHECK(!info->has_delete_horizon());

  base::Buffer v1 = entry(1, 6, 0xf8, 1234, text);
  info = parse_batch(v1);
  CHECK(info->max_timestamp == 1234);
  CHECK(info->log_append_time());
  CHECK(!info->control());
  for (std::size_t n = 0; n < v1.size(); ++n) {
    CHECK(parse_batch(base::Bytes(v1).first(n)).error() == BatchErrc::incomplete);
  }
  v1[30] ^= std::byte{1};
  CHECK(verify_crc(v1).error() == BatchErrc::bad_crc);
}

TEST_CASE("inner offsets are absolute in magic 0 and relative in magic 1") {
  for (std::uint8_t codec = 1; codec <= 3; ++codec) {
    INFO(int{codec});
    base::Buffer v0 =
        wrapper(0, 31, codec, joined({entry(0, 23, 0, 0, text), entry(0, 31, 0, 0, std::nullopt)}));
    CHECK(offsets(v0) == std::vector<base::Offset>{23, 31});
    CHECK(*first_offset(v0) == 23);
    CHECK(!parse_batch(v0)->base_offset_known());
    CHECK(!parse_batch(v0)->record_count);
    // A cleaned wrapper: relative offsets with holes, also in front.
    base::Buffer v1 =
        wrapper(1, 31, codec, joined({entry(1, 3, 0, 7, text), entry(1, 11, 0, 8, text)}));
    CHECK(offsets(v1) == std::vector<base::Offset>{23, 31});
    CHECK(*first_offset(v1) == 23);
    // Old producers that left the wrapper's offset at 0.
    base::Buffer zero =
        wrapper(1, 0, codec, joined({entry(1, 0, 0, 7, text), entry(1, 1, 0, 8, text)}));
    CHECK(offsets(zero) == std::vector<base::Offset>{0, 1});
  }
}

TEST_CASE("the wrapper's time counts for all when it is LogAppendTime") {
  base::Buffer batch =
      wrapper(1, 1, 0x09, joined({entry(1, 0, 0, 7, text), entry(1, 1, 0, 8, text)}), 99);
  auto reader = RecordReader::open(batch);
  Record record;
  REQUIRE(reader->next(record));
  CHECK(record.timestamp == 99);
  CHECK(!record.key);
  CHECK(base::as_text(*record.value) == "value");
}

TEST_CASE("wrappers that break the rules are refused") {
  base::Buffer plain = entry(1, 0, 0, 7, text);
  CHECK(error_of(entry(1, 0, 1, 7, std::nullopt)) == BatchErrc::corrupt_record);
  CHECK(error_of(entry(1, 0, 1, 7, text)) == CompressErrc::corrupt);
  CHECK(error_of(wrapper(1, 0, 1, {})) == BatchErrc::bad_count);
  CHECK(error_of(wrapper(1, 0, 1, entry(0, 0, 0, 0, text))) == BatchErrc::corrupt_record);
  CHECK(error_of(wrapper(1, 0, 1, wrapper(1, 0, 1, plain))) == BatchErrc::corrupt_record);
  base::Buffer torn = joined({plain, plain});
  torn.pop_back();
  CHECK(error_of(wrapper(1, 0, 1, torn)) == BatchErrc::incomplete);
  CHECK(error_of(entry(1, 0, 5, 7, text)) == CompressErrc::unknown_codec);
}

TEST_CASE("key and value fill an entry exactly") {
  base::Buffer batch = entry(1, 0, 0, 7, text);
  SECTION("value too long") {
    store_be(batch.data() + 30, std::int32_t{6});
  }
  SECTION("value too short") {
    store_be(batch.data() + 30, std::int32_t{4});
  }
  SECTION("length below null") {
    store_be(batch.data() + 30, std::int32_t{-2});
  }
  SECTION("key eats the value") {
    store_be(batch.data() + 26, std::int32_t{9});
  }
  SECTION("key of 2 GiB") {
    store_be(batch.data() + 26, std::int32_t{0x7fffffff});
  }
  CHECK(error_of(batch) == BatchErrc::corrupt_record);
}

TEST_CASE("an entry must have room for its fields") {
  base::Buffer v1 = entry(1, 0, 0, 7, std::nullopt);
  CHECK(parse_batch(v1).has_value());
  store_be(v1.data() + 8, std::int32_t{21});
  CHECK(parse_batch(v1).error() == BatchErrc::corrupt_length);
  base::Buffer v0 = entry(0, 0, 0, 0, std::nullopt);
  CHECK(parse_batch(v0).has_value());
  store_be(v0.data() + 8, std::int32_t{13});
  CHECK(parse_batch(v0).error() == BatchErrc::corrupt_length);
}
