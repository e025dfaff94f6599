// Kafka's file formats, byte by byte.
#include <array>

#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "storage/checkpoint.h"
#include "storage/epoch_cache.h"
#include "storage/error.h"
#include "storage/index.h"
#include "storage/log_state.h"
#include "storage/producer_state.h"
#include "storage/txn_index.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using namespace storage;

namespace {

std::string hex(FaultFileSystem& files, const std::string& path) {
  return base::to_hex(files.content(path));
}

std::string checked(const std::string& lines) {
  const std::uint32_t crc = protocol::crc32c(base::as_bytes(lines));
  std::array<std::byte, 4> bytes;
  protocol::store_be(bytes.data(), crc);
  return lines + "checksum " + base::to_hex(bytes) + "\n";
}

}  // namespace

TEST_CASE("offset index: relative last offset and position") {
  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  OffsetIndex index(files, "/d/x.index", 1000);
  REQUIRE(index.create());
  index.append(1009, 4200);
  index.append(0x7fffffff + base::Offset{1000}, 0x10000);
  CHECK(index.lookup(1008).value() == 0);
  CHECK(index.lookup(1009).value() == 4200);
  CHECK(index.lookup(5'000'000'000).value() == 0x10000);
  REQUIRE(index.entries().flush());
  CHECK(hex(files, "/d/x.index") ==
        "0000000900001068"
        "7fffffff00010000");
  CHECK(index.lookup(1009).value() == 4200);
  REQUIRE(index.truncate_to(2000));
  CHECK(hex(files, "/d/x.index") == "0000000900001068");
  CHECK(index.last()->offset == 1009);
  OffsetIndex again(files, "/d/x.index", 1000);
  REQUIRE(again.open(4201));
  CHECK(again.last()->position == 4200);
  CHECK(again.open(4200).error() == StorageErrc::corrupt_file);  // points behind the log
  files.content("/d/x.index").push_back(std::byte{0});
  CHECK(again.open(4201).error() == StorageErrc::corrupt_file);
  files.content("/d/x.index").assign(8, std::byte{0});
  CHECK(again.open(4201).error() == StorageErrc::corrupt_file);  // preallocated, never trimmed
}

TEST_CASE("offset index: search equals a linear scan") {
  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  OffsetIndex index(files, "/d/x.index", 50);
  REQUIRE(index.create());
  base::Random random(7);
  std::vector<std::pair<base::Offset, std::uint32_t>> entries;
  base::Offset offset = 50;
  for (std::uint32_t i = 1; i <= 3000; ++i) {
    offset += 1 + static_cast<base::Offset>(random.below(10));
    entries.emplace_back(offset, i * 100);
    index.append(offset, i * 100);
    if (index.entries().wants_flush()) REQUIRE(index.entries().flush());
  }
  for (int i = 0; i < 2000; ++i) {
    const base::Offset target = 45 + static_cast<base::Offset>(random.below(18'000));
    std::uint32_t expected = 0;
    for (const auto& [last, position] : entries)
      if (last <= target) expected = position;
    REQUIRE(index.lookup(target).value() == expected);
  }
}

TEST_CASE("time index: timestamp and relative offset, growing timestamps only") {
  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  TimeIndex index(files, "/d/x.timeindex", 1000);
  REQUIRE(index.create());
  index.maybe_append({-1, 1000});
  index.maybe_append({0x0102030405, 1000});
  index.maybe_append({0x0102030405, 1003});  // not above the last one
  index.maybe_append({0x0102030406, 1005});
  REQUIRE(index.entries().flush());
  CHECK(hex(files, "/d/x.timeindex") ==
        "000000010203040500000000"
        "000000010203040600000005");
  CHECK_FALSE(index.lookup(0x0102030404).value());
  CHECK(index.lookup(0x0102030405).value()->offset == 1000);
  CHECK(index.lookup(0x0202030405).value()->offset == 1005);
  REQUIRE(index.truncate_to(1005));
  CHECK(hex(files, "/d/x.timeindex") == "000000010203040500000000");
  files.content("/d/x.timeindex").resize(24);  // a zero tail
  TimeIndex again(files, "/d/x.timeindex", 1000);
  CHECK(again.open().error() == StorageErrc::corrupt_file);
}

TEST_CASE("transaction index") {
  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  TxnIndex index(files, "/d/x.txnindex");
  REQUIRE(index.open());
  CHECK_FALSE(files.exists("/d/x.txnindex").value());
  REQUIRE(index.append({.producer_id = 1,
                        .first_offset = 2,
                        .marker_offset = 3,
                        .aborted = true,
                        .last_stable_offset = 4}));
  CHECK(hex(files, "/d/x.txnindex") ==
        "0000"
        "0000000000000001"
        "0000000000000002"
        "0000000000000003"
        "0000000000000004");
  TxnIndex again(files, "/d/x.txnindex");
  REQUIRE(again.open());
  CHECK(again.read_all().value().at(0).marker_offset == 3);
  REQUIRE(again.truncate_to(3));
  CHECK(again.empty());
  files.content("/d/x.txnindex").resize(34, std::byte{0xff});
  CHECK(again.open().error() == StorageErrc::corrupt_file);
}

// The entry of a snapshot with one, twice, under a right checksum.
static base::Buffer twice(base::Buffer content) {
  const base::Buffer entry(content.begin() + 10, content.end());
  content.insert(content.end(), entry.begin(), entry.end());
  protocol::store_be(content.data() + 6, std::int32_t{2});
  protocol::store_be(content.data() + 2, protocol::crc32c(base::Bytes(content).subspan(6)));
  return content;
}

TEST_CASE("producer snapshot: Kafka's layout, checksum, and nothing else") {
  ProducerState state;
  protocol::BatchInfo info = *protocol::parse_batch(make_batch({.base = 100,
                                                                .count = 3,
                                                                .timestamp = 0x1000,
                                                                .producer = 5,
                                                                .producer_epoch = 2,
                                                                .sequence = 7,
                                                                .transactional = true}));
  state.apply(info, std::nullopt);
  base::Buffer content = state.encode_snapshot();
  CHECK(base::to_hex(base::Bytes(content).first(2)) == "0001");
  CHECK(base::to_hex(base::Bytes(content).subspan(6)) ==
        "00000001"          // entries
        "0000000000000005"  // producer id
        "0002"              // epoch
        "00000009"          // last sequence
        "0000000000000066"  // last offset
        "00000002"          // offset delta
        "0000000000001002"  // timestamp
        "ffffffff"          // coordinator epoch
        "0000000000000064"  // first offset of the open transaction
  );
  auto read = ProducerState::decode_snapshot(content);
  REQUIRE(read);
  CHECK(ProducerState::decode_snapshot(twice(content)).error() == StorageErrc::corrupt_file);
  CHECK(read->encode_snapshot() == content);
  CHECK(read->last_stable_offset(1000) == 100);
  CHECK(read->find(5)->last()->base_sequence == 7);
  for (std::size_t size = 0; size < content.size(); ++size)
    CHECK(ProducerState::decode_snapshot(base::Bytes(content).first(size)).error() ==
          StorageErrc::corrupt_file);
  for (std::size_t at = 0; at < content.size(); ++at) {
    base::Buffer bad = content;
    bad[at] ^= std::byte{0x10};
    CHECK(ProducerState::decode_snapshot(bad).error() == StorageErrc::corrupt_file);
  }
}

TEST_CASE("epoch file, and Kafka's answers (B12)") {
  EpochCache cache;
  CHECK(cache.assign(1, 0));
  CHECK(cache.assign(3, 10));
  CHECK_FALSE(cache.assign(3, 12));
  CHECK(cache.to_text() == "0\n2\n1 0\n3 10\n");
  auto end = [&](base::LeaderEpoch epoch) {
    auto found = cache.end_of(epoch, 25);
    return found ? std::pair(found->epoch, found->offset)
                 : std::pair(base::LeaderEpoch{-1}, base::Offset{-1});
  };
  CHECK(end(-1) == std::pair(-1, base::Offset{-1}));  // no epoch
  CHECK(end(-2) == std::pair(-2, base::Offset{0}));   // as Kafka: below the first
  CHECK(end(0) == std::pair(0, base::Offset{0}));
  CHECK(end(1) == std::pair(1, base::Offset{10}));
  CHECK(end(2) == std::pair(1, base::Offset{10}));
  CHECK(end(3) == std::pair(3, base::Offset{25}));
  CHECK(end(4) == std::pair(-1, base::Offset{-1}));
  CHECK(EpochCache::parse(cache.to_text())->entries() == cache.entries());
  CHECK(cache.epoch_of(9) == 1);
  CHECK(cache.advance_start(5));
  CHECK(cache.to_text() == "0\n2\n1 5\n3 10\n");
  CHECK(cache.advance_start(10));
  CHECK(cache.to_text() == "0\n1\n3 10\n");
  CHECK(cache.truncate_to(10));
  CHECK(cache.to_text() == "0\n0\n");
  for (const char* bad : {"", "0\n", "1\n0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\n1\n1 x\n",
                          "0\n1\n-2 0\n", "0\n-1\n", "0\n1\n1 0 7\n", "0\n1\n99999999999 0\n"})
    CHECK(EpochCache::parse(bad).has_error());
}

TEST_CASE("checkpoint files and partition.metadata") {
  OffsetCheckpoint offsets{{{"a", 0}, 5}, {{"b-c", 12}, 7}};
  CHECK(to_text(offsets) == "0\n2\na 0 5\nb-c 12 7\n");
  CHECK(*parse_offset_checkpoint(to_text(offsets)) == offsets);
  CHECK(parse_offset_checkpoint("0\n2\na 0 5\n").has_error());
  CHECK(parse_offset_checkpoint("0\n1\na 0\n").has_error());

  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  CHECK(read_partition_metadata(files, "/d").value() == std::nullopt);
  const auto id = base::Uuid::parse("A_-cdefghijklmnopqrstw");
  REQUIRE(id);
  REQUIRE(write_partition_metadata(files, "/d", *id));
  CHECK(base::as_text(files.content("/d/partition.metadata")) ==
        "version: 0\ntopic_id: A_-cdefghijklmnopqrstw");
  CHECK(read_partition_metadata(files, "/d").value() == id);
  files.content("/d/partition.metadata").resize(20);
  CHECK(read_partition_metadata(files, "/d").error() == StorageErrc::corrupt_file);
}

TEST_CASE("log state") {
  LogState state;
  state.recovery_point = 12;
  state.log_start = 3;
  const std::string lines = "0\nrecovery_point 12\nlog_start 3\n";
  CHECK(state.to_text() == checked(lines));
  state.restart_at = 7;
  auto read = LogState::parse(state.to_text());
  REQUIRE(read);
  CHECK(read->restart_at == 7);
  CHECK_FALSE(read->truncate_to);
  for (const char* bad :
       {"", "0", "0\n", "0\nrecovery_point 1\n", "1\nrecovery_point 1\nlog_start 1\n",
        "0\nrecovery_point 1\nlog_start -1\n", "0\nrecovery_point 1\nlog_start 1\nx 1\n",
        "0\nrecovery_point 1\nlog_start 9223372036854775807\n"})
    CHECK(LogState::parse(checked(bad)).has_error());
  // Its numbers cut and empty logs, so a flipped bit may not pass for one.
  const std::string good = state.to_text();
  CHECK(LogState::parse(lines).has_error());
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(LogState::parse(good.substr(0, size)).has_error());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    CHECK(LogState::parse(bad).has_error());
  }
}
