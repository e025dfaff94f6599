#include <catch2/catch.hpp>

#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/produce_check.h"
#include "protocol/record.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;

namespace {

base::Buffer sample(BatchOptions options = {}) {
  BatchBuilder builder(options);
  builder.add(1000, base::as_bytes("a"), base::as_bytes("1"));
  builder.add(2000, base::as_bytes("b"), base::as_bytes("2"));
  return std::move(builder).build();
}

void sum(base::Buffer& batch) {
  store_be(batch.data() + 17, crc32c(base::Bytes(batch).subspan(21)));
}

ProduceError verdict_of(base::Bytes bytes, const ProduceRules& rules = {}) {
  ProduceVerdict verdict = check_produce(bytes, rules);
  CHECK((verdict.error == ProduceError::none) == (*verdict.reason == '\0'));
  return verdict.error;
}

}  // namespace

TEST_CASE("exactly one whole batch of magic 2") {
  base::Buffer one = sample();
  CHECK(verdict_of(one) == ProduceError::none);
  CHECK(verdict_of({}) == ProduceError::invalid_record);
  CHECK(verdict_of(base::Bytes(one).first(one.size() - 1)) == ProduceError::invalid_record);
  base::Buffer two = one;
  two.insert(two.end(), one.begin(), one.end());
  CHECK(verdict_of(two) == ProduceError::invalid_record);
  for (const auto& set : record_vectors::golden().sets) {
    if (set.name == "magic0-none-one" || set.name == "magic1-none-one") {
      CHECK(verdict_of(set.bytes) == ProduceError::invalid_record);
    }
  }
  base::Buffer alien = one;
  alien[16] = std::byte{3};
  CHECK(verdict_of(alien) == ProduceError::corrupt_message);
}

TEST_CASE("damage, size and base offset") {
  base::Buffer batch = sample();
  ProduceRules rules;
  rules.max_message_bytes = static_cast<std::uint32_t>(batch.size());
  CHECK(verdict_of(batch, rules) == ProduceError::none);
  rules.max_message_bytes -= 1;
  CHECK(verdict_of(batch, rules) == ProduceError::message_too_large);
  for (std::size_t at = 17; at < batch.size(); ++at) {
    base::Buffer bent = batch;
    bent[at] ^= std::byte{0x40};
    INFO(at);
    ProduceError error = verdict_of(bent);
    CHECK((error == ProduceError::corrupt_message || error == ProduceError::invalid_record));
  }
  set_base_offset(batch, 1);
  CHECK(verdict_of(batch) == ProduceError::invalid_record);
}

TEST_CASE("who writes with a producer id says all three numbers") {
  BatchOptions options;
  options.producer_id = 1;
  CHECK(verdict_of(sample(options)) == ProduceError::invalid_record);
  options.base_sequence = 0;
  CHECK(verdict_of(sample(options)) == ProduceError::invalid_record);
  options.producer_epoch = base::ProducerEpoch{0};
  CHECK(verdict_of(sample(options)) == ProduceError::none);
  BatchOptions orphan;
  orphan.transactional = true;
  CHECK(verdict_of(sample(orphan)) == ProduceError::invalid_record);
}

TEST_CASE("codecs") {
  BatchOptions options;
  options.codec = Codec::zstd;
  ProduceRules rules;
  CHECK(verdict_of(sample(options), rules) == ProduceError::none);
  rules.zstd_allowed = false;
  CHECK(verdict_of(sample(options), rules) == ProduceError::unsupported_compression_type);
  base::Buffer batch = sample();
  store_be(batch.data() + 21, std::int16_t{5});
  sum(batch);
  CHECK(verdict_of(batch) == ProduceError::unsupported_compression_type);
}

TEST_CASE("raw snappy is taken as well as framed") {
  base::Buffer plain = sample();
  base::Bytes region = base::Bytes(plain).subspan(batch_header_bytes);
  base::Buffer batch(plain.begin(), plain.begin() + batch_header_bytes);
  // One literal: the length as a varint, the tag with the length less one, the bytes.
  batch.push_back(static_cast<std::byte>(region.size()));
  batch.push_back(static_cast<std::byte>((region.size() - 1) << 2));
  batch.insert(batch.end(), region.begin(), region.end());
  store_be(batch.data() + 8, static_cast<std::int32_t>(batch.size() - 12));
  store_be(batch.data() + 21, std::int16_t{2});
  sum(batch);
  ProduceRules rules;
  rules.compacted = true;  // so that it is really read
  CHECK(verdict_of(batch, rules) == ProduceError::none);
}

TEST_CASE("compressed records are opened only where a policy needs it") {
  BatchOptions options;
  options.codec = Codec::gzip;
  base::Buffer batch = sample(options);
  batch[batch_header_bytes + 12] ^= std::byte{0xff};
  sum(batch);
  ProduceRules rules;
  CHECK(verdict_of(batch, rules) == ProduceError::none);
  rules.compacted = true;
  CHECK(verdict_of(batch, rules) != ProduceError::none);
  rules.compacted = false;
  rules.compression_type = Codec::gzip;
  CHECK(verdict_of(batch, rules) == ProduceError::none);
  rules.compression_type = Codec::lz4;
  CHECK(verdict_of(batch, rules) != ProduceError::none);
}

TEST_CASE("wrong record offsets make the batch be rebuilt, wrong times be patched") {
  base::Buffer good = sample(), batch = good;
  SECTION("offsets") {
    // The second record: length, attributes, timestamp of two bytes, then its offset.
    std::size_t at = batch.size() - 6;
    REQUIRE(batch[at] == std::byte{2});
    batch[at] = std::byte{0};
    sum(batch);
    ProduceVerdict verdict = check_produce(batch, {});
    CHECK(verdict.error == ProduceError::none);
    CHECK(verdict.rebuild == Codec::none);
    auto rebuilt = prepare_produce(batch, verdict, {});
    REQUIRE((rebuilt.has_value() && rebuilt->has_value()));
    CHECK(base::to_hex(**rebuilt) == base::to_hex(good));
  }
  SECTION("largest timestamp") {
    set_max_timestamp(batch, 5);
    ProduceVerdict verdict = check_produce(batch, {});
    CHECK(verdict.error == ProduceError::none);
    CHECK(!verdict.rebuild);
    CHECK(verdict.max_timestamp == 2000);
    auto rebuilt = prepare_produce(batch, verdict, {});
    REQUIRE(rebuilt.has_value());
    CHECK(!*rebuilt);
    CHECK(base::to_hex(batch) == base::to_hex(good));
  }
  SECTION("nothing wrong") {
    ProduceVerdict verdict = check_produce(batch, {});
    CHECK(!verdict.rebuild);
    CHECK(!verdict.max_timestamp);
  }
}

TEST_CASE("a rebuilt batch must still fit") {
  BatchOptions options;
  options.codec = Codec::gzip;
  BatchBuilder builder(options);
  builder.add(1, std::nullopt, base::Bytes(base::Buffer(10'000)));
  base::Buffer batch = std::move(builder).build();
  ProduceRules rules;
  rules.compression_type = Codec::none;
  rules.max_message_bytes = 5'000;
  ProduceVerdict verdict = check_produce(batch, rules);
  REQUIRE(verdict.error == ProduceError::none);
  CHECK(prepare_produce(batch, verdict, rules).error() == BatchErrc::too_large);
}
