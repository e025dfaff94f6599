// Compaction by key: what a reader from the beginning ends up with does not change.
#include "storage/compaction.h"

#include <cerrno>
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
  for (const std::uint64_t seed : seeds(30)) {
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
  for (const auto result :
       {protocol::TransactionResult::abort, protocol::TransactionResult::commit}) {
    const bool abort = result == protocol::TransactionResult::abort;
    INFO("abort " << abort);
    FaultFileSystem files(1);
    auto log = open(files);
    // Version 0, type 0 or 1, as in a marker's key.
    const std::string marker_key = {'\0', '\0', '\0', abort ? '\0' : '\1'};
    REQUIRE(log->append_verbatim(
        make_batch({.base = 0, .count = 2, .producer = 3, .sequence = 0, .transactional = true}), 0,
        0));
    REQUIRE(log->append_verbatim(make_marker(2, 0, 3, 0, result), 0, 0));
    REQUIRE(log->append_verbatim(keyed_batch(3, {{marker_key, "user"}}), 0, 0));
    REQUIRE(log->append_verbatim(keyed_batch(4, {{marker_key, std::string(700, 'x')}}), 0, 0));
    REQUIRE(log->append_verbatim(keyed_batch(5, {{"z", std::string(700, 'x')}}), 0, 0));
    REQUIRE(sync(*log));
    REQUIRE(log->aborted_transactions(0, 6)->size() == (abort ? 1u : 0u));
    auto stats = log->compact(limits(0));
    REQUIRE(stats);
    CHECK(stats->records_dropped == 1);
    for (bool reopened : {false, true}) {
      if (reopened) log = open(files);
      const Content content = content_of(*log);
      CHECK(content.controls == 1);
      CHECK(content.keys.contains(0));  // the producer's last batch stays
      CHECK_FALSE(content.keys.contains(3));
      CHECK(log->aborted_transactions(0, 6)->size() == (abort ? 1u : 0u));
      CHECK(log->last_stable_offset(6) == 6);
    }
  }
}

TEST_CASE("an aborted record does not outdate a committed one, wherever the marker lies") {
  FaultFileSystem files(1);
  auto log = open(files);
  auto transactional = [&](base::Offset at) {
    return make_batch(
        {.base = at, .value_bytes = 700, .producer = 3, .sequence = 0, .transactional = true});
  };
  // make_batch's keys are k<offset>: this is the committed value of the key that is aborted later.
  REQUIRE(log->append_verbatim(keyed_batch(0, {{"k1", "committed"}}), 0, 0));
  REQUIRE(log->append_verbatim(transactional(1), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(2, {{"z", std::string(700, 'x')}}), 0, 0));
  REQUIRE(sync(*log));
  REQUIRE(log->segment_count() == 3);
  // Open: nothing from its first offset on is touched.
  REQUIRE(log->compact(limits(0)));
  CHECK(content_of(*log).keys.contains(0));
  // Decided in the active segment, but a power cut could still take the marker back.
  REQUIRE(log->append_verbatim(make_marker(3, 0, 3, 0, protocol::TransactionResult::abort), 0, 0));
  REQUIRE(log->compact(limits(0)));
  CHECK(log->dirty_ratio() > 0);
  REQUIRE(sync(*log));
  REQUIRE(log->compact(limits(0)));
  CHECK(log->dirty_ratio() == 0);
  CHECK(content_of(*log).keys.contains(0));
  CHECK(content_of(*log).keys.contains(1));
}

TEST_CASE("markers go when nothing of their transactions is left, aborted records at once") {
  FaultFileSystem files(1);
  auto log = open(files);
  base::Offset next = 0;
  const auto transaction = [&](base::ProducerId producer, const std::string& key, bool commit) {
    protocol::BatchOptions options;
    options.base_offset = next;
    options.partition_leader_epoch = 0;
    options.producer_id = producer;
    options.producer_epoch = 0;
    options.transactional = true;
    protocol::BatchBuilder builder(options);
    const std::string value = std::to_string(next) + (commit ? " committed" : " aborted");
    builder.add(1000, base::as_bytes(key), base::as_bytes(value));
    REQUIRE(log->append_verbatim(std::move(builder).build(), 0, 0));
    REQUIRE(log->append_verbatim(make_marker(next + 1, 0, producer, 0,
                                             commit ? protocol::TransactionResult::commit
                                                    : protocol::TransactionResult::abort),
                                 0, 0));
    next += 2;
  };
  transaction(4, "kept", true);
  for (int i = 0; i < 100; ++i) {
    transaction(3, "same", i % 2 == 0);
    if (i % 10 == 0) transaction(4, "other", i % 20 != 0);
  }
  REQUIRE(log->maybe_roll(std::int64_t{1} << 50));
  REQUIRE(sync(*log));
  std::map<std::string, std::string> last;
  for (int run = 0; run < 3; ++run) {
    REQUIRE(log->compact(limits(0)));
    const Content content = content_of(*log);
    if (run == 0) last = content.last;
    CHECK(content.last == last);
    CHECK(last.at("kept") == "0 committed");
    CHECK(last.at("same").ends_with(" committed"));
    CHECK(last.at("other").ends_with(" committed"));
    CHECK(content.keys.contains(0));
    // Each segment ends where it did, be it with a record that was aborted; each record that is
    // left has the marker behind it.
    CHECK(content.keys.size() < 15);
    CHECK(content.controls <= log->segment_count() + 3);
    CHECK(log->segment_count() < 80);
    log = open(files, run == 1 ? next : 0);
    CHECK(log->log_end() == next);
    CHECK(log->open_transactions().empty());
    CHECK(log->last_stable_offset(next) == next);
  }
}

