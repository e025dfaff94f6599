// Compaction by key: what a reader from the beginning ends up with does not change.
#include "storage/compaction.h"

#include <map>

#include "protocol/record.h"
#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;

namespace {

constexpr std::int64_t retention_ms = 1000;

struct Kv {
  std::string key;
  std::optional<std::string> value;
};

base::Buffer keyed_batch(base::Offset base, const std::vector<Kv>& records,
                         protocol::Codec codec = protocol::Codec::none) {
  protocol::BatchOptions options;
  options.base_offset = base;
  options.partition_leader_epoch = 0;
  options.codec = codec;
  protocol::BatchBuilder builder(options);
  for (const Kv& one : records)
    builder.add(1000, base::as_bytes(one.key),
                one.value ? std::optional(base::as_bytes(*one.value)) : std::nullopt);
  return std::move(builder).build();
}

// The last value of each key, tombstones left out; and every record with its offset.
struct Content {
  std::map<std::string, std::string> last;
  std::map<base::Offset, std::string> keys;
  std::size_t tombstones = 0, controls = 0;
};
Content content_of(const Log& log) {
  Content content;
  const base::Buffer bytes = read_all(log, log.log_start());
  protocol::BatchIterator it(bytes, protocol::CrcCheck::yes);
  while (it.next()) {
    if (it.info().control()) {
      ++content.controls;
      continue;
    }
    auto reader = protocol::RecordReader::open(it.batch());
    REQUIRE(reader);
    protocol::Record record;
    while (reader->next(record)) {
      const std::string key(base::as_text(*record.key));
      content.keys[record.offset] = key;
      if (record.value)
        content.last[key] = base::as_text(*record.value);
      else
        content.last.erase(key), ++content.tombstones;
    }
    REQUIRE_FALSE(reader->error());
  }
  REQUIRE_FALSE(it.stopped());
  return content;
}

std::unique_ptr<Log> open(storage::FileSystem& files, base::Offset recovery_point = 0) {
  storage::LogConfig config;
  config.segment_bytes = 600;
  config.index_interval_bytes = 100;
  Log::OpenOptions options;
  options.recovery_point = recovery_point;
  auto log = Log::open(files, "/data/t-0", config, options);
  REQUIRE(log);
  return std::move(*log);
}

storage::CompactionLimits limits(std::int64_t now) {
  storage::CompactionLimits all;
  all.now_ms = now;
  all.delete_retention_ms = retention_ms;
  return all;
}

}  // namespace

TEST_CASE("random keys: the same last values, the same offsets, the same log end (B18)") {
  for (std::uint64_t seed = 0; seed < seeds(30); ++seed) {
    INFO("seed " << seed);
    base::Random random(seed);
    FaultFileSystem files(seed);
    auto log = open(files);
    std::int64_t now = 0;
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 40; ++i) {
        std::vector<Kv> records;
        for (auto n = 1 + random.below(4); n > 0; --n) {
          Kv one{"key" + std::to_string(random.below(8)), std::nullopt};
          if (random.chance(80)) one.value = "v" + std::to_string(random.below(1000));
          records.push_back(one);
        }
        auto codec = random.chance(30) ? protocol::Codec::zstd : protocol::Codec::none;
        REQUIRE(log->append_verbatim(keyed_batch(log->log_end(), records, codec), 0, now));
      }
      REQUIRE(sync(*log));
      const Content before = content_of(*log);
      const base::Offset end = log->log_end();
      CHECK(log->dirty_ratio() > 0);
      now += random.chance(50) ? 10 : 2 * retention_ms;
      auto stats = log->compact(limits(now));
      REQUIRE(stats);
      CHECK(stats->bytes_after <= stats->bytes_before);
      CHECK(stats->records_dropped > 0);
      CHECK(log->dirty_ratio() == 0);
      if (random.chance(50)) log = open(files, random.chance(50) ? end : 0);
      const Content after = content_of(*log);
      CHECK(log->log_end() == end);
      CHECK(after.last == before.last);
      CHECK(after.keys.size() < before.keys.size());
      for (const auto& [offset, key] : after.keys) REQUIRE(before.keys.at(offset) == key);
    }
  }
}

