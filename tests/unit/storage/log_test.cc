// The two doors of a log, reading, rolling, closing.
#include "storage/error.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;
using storage::StorageErrc;

namespace {

Log::OpenOptions unclean(base::Offset recovery_point = 0) {
  Log::OpenOptions options;
  options.recovery_point = recovery_point;
  options.now_ms = 10'000;
  return options;
}
Log::OpenOptions clean() {
  Log::OpenOptions options = unclean();
  options.clean_shutdown = true;
  return options;
}

std::unique_ptr<Log> open(const std::string& path, Log::OpenOptions options,
                          storage::LogConfig config = {}) {
  auto log = Log::open(storage::posix_file_system(), path, config, options);
  REQUIRE(log);
  return std::move(*log);
}

}  // namespace

TEST_CASE("a new log is empty and begins at 0") {
  TemporaryDirectory directory;
  auto log = open(directory / "t-0", unclean());
  CHECK(log->log_start() == 0);
  CHECK(log->log_end() == 0);
  CHECK(log->size_bytes() == 0);
  CHECK_FALSE(log->last_epoch());
  storage::ReadLimits limits;
  CHECK(log->read(0, limits)->slice.size == 0);
  CHECK(log->read(1, limits).error() == StorageErrc::offset_out_of_range);
  CHECK(log->max_timestamp().value() == std::nullopt);
  CHECK(log->offset_for_timestamp(0).value() == std::nullopt);
}

TEST_CASE("verbatim bytes come back unchanged, over segments and restarts") {
  TemporaryDirectory directory;
  storage::LogConfig config;
  config.segment_bytes = 2000;
  config.index_interval_bytes = 200;
  base::Buffer expected;
  {
    auto log = open(directory / "t-0", unclean(), config);
    base::Offset next = 0;
    for (int i = 0; i < 20; ++i) {
      base::Buffer both = join({make_batch({.base = next, .count = 3, .epoch = i / 7}),
                                make_batch({.base = next + 5, .count = 2, .epoch = i / 7})});
      auto info = log->append_verbatim(both, 100, 10'000);
      REQUIRE(info);
      CHECK(info->first_offset == next);
      CHECK(info->last_offset == next + 6);
      next += 7;
      expected.insert(expected.end(), both.begin(), both.end());
    }
    CHECK(log->log_end() == 140);
    CHECK(log->segment_count() > 2);
    CHECK(log->durable_end() == 0);
    REQUIRE(sync(*log));
    CHECK(log->durable_end() == 140);
    CHECK(log->begin_sync() == nullptr);
    CHECK(read_all(*log, 0, 300) == expected);
    REQUIRE(log->close());
  }
  for (auto options : {clean(), unclean(), unclean(70), unclean(140)}) {
    auto log = open(directory / "t-0", options, config);
    CHECK(log->log_end() == 140);
    CHECK(log->durable_end() == 140);
    CHECK(log->last_epoch() == 2);
    CHECK(read_all(*log, 0) == expected);
    auto one = log->read(4, {.max_bytes = 1, .below = std::nullopt});  // in a gap: the batch after
    REQUIRE(one);
    CHECK(one->first_base == 5);
  }
}

TEST_CASE("truncation and restart") {
  TemporaryDirectory directory;
  storage::LogConfig config;
  config.segment_bytes = 500;
  auto log = open(directory / "t-0", unclean(), config);
  base::Buffer expected;
  for (int i = 0; i < 30; ++i) {
    base::Buffer one = make_batch({.base = i * 3, .count = 3, .epoch = i / 10});
    REQUIRE(log->append_verbatim(one, 5, 10'000));
    if (i < 11) expected.insert(expected.end(), one.begin(), one.end());
  }
  REQUIRE(log->truncate_to(34));  // inside the batch 33..35
  CHECK(log->log_end() == 33);
  CHECK(log->last_epoch() == 1);
  CHECK(read_all(*log, 0) == expected);
  REQUIRE(log->append_verbatim(make_batch({.base = 33, .count = 1, .epoch = 4}), 5, 10'000));
  CHECK(log->log_end() == 34);
  log.reset();
  log = open(directory / "t-0", unclean(1000), config);
  CHECK(log->log_end() == 34);
  CHECK(log->last_epoch() == 4);
  REQUIRE(log->restart_at(500));
  CHECK(log->log_start() == 500);
  CHECK(log->log_end() == 500);
  CHECK_FALSE(log->last_epoch());
  // E36: the first batch covers the log start.
  REQUIRE(log->append_verbatim(make_batch({.base = 495, .count = 10, .epoch = 4}), 5, 10'000));
  CHECK(log->log_start() == 500);
  CHECK(log->log_end() == 505);
  REQUIRE(sync(*log));
  log.reset();
  log = open(directory / "t-0", unclean(), config);
  CHECK(log->log_start() == 500);
  CHECK(log->log_end() == 505);
}