TEST_CASE("B18: one key a thousand times and its tombstone: the log end stays") {
  FaultFileSystem files(1);
  auto log = open(files);
  for (int i = 0; i < 1000; ++i)
    REQUIRE(log->append_verbatim(keyed_batch(i, {{"same", std::to_string(i)}}), 0, 0));
  REQUIRE(log->append_verbatim(keyed_batch(1000, {{"same", std::nullopt}}), 0, 0));
  REQUIRE(log->maybe_roll(std::int64_t{1} << 50));
  REQUIRE(sync(*log));
  REQUIRE(log->compact(limits(0)));
  REQUIRE(log->compact(limits(retention_ms)));
  CHECK(content_of(*log).keys.empty());
  CHECK(log->log_end() == 1001);
  for (base::Offset recovery_point : {0, 1001}) {
    log = open(files, recovery_point);
    CHECK(log->log_end() == 1001);
    CHECK(content_of(*log).keys.empty());
    CHECK(log->last_epoch() == 0);
  }
  CHECK(log->append_verbatim(keyed_batch(1001, {{"same", "again"}}), 0, 0)->first_offset == 1001);
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

namespace {

// A log of which much can be dropped.
std::unique_ptr<Log> compactable(storage::FileSystem& files) {
  auto log = open(files);
  for (int i = 0; i < 40; ++i)
    REQUIRE(log->append_verbatim(
        keyed_batch(i, {{"key" + std::to_string(i % 5), std::to_string(i)}}), 0, 0));
  REQUIRE(sync(*log));
  return log;
}

std::size_t calls_of_a_compaction() {
  FaultFileSystem files(1);
  auto log = compactable(files);
  const std::uint64_t before = files.calls();
  REQUIRE(log->compact(limits(0)));
  return files.calls() - before;
}

}  // namespace

TEST_CASE("power cuts at each call of a compaction leave the old or the new segment") {
  const std::size_t calls = calls_of_a_compaction();
  REQUIRE(calls > 50);
  bool cleaned_some = false;
  for (std::size_t at = 1; at <= calls; ++at) {
    for (const std::uint64_t seed : seeds(4)) {
      INFO("call " << at << " seed " << seed);
      FaultFileSystem files(seed + 1);
      auto log = compactable(files);
      const Content before = content_of(*log);
      files.die_after(at);
      const bool compacted = log->compact(limits(0)).has_value();
      REQUIRE(compacted == !files.dead());
      log.reset();
      files.power_cut();
      log = open(files, seed % 2 == 0 ? 40 : 0);
      CHECK(log->log_end() == 40);
      const Content left = content_of(*log);
      CHECK(left.last == before.last);
      cleaned_some = cleaned_some || left.keys.size() < before.keys.size();
      for (const auto& [offset, key] : left.keys) REQUIRE(before.keys.at(offset) == key);
      for (const std::string& name : files.list("/data/t-0").value())
        CHECK_FALSE((name.ends_with(".cleaned") || name.ends_with(".swap")));
      REQUIRE(log->compact(limits(0)));
      CHECK(content_of(*log).last == before.last);
    }
  }
  CHECK(cleaned_some);
}

// The test above is worth what it can notice.
TEST_CASE("power cuts during a compaction: a new segment that was not synced is noticed") {
  const std::size_t calls = calls_of_a_compaction();
  bool noticed = false;
  for (std::size_t at = 1; at <= calls && !noticed; ++at) {
    FaultFileSystem files(at);
    auto log = compactable(files);
    const Content before = content_of(*log);
    files.lost_sync = [](const std::string& path) { return path.ends_with(".cleaned"); };
    files.die_after(at);
    (void)log->compact(limits(0));
    log.reset();
    files.power_cut();
    log = open(files, 40);
    const bool readable = log->log_end() == 40 && try_read_all(*log, 0).has_value();
    noticed = !readable || content_of(*log).last != before.last;
  }
  CHECK(noticed);
}

TEST_CASE("a call of a compaction fails: the log comes back, or was not touched") {
  const std::size_t calls = calls_of_a_compaction();
  for (const int code : {EIO, ENOSPC}) {
    for (std::size_t at = 1; at <= calls; ++at) {
      INFO("call " << at << " error " << code);
      FaultFileSystem files(1);
      auto log = compactable(files);
      const Content before = content_of(*log);
      std::size_t left = at;
      bool sync_failed = false;
      files.fault = [&](DiskCall call, const std::string&) {
        if (call == DiskCall::read || --left != 0) return base::Error{};
        sync_failed = call == DiskCall::sync || call == DiskCall::sync_directory;
        return base::Error(code, boost::system::system_category());
      };
      const auto compacted = log->compact(limits(0));
      files.fault = nullptr;
      REQUIRE(compacted.has_error());
      if (sync_failed) {
        CHECK(log->reopen_after_error(0).has_error());
        log = open(files);
      }
      REQUIRE(log->reopen_after_error(0));
      // Nothing waits to be swapped in later, over what the log will hold then.
      for (const std::string& name : files.list("/data/t-0").value())
        CHECK_FALSE(name.ends_with(".swap"));
      CHECK(content_of(*log).last == before.last);
      REQUIRE(log->compact(limits(0)));
      CHECK(content_of(*log).last == before.last);
      CHECK(content_of(*log).keys.size() < before.keys.size());
      log = open(files);
      CHECK(content_of(*log).last == before.last);
    }
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
