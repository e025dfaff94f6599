// What a log knows of its producers, over crashes, restarts, cuts and deleted records.
#include "storage/error.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;
using storage::StorageErrc;

namespace {

constexpr base::ProducerId producer = 9;
constexpr std::int64_t now = 10'000;

struct Bench {
  TemporaryDirectory directory;
  storage::LogConfig config;
  std::unique_ptr<Log> log;
  std::int64_t opened_ms = now;

  Bench() { reopen(false); }

  void reopen(bool clean, base::Offset recovery_point = 0) {
    std::optional<base::Offset> start;
    if (log) {
      start = log->log_start();
      if (clean) {
        REQUIRE(log->close());
        recovery_point = log->log_end();
      }
      log.reset();
    }
    Log::OpenOptions options;
    options.clean_shutdown = clean;
    options.recovery_point = recovery_point;
    options.log_start = start;
    options.now_ms = opened_ms;
    auto opened = Log::open(storage::posix_file_system(), directory / "t-0", config, options);
    REQUIRE(opened);
    log = std::move(*opened);
  }

  base::Result<storage::AppendInfo> send(std::int32_t sequence, int count = 1,
                                         base::ProducerEpoch epoch = 0) {
    base::Buffer batch = make_batch({.count = count,
                                     .timestamp = now,
                                     .producer = producer,
                                     .producer_epoch = epoch,
                                     .sequence = sequence});
    return log->append_as_leader(batch, 0, now, storage::AppendOrigin::client);
  }
  // Sequences first..last, one record each.
  void fill(std::int32_t first, std::int32_t last) {
    for (std::int32_t i = first; i <= last; ++i) REQUIRE(send(i));
  }
  void is_known(std::int32_t sequence, base::Offset offset) {
    const base::Offset end = log->log_end();
    const auto again = send(sequence);
    REQUIRE(again);
    CHECK(again->duplicate);
    CHECK(again->first_offset == offset);
    CHECK(log->log_end() == end);
  }
  void is_out_of_order(std::int32_t sequence) {
    CHECK(send(sequence).error() == StorageErrc::out_of_order_sequence);
  }
};

}  // namespace

TEST_CASE("after a crash a resent batch is known by what the log holds") {
  Bench bench;
  bench.fill(0, 7);
  bench.reopen(false);
  for (std::int32_t i = 3; i <= 7; ++i) bench.is_known(i, i);
  bench.is_out_of_order(2);
  bench.is_out_of_order(9);
  REQUIRE(bench.send(8));
}

TEST_CASE("after a clean restart the snapshot tells the last batch, as Kafka's does") {
  Bench bench;
  bench.fill(0, 7);
  bench.reopen(true);
  bench.is_known(7, 7);
  bench.is_out_of_order(9);
  CHECK(bench.send(8)->first_offset == 8);
}

TEST_CASE("a duplicate is answered with its own timestamp") {
  Bench bench;
  REQUIRE(bench.send(0, 3));
  CHECK(bench.send(0, 3)->log_append_time_ms == now + 2);
  CHECK(!bench.send(3)->log_append_time_ms);
  bench.reopen(true);
  CHECK(bench.send(3)->log_append_time_ms == now);
}

TEST_CASE("what was cut off is forgotten, over segments and their snapshots") {
  Bench bench;
  bench.config.segment_bytes = 300;
  bench.log->set_config(bench.config);
  bench.fill(0, 19);
  REQUIRE(bench.log->segment_count() > 3);
  for (const base::Offset end : {base::Offset{17}, base::Offset{11}, base::Offset{3}}) {
    REQUIRE(bench.log->truncate_to(end));
    const auto last = static_cast<std::int32_t>(end - 1);
    bench.is_known(last, last);
    bench.is_out_of_order(last + 2);
    SECTION("and stays so after a crash at " + std::to_string(end)) {
      bench.reopen(false);
      bench.is_known(last, last);
      CHECK(bench.send(last + 1)->first_offset == end);
    }
    SECTION("and after a clean restart at " + std::to_string(end)) {
      bench.reopen(true);
      bench.is_known(last, last);
      CHECK(bench.send(last + 1)->first_offset == end);
    }
  }
  REQUIRE(bench.log->truncate_to(0));
  CHECK(bench.send(5)->first_offset == 0);  // a stranger again
}

TEST_CASE("a producer outlives its records (D03)") {
  Bench bench;
  bench.config.segment_bytes = 300;
  bench.log->set_config(bench.config);
  bench.fill(0, 19);
  REQUIRE(bench.log->advance_log_start(20));
  REQUIRE(sync(*bench.log));
  bench.is_known(19, 19);
  bench.is_out_of_order(21);
  SECTION("over a clean restart") {
    bench.reopen(true);
  }
  SECTION("over a crash") {
    bench.reopen(false, 20);
  }
  CHECK(bench.log->log_start() == 20);
  bench.is_known(19, 19);
  CHECK(bench.send(20)->first_offset == 20);
}

TEST_CASE("who was quiet for long is forgotten at the start, and while running at intervals") {
  Bench bench;
  bench.config.producer_expiration_ms = 1000;
  bench.config.producer_check_interval_ms = 500;
  bench.log->set_config(bench.config);
  REQUIRE(bench.send(0));
  REQUIRE(bench.log->maybe_roll(now + 999));
  bench.is_known(0, 0);
  REQUIRE(bench.log->maybe_roll(now + 1400));  // too early for the next look
  bench.is_known(0, 0);
  REQUIRE(bench.log->maybe_roll(now + 1500));
  CHECK(bench.send(7)->first_offset == 1);
}

TEST_CASE("old timestamps do not make a busy producer be forgotten") {
  Bench bench;
  bench.config.producer_check_interval_ms = 1;
  bench.log->set_config(bench.config);
  constexpr std::int64_t today = 1'800'000'000'000;  // while records are from 1970
  base::Buffer batch = make_batch({.timestamp = 1000, .producer = producer, .sequence = 0});
  REQUIRE(bench.log->append_as_leader(batch, 0, today, storage::AppendOrigin::client));
  REQUIRE(bench.log->maybe_roll(today + 1000));
  batch = make_batch({.timestamp = 1000, .producer = producer, .sequence = 0});
  const auto again = bench.log->append_as_leader(batch, 0, today, storage::AppendOrigin::client);
  REQUIRE(again);
  CHECK(again->duplicate);
  bench.opened_ms = today;
  bench.reopen(false);  // a crash: read from the batches, and not forgotten at once
  batch = make_batch({.timestamp = 1000, .producer = producer, .sequence = 0});
  CHECK(bench.log->append_as_leader(batch, 0, today, storage::AppendOrigin::client)->duplicate);
}

TEST_CASE("who tells no epoch may send any sequence, and is still known") {
  Bench bench;
  REQUIRE(bench.send(0, 1, -1));
  CHECK(bench.send(0, 1, -1)->duplicate);
  CHECK(bench.send(9, 1, -1)->first_offset == 1);
  CHECK(bench.send(4, 1, 0)->first_offset == 2);  // the first epoch, with any sequence
  CHECK(bench.send(5, 1, -1).error() == StorageErrc::invalid_producer_epoch);
  bench.is_out_of_order(6);
}
