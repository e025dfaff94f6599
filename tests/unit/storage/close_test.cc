// What a clean end costs and leaves.
#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;

namespace {

std::unique_ptr<Log> open(FaultFileSystem& files, bool clean = false,
                          base::Offset recovery_point = 0) {
  Log::OpenOptions options;
  options.clean_shutdown = clean;
  options.recovery_point = recovery_point;
  auto log = Log::open(files, "/data/t-0", {}, options);
  REQUIRE(log);
  return std::move(*log);
}

}  // namespace

TEST_CASE("a log to which nothing happened is closed without a call to the disk") {
  FaultFileSystem files(1);
  int calls = 0;
  const auto close = [&](Log& log) {
    calls = 0;
    files.fault = [&](DiskCall call, const std::string&) {
      if (call != DiskCall::open && call != DiskCall::read) ++calls;
      return base::Error{};
    };
    REQUIRE(log.close());
    files.fault = nullptr;
  };
  base::Buffer all = make_batch({.base = 0, .count = 5, .producer = 7});
  auto log = open(files);
  REQUIRE(log->append_verbatim(all, 0, 0));
  close(*log);
  CHECK(calls > 0);
  for (int i = 0; i < 2; ++i) {
    log = open(files, true, 5);
    CHECK(read_all(*log, 0) == all);
    CHECK(log->active_producers().size() == 1);
    close(*log);
    CHECK(calls == 0);
  }
  // The broker begins its epoch at each start.
  log = open(files, true, 5);
  REQUIRE(log->begin_epoch(3));
  CHECK(log->last_epoch() == 3);
  close(*log);
  CHECK(calls == 0);
  log = open(files, true, 5);
  CHECK(log->last_epoch() == 0);
  close(*log);
  CHECK(calls == 0);
  for (const char* what : {"appended", "cut"}) {
    INFO(what);
    log = open(files, true, 5);
    const base::Buffer more = make_batch({.base = 5, .epoch = 3, .producer = 8});
    REQUIRE(log->append_verbatim(more, 3, 0));
    if (what == std::string("cut")) {
      REQUIRE(sync(*log));
      REQUIRE(log->truncate_to(5));
    }
    close(*log);
    CHECK(calls > 4);
    log = open(files, true, 5);
    const bool cut = what == std::string("cut");
    CHECK(read_all(*log, 0) == (cut ? all : join({all, more})));
    CHECK(log->active_producers().size() == (cut ? 1 : 2));
    if (!cut) REQUIRE(log->truncate_to(5));
    close(*log);
  }
  // After a crash everything is looked at and written anew.
  log = open(files);
  close(*log);
  CHECK(calls > 4);
}

TEST_CASE("an epoch begun before the log was cut does not stay") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 5, .epoch = 1}), 1, 0));
  REQUIRE(log->close());
  log = open(files, true, 5);
  REQUIRE(log->begin_epoch(2));
  REQUIRE(log->advance_log_start(5));
  REQUIRE(log->close());
  log = open(files, true, 5);
  CHECK(log->log_start() == 5);
  CHECK(log->log_end() == 5);
  CHECK(log->last_epoch() == 1);
}
