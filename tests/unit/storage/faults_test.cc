// Failing disks: which calls fail, what is refused afterwards, and how a log comes back.
#include <cerrno>

#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/model.h"

using namespace storage_test;
using storage::Log;
using storage::StorageErrc;

namespace {

const std::string directory = "/data/t-0";

base::Error io_error() {
  return {EIO, boost::system::system_category()};
}

std::unique_ptr<Log> open(FaultFileSystem& files, storage::LogConfig config = {},
                          std::uint64_t reserve_bytes = 0) {
  Log::OpenOptions options;
  options.reserve_bytes = reserve_bytes;
  auto log = Log::open(files, directory, config, options);
  REQUIRE(log);
  return std::move(*log);
}

}  // namespace

TEST_CASE("after a failed write nothing is appended until the tail was verified again") {
  FaultFileSystem files(3);
  auto log = open(files);
  const base::Buffer first = make_batch({.base = 0, .count = 3});
  REQUIRE(log->append_verbatim(first, 0, 0));
  files.fault = [&](DiskCall call, const std::string&) {
    return call == DiskCall::write ? io_error() : base::Error{};
  };
  CHECK(log->append_verbatim(make_batch({.base = 3}), 0, 0).error() == io_error());
  files.fault = nullptr;  // the disk is well again, but nobody may know
  for (int i = 0; i < 10; ++i)
    CHECK(log->append_verbatim(make_batch({.base = 3}), 0, 0).error() == StorageErrc::offline);
  CHECK(log->offline());
  CHECK(log->begin_sync() == nullptr);
  CHECK(read_all(*log, 0) == first);
  REQUIRE(log->reopen_after_error(0));
  CHECK_FALSE(log->offline());
  CHECK(log->log_end() == 3);
  const base::Buffer second = make_batch({.base = 3, .count = 2});
  REQUIRE(log->append_verbatim(second, 0, 0));
  CHECK(read_all(*log, 0) == join({first, second}));
  log.reset();
  CHECK(read_all(*open(files), 0) == join({first, second}));
}

TEST_CASE("after a failed sync the log stays offline") {
  FaultFileSystem files(3);
  auto log = open(files);
  REQUIRE(log->append_verbatim(make_batch({.base = 0}), 0, 0));
  files.fault = [&](DiskCall call, const std::string&) {
    return call == DiskCall::sync ? io_error() : base::Error{};
  };
  CHECK(sync(*log).error() == io_error());
  files.fault = nullptr;
  CHECK(log->durable_end() == 0);
  CHECK(log->append_verbatim(make_batch({.base = 1}), 0, 0).error() == StorageErrc::offline);
  CHECK(log->reopen_after_error(0).error() == StorageErrc::offline);
  CHECK(log->begin_sync() == nullptr);
}

TEST_CASE("a full disk refuses appends, keeps the log whole, and passes") {
  FaultFileSystem files(3);
  auto log = open(files);
  base::Buffer all;
  base::Offset next = 0;
  files.capacity_bytes = 20'000;
  int refused = 0;
  while (refused < 5) {
    const base::Buffer one = make_batch({.base = next, .value_bytes = 3000});
    auto info = log->append_verbatim(one, 0, 0);
    if (info) {
      all = join({all, one});
      ++next;
    } else {
      CHECK(info.error() == StorageErrc::no_space);
      CHECK_FALSE(log->offline());
      ++refused;
    }
    REQUIRE(next < 10);
  }
  CHECK(read_all(*log, 0) == all);
  CHECK(files.content(directory + "/00000000000000000000.log").size() == all.size());
  files.capacity_bytes = 1 << 30;
  const base::Buffer last = make_batch({.base = next});
  REQUIRE(log->append_verbatim(last, 0, 0));
  CHECK(read_all(*log, 0) == join({all, last}));
}

TEST_CASE("the reserve is refused before anything is written, and comes back") {
  FaultFileSystem files(3);
  files.capacity_bytes = 100'000;
  auto log = open(files, {}, 50'000);
  base::Offset next = 0;
  std::int64_t now = 0;
  base::Result<storage::AppendInfo> info = storage::AppendInfo{};
  while (info) {
    info = log->append_verbatim(make_batch({.base = next, .value_bytes = 5000}), 0, now);
    if (info) ++next;
    REQUIRE(next < 15);
  }
  CHECK(info.error() == StorageErrc::no_space);
  CHECK(files.free_bytes("/").value() >= 50'000);
  CHECK_FALSE(log->offline());
  REQUIRE(log->advance_log_start(next));  // deleting goes on
  files.capacity_bytes = 200'000;
  REQUIRE(log->append_verbatim(make_batch({.base = next}), 0, now));
}

TEST_CASE("single errors at any call: the log comes back with what it acknowledged") {
  for (std::uint64_t seed = 0; seed < seeds(150); ++seed) {
    INFO("seed " << seed);
    base::Random random(seed);
    FaultFileSystem files(seed + 1);
    storage::LogConfig config;
    config.segment_bytes = 1500;
    config.producer_expiration_ms = std::int64_t{1} << 60;
    auto log = open(files, config);
    BatchMaker maker(random);
    LogModel model;
    int failures = 0;
    for (int step = 0; step < 60; ++step) {
      INFO("step " << step);
      auto countdown = random.below(30);
      const int code = random.chance(30) ? ENOSPC : EIO;
      files.fault = [&](DiskCall call, const std::string&) {
        // A failed sync ends the log's life, another test's business.
        if (call == DiskCall::sync || call == DiskCall::sync_directory) return base::Error{};
        return countdown-- == 0 ? base::Error(code, boost::system::system_category())
                                : base::Error{};
      };
      const LogModel before = model;
      bool done = false;
      const auto what = random.below(10);
      if (what < 7) {
        base::Buffer one = maker.next(model, false);
        if (log->append_verbatim(one, maker.epoch, 0)) {
          model.add(one);
          done = true;
        }
      } else if (what < 8) {
        done = log->maybe_roll(step * std::int64_t{2'000'000'000}).has_value();
      } else if (model.end > model.start) {
        const base::Offset to = model.end - 1;
        done = log->truncate_to(to).has_value();
        model.truncate_to(to);
        if (done && model.batches.empty()) model.end = log->log_end();
      }
      files.fault = nullptr;
      if (!done) {
        ++failures;
        REQUIRE(log->reopen_after_error(0));
        // A truncation that failed either did not begin or was carried out by the reopening.
        if (log->log_end() == before.end) model = before;
        model.begun.reset();
        if (model.batches.empty()) model.end = log->log_end();
      } else if (log->offline()) {
        REQUIRE(log->reopen_after_error(0));  // the batch is in; its index entry was not written
      }
      compare(*log, model, random);
    }
    CHECK(failures > 0);
  }
}

TEST_CASE("a read error is the reader's only") {
  FaultFileSystem files(3);
  auto log = open(files);
  const base::Buffer batch = make_batch({.base = 0});
  REQUIRE(log->append_verbatim(batch, 0, 0));
  files.fault = [&](DiskCall call, const std::string&) {
    return call == DiskCall::read ? io_error() : base::Error{};
  };
  storage::ReadLimits limits;
  limits.max_bytes = 100;
  CHECK(log->read(0, limits).error() == io_error());
  files.fault = nullptr;
  CHECK_FALSE(log->offline());
  CHECK(read_all(*log, 0) == batch);
}
