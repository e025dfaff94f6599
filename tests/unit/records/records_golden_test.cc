// Our code against what Kafka's own classes wrote: tests/golden/records.
#include <catch2/catch.hpp>

#include "protocol/batch.h"
#include "protocol/batch_builder.h"
#include "protocol/produce_check.h"
#include "protocol/record.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;
using record_vectors::golden;

namespace {

BatchOptions options_of(const BatchInfo& info) {
  BatchOptions options;
  options.base_offset = info.base_offset;
  options.last_offset = info.last_offset;
  options.partition_leader_epoch = info.partition_leader_epoch;
  options.codec = info.codec();
  if (info.log_append_time()) options.log_append_time_ms = info.max_timestamp;
  options.max_timestamp_ms = info.max_timestamp;
  options.producer_id = info.producer_id;
  options.producer_epoch = info.producer_epoch;
  options.base_sequence = info.base_sequence;
  options.transactional = info.transactional();
  options.control = info.control();
  if (info.has_delete_horizon()) options.delete_horizon_ms = info.base_timestamp;
  return options;
}

// The batch made anew from what was read from it.
base::Buffer built_again(base::Bytes batch) {
  auto reader = RecordReader::open(batch);
  REQUIRE(reader.has_value());
  BatchBuilder builder(options_of(reader->info()));
  Record record;
  while (reader->next(record)) {
    // LogAppendTime hides the records' own times; in the vectors all are the first one's.
    std::int64_t t =
        reader->info().log_append_time() ? reader->info().base_timestamp : record.timestamp;
    builder.add_at(record.offset, t, record.key, record.value, record.headers);
  }
  REQUIRE(!reader->error());
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("every batch that Kafka's classes write is read as they read it") {
  REQUIRE(golden().sets.size() >= 100);
  for (const auto& set : golden().sets) {
    INFO(set.name);
    CHECK(record_vectors::describe(set.bytes) == set.content);
  }
}

TEST_CASE("the builder's uncompressed batches are Kafka's, byte for byte") {
  int compared = 0;
  for (const auto& set : golden().sets) {
    BatchIterator it(set.bytes);
    while (it.next()) {
      if (it.info().magic != 2 || it.info().codec() != Codec::none) continue;
      INFO(set.name);
      CHECK(base::to_hex(built_again(it.batch())) == base::to_hex(it.batch()));
      ++compared;
    }
  }
  CHECK(compared >= 25);
}

TEST_CASE("the builder's compressed batches read like Kafka's") {
  int compared = 0;
  for (const auto& set : golden().sets) {
    BatchIterator it(set.bytes);
    while (it.next()) {
      if (it.info().magic != 2 || it.info().codec() == Codec::none) continue;
      INFO(set.name);
      base::Buffer again = built_again(it.batch());
      auto text = [](base::Bytes batch) {
        std::string all = record_vectors::describe(batch);
        return all.substr(all.find('\n'));
      };
      CHECK(text(again) == text(it.batch()));
      ++compared;
    }
  }
  CHECK(compared >= 25);
}

TEST_CASE("markers are what Kafka's classes write") {
  int compared = 0;
  for (const auto& set : golden().sets) {
    if (set.name != "marker-ABORT" && set.name != "marker-COMMIT") continue;
    EndTransactionMarker marker{4711, 3, 17, TransactionResult::abort};
    if (set.name == "marker-COMMIT") marker.result = TransactionResult::commit;
    CHECK(base::to_hex(end_transaction_marker(marker, 1'600'000'000'000)) ==
          base::to_hex(set.bytes));
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("produced batches are refused and patched as by a Kafka leader") {
  REQUIRE(golden().produced.size() >= 90);
  for (const auto& c : golden().produced) {
    INFO(c.name);
    base::Buffer batch = c.bytes;
    const ProduceShape shape = look_at_produce(batch, true);
    ProduceVerdict verdict;
    verdict.error = shape.error;
    if (shape.error == ProduceError::none) {
      REQUIRE(shape.size_bytes == batch.size());
      verdict = check_produce(batch, c.rules);
    }
    CHECK(static_cast<int>(verdict.error) == c.error);
    if (verdict.error != ProduceError::none || c.error != 0) continue;
    const PreparedBatch prepared = prepare_produce(batch, verdict, c.rules);
    REQUIRE(prepared.error == ProduceError::none);
    if (prepared.rebuilt) batch = *prepared.rebuilt;
    set_base_offset(batch, 100);
    set_partition_leader_epoch(batch, 5);
    CHECK(verify_crc(batch).has_value());
    auto info = parse_batch(batch);
    REQUIRE(info.has_value());
    if (prepared.rebuilt && info->codec() != Codec::none) {
      // Compressors differ: compare what is inside, and the header but size and checksum.
      CHECK(parse_batch(c.accepted)->attributes == info->attributes);
      CHECK(base::to_hex(base::Bytes(batch).subspan(21, 40)) ==
            base::to_hex(base::Bytes(c.accepted).subspan(21, 40)));
      auto records = [](base::Bytes b) {
        std::string all = record_vectors::describe(b);
        return all.substr(all.find('\n'));
      };
      CHECK(records(batch) == records(c.accepted));
    } else {
      CHECK(base::to_hex(batch) == base::to_hex(c.accepted));
    }
  }
}
