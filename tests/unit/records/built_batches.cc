// Prints batches of our own making and what they hold, in the words of
// tests/oracle/RecordVectors.java, so that Kafka's classes can be asked to read the same from them.
#include <fmt/format.h>

#include <limits>

#include "protocol/batch.h"
#include "protocol/batch_builder.h"
#include "protocol/produce_check.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;

namespace {

void print(const std::string& name, base::Bytes bytes) {
  fmt::print("set {}\nbytes {}\n{}", name, base::to_hex(bytes), record_vectors::describe(bytes));
}

BatchOptions options_with(Codec codec) {
  BatchOptions options;
  options.codec = codec;
  options.base_offset = 1'000'000;
  options.partition_leader_epoch = 3;
  return options;
}

base::Buffer large_value(std::size_t size) {
  base::Buffer value(size);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    // Noise and text in turns, so that codecs meet blocks that do not shrink.
    value[i] = i / 1000 % 3 == 0 ? static_cast<std::byte>(state >> 24) : std::byte{'t'};
  }
  return value;
}

void print_codec(Codec codec) {
  std::string suffix = std::string("-") + std::string(name(codec));
  BatchBuilder plain(options_with(codec));
  RecordHeader headers[] = {{"h", base::as_bytes("v")}, {"", std::nullopt}, {"h", base::Bytes()}};
  plain.add(10, base::as_bytes("key"), base::as_bytes("value"), headers);
  plain.add(5, std::nullopt, std::nullopt);
  plain.add(no_timestamp, base::Bytes(), base::Bytes());
  plain.add_at(1'000'500, std::numeric_limits<std::int64_t>::max(), base::as_bytes("far"),
               std::nullopt);
  print("plain" + suffix, std::move(plain).build());

  BatchBuilder large(options_with(codec));
  for (std::size_t size : {1u, 32'767u, 32'768u, 65'536u, 200'000u}) {
    large.add(1, std::nullopt, large_value(size));
  }
  print("large" + suffix, std::move(large).build());

  BatchOptions transactional = options_with(codec);
  transactional.producer_id = std::numeric_limits<std::int64_t>::max();
  transactional.producer_epoch = std::numeric_limits<std::int16_t>::max();
  transactional.base_sequence = std::numeric_limits<std::int32_t>::max();
  transactional.transactional = true;
  transactional.log_append_time_ms = 4711;
  BatchBuilder transaction(transactional);
  transaction.add(1, base::as_bytes("a"), base::as_bytes("b"));
  transaction.add(2, base::as_bytes("c"), base::as_bytes("d"));
  base::Buffer batch = std::move(transaction).build();
  print("transactional" + suffix, batch);
  set_max_timestamp(batch, 2);
  set_base_offset(batch, 7);
  set_partition_leader_epoch(batch, 9);
  print("patched" + suffix, batch);

  BatchOptions holes = options_with(codec);
  holes.last_offset = 1'000'009;
  holes.delete_horizon_ms = 123'456;
  BatchBuilder cleaned(holes);
  cleaned.add_at(1'000'004, 100, base::as_bytes("tombstone"), std::nullopt);
  print("cleaned" + suffix, std::move(cleaned).build());
  for (Codec other : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    auto rebuilt = rebuild_batch(batch, other);
    if (rebuilt.has_value()) print("rebuilt-" + std::string(name(other)) + suffix, *rebuilt);
  }
}

}  // namespace

int main() {
  for (Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    print_codec(codec);
  }
  BatchOptions emptied = options_with(Codec::none);
  emptied.last_offset = 1'000'009;
  emptied.max_timestamp_ms = 77;
  print("emptied", BatchBuilder(emptied).build());
  print("abort", end_transaction_marker({4711, 3, 17, TransactionResult::abort}, 99));
  print("commit", end_transaction_marker({4711, 3, 17, TransactionResult::commit}, 99));
  print("producer-id-reset", producer_id_reset(99));
}
