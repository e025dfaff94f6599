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
  const ProduceShape shape = look_at_produce(bytes, true);
  if (shape.error != ProduceError::none) return shape.error;
  const ProduceVerdict verdict = check_produce(bytes.first(shape.size_bytes), rules);
  CHECK(verdict.message.empty() == verdict.faults.empty());
  if (!verdict.faults.empty()) CHECK(verdict.error != ProduceError::none);
  return verdict.error;
}

std::vector<std::int32_t> indexes(const ProduceVerdict& verdict) {
  std::vector<std::int32_t> all;
  for (const RecordFault& fault : verdict.faults) all.push_back(fault.index);
  return all;
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

TEST_CASE("what is no batch spoils the request, what lies behind the batch does not always") {
  const base::Buffer one = sample();
  base::Buffer bent = one;
  bent[16] = std::byte{3};
  CHECK(look_at_produce(bent, true).not_a_batch);
  bent = one;
  store_be(bent.data() + 8, std::int32_t{13});
  CHECK(look_at_produce(bent, true).not_a_batch);
  CHECK(!look_at_produce(base::Bytes(one).first(11), true).not_a_batch);

  base::Buffer more = one;
  more.insert(more.end(), 11, std::byte{0});  // torn: less than a size field
  const ProduceShape torn = look_at_produce(more, true);
  CHECK(torn.error == ProduceError::none);
  CHECK(torn.size_bytes == one.size());
  more.insert(more.end(), 9, std::byte{0});  // a size of 0
  CHECK(look_at_produce(more, true).error == ProduceError::corrupt_message);
  CHECK(!look_at_produce(more, true).not_a_batch);

  BatchOptions options;
  options.transactional = true;
  CHECK(look_at_produce(sample(options), true).transactional);
  CHECK(!look_at_produce(one, true).transactional);
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
    CHECK(error == ProduceError::corrupt_message);
  }
  set_base_offset(batch, 1);
  CHECK(verdict_of(batch) == ProduceError::invalid_record);
}

TEST_CASE("who writes with a producer id says a sequence, too") {
  BatchOptions options;
  options.producer_id = 1;
  options.producer_epoch = base::ProducerEpoch{0};
  CHECK(verdict_of(sample(options)) == ProduceError::invalid_record);
  options.base_sequence = 0;
  CHECK(verdict_of(sample(options)) == ProduceError::none);
  options.producer_epoch.reset();  // Kafka takes that, with any sequence
  CHECK(verdict_of(sample(options)) == ProduceError::none);
  options.control = true;
  CHECK(verdict_of(sample(options)) == ProduceError::invalid_record);
}

TEST_CASE("each refused record is named, and the worse fault gives the number") {
  constexpr std::int64_t now = 1'000'000;
  ProduceRules rules;
  rules.now_ms = now;
  rules.timestamp_after_max_ms = 1000;
  const auto with_times = [](std::vector<std::int64_t> times, Codec codec, bool keys) {
    BatchOptions options;
    options.codec = codec;
    BatchBuilder builder(options);
    for (std::size_t i = 0; i < times.size(); ++i)
      builder.add(times[i], keys && i != 1 ? std::optional(base::as_bytes("k")) : std::nullopt,
                  base::as_bytes("v"));
    return std::move(builder).build();
  };
  for (const Codec codec : {Codec::none, Codec::gzip}) {
    const base::Buffer batch = with_times({now, now + 1001, now + 1000, now + 5000}, codec, true);
    ProduceVerdict verdict = check_produce(batch, rules);
    CHECK(verdict.error == ProduceError::invalid_timestamp);
    CHECK(indexes(verdict) == std::vector{1, 3});
    rules.compacted = true;  // record 1 now lacks its key first of all
    verdict = check_produce(batch, rules);
    CHECK(verdict.error == ProduceError::invalid_timestamp);
    CHECK(indexes(verdict) == std::vector{1, 3});
    verdict = check_produce(with_times({1, 2, 3}, codec, true), rules);
    CHECK(verdict.error == ProduceError::invalid_record);
    CHECK(indexes(verdict) == std::vector{1});
    rules.compacted = false;
    rules.timestamp_before_max_ms = 100;  // only the records can tell
    CHECK(indexes(check_produce(with_times({now, now - 101, now - 100}, codec, true), rules)) ==
          std::vector{1});
    rules.timestamp_before_max_ms.reset();
  }
  // No timestamp is in no bounds.
  CHECK(check_produce(with_times({no_timestamp}, Codec::none, false), rules).error ==
        ProduceError::none);
}

TEST_CASE("a batch is not larger than a segment") {
  const base::Buffer batch = sample();
  ProduceRules rules;
  rules.segment_bytes = static_cast<std::uint32_t>(batch.size());
  base::Buffer copy = batch;
  CHECK(prepare_produce(copy, check_produce(copy, rules), rules).error == ProduceError::none);
  rules.segment_bytes -= 1;
  CHECK(prepare_produce(copy, check_produce(copy, rules), rules).error ==
        ProduceError::record_list_too_large);
}

TEST_CASE("codecs") {
  BatchOptions options;
  options.codec = Codec::zstd;
  CHECK(verdict_of(sample(options)) == ProduceError::none);
  CHECK(look_at_produce(sample(options), false).error ==
        ProduceError::unsupported_compression_type);
  for (std::int16_t codec = 5; codec <= 7; ++codec) {
    base::Buffer batch = sample();
    store_be(batch.data() + 21, codec);
    sum(batch);
    CHECK(verdict_of(batch) == ProduceError::unknown_server_error);
  }
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
    const PreparedBatch prepared = prepare_produce(batch, verdict, {});
    REQUIRE(prepared.rebuilt);
    CHECK(base::to_hex(*prepared.rebuilt) == base::to_hex(good));
  }
  SECTION("largest timestamp") {
    set_max_timestamp(batch, 5);
    ProduceVerdict verdict = check_produce(batch, {});
    CHECK(verdict.error == ProduceError::none);
    CHECK(!verdict.rebuild);
    CHECK(verdict.max_timestamp == 2000);
    const PreparedBatch prepared = prepare_produce(batch, verdict, {});
    CHECK(prepared.error == ProduceError::none);
    CHECK(!prepared.rebuilt);
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
  CHECK(prepare_produce(batch, verdict, rules).error == ProduceError::message_too_large);
}
