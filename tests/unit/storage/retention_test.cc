// What retention drops, and how the files go.
#include "storage/retention.h"

#include <filesystem>
#include <limits>
#include <set>

#include "storage/error.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;
using storage::RetentionLimits;
using storage::SegmentFacts;

namespace {

// Segments of 100 bytes and 10 offsets each; the newest timestamp of segment i is i * 1000.
std::size_t dropped(std::size_t segments, RetentionLimits limits, base::Offset log_start = 0,
                    std::uint64_t last_size = 100) {
  std::vector<SegmentFacts> facts;
  for (std::size_t i = 0; i < segments; ++i)
    facts.push_back({static_cast<base::Offset>(i) * 10, 100});
  facts.back().size_bytes = last_size;
  const auto newest = [](std::size_t i) -> base::Result<std::int64_t> {
    return static_cast<std::int64_t>(i) * 1000;
  };
  const base::Offset end = facts.back().base + (last_size > 0 ? 10 : 0);
  return storage::segments_to_drop(facts, log_start, end, limits, newest).value();
}

RetentionLimits limits(base::Offset high_watermark = 1'000'000, std::int64_t now_ms = 0) {
  RetentionLimits all;
  all.high_watermark = high_watermark;
  all.now_ms = now_ms;
  return all;
}

std::unique_ptr<Log> open(const std::string& path, storage::LogConfig config) {
  Log::OpenOptions options;
  options.now_ms = 10'000;
  auto log = Log::open(storage::posix_file_system(), path, config, options);
  REQUIRE(log);
  return std::move(*log);
}

std::size_t files_with(const std::string& directory, const std::string& suffix) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    count += entry.path().filename().string().ends_with(suffix) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("retention by size takes whole segments that are wholly above the limit") {
  auto by_size = limits();
  by_size.retention_bytes = 250;
  CHECK(dropped(2, by_size) == 0);
  CHECK(dropped(3, by_size) == 0);  // 50 above, a segment has 100
  CHECK(dropped(4, by_size) == 1);
  by_size.retention_bytes = 0;
  CHECK(dropped(4, by_size) == 4);
  CHECK(dropped(4, by_size, 0, 0) == 3);  // an empty active segment stays
}

TEST_CASE("retention by time takes segments whose newest record is too old") {
  auto by_time = limits(1'000'000, 10'000);
  by_time.retention_ms = 8'000;
  CHECK(dropped(4, by_time) == 2);  // newest at 0 and 1000; 2000 is exactly as old as may be
  by_time.retention_ms = 0;
  CHECK(dropped(4, by_time) == 4);
  CHECK(dropped(20, by_time) == 10);  // records of the future are not old
  by_time.retention_ms = std::numeric_limits<std::int64_t>::max();
  CHECK(dropped(4, by_time) == 0);
}

TEST_CASE("nothing above the high watermark goes, and never the active segment by log start") {
  auto all = limits(25);
  all.retention_bytes = 0;
  CHECK(dropped(4, all) == 2);
  CHECK(dropped(4, limits(), 20) == 2);
  CHECK(dropped(4, limits(), 25) == 2);
  CHECK(dropped(4, limits(), 40) == 3);
  CHECK(dropped(4, limits(15), 40) == 1);
}

TEST_CASE("B24: timestamps far before or after the clock do not turn into others") {
  std::vector<SegmentFacts> facts = {{0, 100}, {10, 100}};
  auto by_time = limits(100, 1'700'000'000'000);
  by_time.retention_ms = 86'400'000;
  const auto count = [&](std::int64_t newest_ms) {
    const auto newest = [&](std::size_t) -> base::Result<std::int64_t> { return newest_ms; };
    return storage::segments_to_drop(facts, 0, 20, by_time, newest).value();
  };
  CHECK(count(std::numeric_limits<std::int64_t>::max()) == 0);
  CHECK(count(by_time.now_ms) == 0);
  CHECK(count(0) == 2);
  by_time.retention_ms = std::numeric_limits<std::int64_t>::max();
  CHECK(count(0) == 0);
}

TEST_CASE("dropped segments leave in two steps, and a log that lost all of them goes on") {
  TemporaryDirectory directory;
  storage::LogConfig config;
  config.segment_bytes = 500;
  config.file_delete_delay_ms = 1'000;
  const std::string path = directory / "t-0";
  auto log = open(path, config);
  for (base::Offset next = 0; next < 20; ++next)
    REQUIRE(log->append_verbatim(make_batch({.base = next, .count = 1, .epoch = 0}), 0, 10'000));
  const std::size_t segments = log->segment_count();
  REQUIRE(segments > 3);

  auto by_size = limits(log->log_end(), 10'000);
  by_size.retention_bytes = log->size_bytes() / 2;
  const auto first = log->apply_retention(by_size);
  REQUIRE(first);
  CHECK(*first > 0);
  CHECK(log->segment_count() == segments - *first);
  CHECK(log->log_start() > 0);
  CHECK(log->size_bytes() >= *by_size.retention_bytes);
  REQUIRE(sync(*log));
  CHECK(files_with(path, ".log") == segments - *first);
  CHECK(files_with(path, ".log.deleted") == *first);
  CHECK(log->take_deleted(10'999).empty());
  const auto paths = log->take_deleted(11'000);
  CHECK(paths.size() == *first * 5);
  CHECK(log->take_deleted(20'000).empty());

  // By time everything goes, the active segment as well.
  const base::Offset end = log->log_end();
  auto by_time = limits(end, 1'000'000'000);
  by_time.retention_ms = 1;
  REQUIRE(log->apply_retention(by_time));
  CHECK(log->log_start() == end);
  CHECK(log->log_end() == end);
  CHECK(log->segment_count() == 1);
  REQUIRE(sync(*log));
  REQUIRE(log->append_verbatim(make_batch({.base = end, .count = 1, .epoch = 0}), 0, 10'000));
  CHECK(log->log_end() == end + 1);

  // What was not removed in time goes at the next start, and the log start does not come back.
  REQUIRE(log->close());
  log = open(path, config);
  CHECK(log->log_start() == end);
  CHECK(files_with(path, ".deleted") == 0);
}

TEST_CASE("segment.jitter.ms makes a roll come earlier, by a part that stays the same") {
  TemporaryDirectory directory;
  storage::LogConfig config;
  config.segment_ms = 1'000'000;
  config.segment_jitter_ms = 900'000;
  std::set<std::int64_t> rolls;
  for (int i = 0; i < 8; ++i) {
    auto log = open(directory / ("t-" + std::to_string(i)), config);
    REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 1, .epoch = 0}), 0, 10'000));
    std::int64_t now = 10'000;
    while (log->segment_count() == 1 && now < 2'000'000) {
      now += 10'000;
      REQUIRE(log->maybe_roll(now));
    }
    CHECK(now - 10'000 > 90'000);
    CHECK(now - 10'000 <= 1'010'000);
    rolls.insert(now);
  }
  CHECK(rolls.size() > 4);
}