TEST_CASE("a tombstone stays for delete.retention.ms after the first cleaning") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->append_verbatim(keyed_batch(0, {{"a", "1"}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(1, {{"a", std::nullopt}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(2, {{"b", std::string(700, 'x')}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(3, {{"c", std::string(700, 'x')}}), 0, 0));
  REQUIRE(sync(*log));
  REQUIRE(log->compact(limits(5000)));
  CHECK(content_of(*log).tombstones == 1);
  REQUIRE(log->compact(limits(5000 + retention_ms - 1)));
  CHECK(content_of(*log).tombstones == 1);
  REQUIRE(log->compact(limits(5000 + retention_ms)));
  CHECK(content_of(*log).tombstones == 0);
  CHECK(log->log_end() == 4);
}

TEST_CASE("B14: a user's key equal to a marker's does not touch markers") {
  FaultFileSystem files(1);
  auto log = open(files);
  const std::string abort_key(4, '\0');
  REQUIRE(log->append_verbatim(
      make_batch({.base = 0, .count = 2, .producer = 3, .sequence = 0, .transactional = true}), 0,
      0));
  REQUIRE(log->append_verbatim(make_marker(2, 0, 3, 0, protocol::TransactionResult::abort), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(3, {{abort_key, "user"}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(4, {{abort_key, std::string(700, 'x')}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(5, {{"z", std::string(700, 'x')}}), 0, 0));
  REQUIRE(sync(*log));
  const auto aborted = log->aborted_transactions(0, 6).value();
  REQUIRE(aborted.size() == 1);
  auto stats = log->compact(limits(0));
  REQUIRE(stats);
  CHECK(stats->records_dropped == 1);
  const Content content = content_of(*log);
  CHECK(content.controls == 1);
  CHECK(content.keys.contains(0));  // of the aborted transaction: left alone
  CHECK(log->aborted_transactions(0, 6)->size() == 1);
}

TEST_CASE("a producer's last batch stays, without records, so that a resend is known") {
  FaultFileSystem files(1);
  auto log = open(files);
  for (int i = 0; i < 3; ++i) {
    protocol::BatchOptions options;
    options.producer_id = 8;
    options.producer_epoch = 0;
    options.base_sequence = i;
    protocol::BatchBuilder builder(options);
    builder.add(1000, base::as_bytes("same"), base::as_bytes("v"));
    base::Buffer batch = std::move(builder).build();
    REQUIRE(log->append_as_leader(batch, 0, 0, storage::AppendOrigin::client));
  }
  REQUIRE(log->append_verbatim(keyed_batch(3, {{"same", std::string(700, 'x')}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(4, {{"z", std::string(700, 'x')}}), 0, 0));
  REQUIRE(sync(*log));
  REQUIRE(log->compact(limits(0)));
  CHECK(content_of(*log).keys.size() == 2);
  log.reset();
  for (const std::string& name : files.list("/data/t-0").value())
    if (name.ends_with(".snapshot")) REQUIRE(files.remove("/data/t-0/" + name));
  log = open(files);
  base::Buffer resent = make_batch({.base = 0, .producer = 8, .sequence = 2});
  CHECK(log->append_as_leader(resent, 0, 0, storage::AppendOrigin::client)->duplicate);
}

TEST_CASE("power cuts during compaction leave the old or the new segment") {
  for (std::uint64_t seed = 0; seed < seeds(60); ++seed) {
    INFO("seed " << seed);
    FaultFileSystem files(seed);
    auto log = open(files);
    for (int i = 0; i < 40; ++i)
      REQUIRE(log->append_verbatim(
          keyed_batch(i, {{"key" + std::to_string(i % 5), std::to_string(i)}}), 0, 0));
    REQUIRE(sync(*log));
    const Content before = content_of(*log);
    files.die_after(1 + seed % 40);
    (void)log->compact(limits(0));
    log.reset();
    files.power_cut();
    log = open(files, seed % 2 == 0 ? 40 : 0);
    CHECK(log->log_end() == 40);
    CHECK(content_of(*log).last == before.last);
    REQUIRE(log->compact(limits(0)));
    CHECK(content_of(*log).last == before.last);
  }
}

TEST_CASE("a key map that is full cleans what it can and goes on next time") {
  FaultFileSystem files(1);
  auto log = open(files);
  for (int i = 0; i < 120; ++i)
    REQUIRE(log->append_verbatim(
        keyed_batch(i, {{"key" + std::to_string(i % 30), std::to_string(i)}}), 0, 0));
  REQUIRE(sync(*log));
  const Content before = content_of(*log);
  storage::CompactionLimits small = limits(0);
  small.key_bytes_max = 1000;
  for (int i = 0; i < 40 && log->dirty_ratio() > 0; ++i) REQUIRE(log->compact(small));
  CHECK(log->dirty_ratio() == 0);
  CHECK(content_of(*log).last == before.last);
  CHECK(content_of(*log).keys.size() < before.keys.size());
}
