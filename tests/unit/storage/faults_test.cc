// Failing disks: which calls fail, what is refused afterwards, and how a log comes back.
#include <cerrno>
#include <limits>

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

TEST_CASE("B05: after a failed write nothing is appended until the tail was verified again") {
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
  CHECK(sync(*log).error() == StorageErrc::sync_failed);
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

namespace {

// A log that works on, with one call of the disk failing now and then.
class Sufferer {
 public:
  explicit Sufferer(std::uint64_t seed) : random_(seed), files_(seed + 1), maker_(random_) {
    config_.segment_bytes = 1500;
    config_.index_interval_bytes = static_cast<std::uint32_t>(random_.below(600));
    config_.producer_expiration_ms = std::int64_t{1} << 60;
    far_gaps_ = random_.chance(30);
    log_ = open(files_, config_);
  }

  void step() {
    before_ = model_;
    appended_.clear();
    arm();
    const auto what = random_.below(20);
    const bool done = act(what);
    files_.fault = nullptr;
    if (!done) recover();
    trace_.note("choice " + std::to_string(what) + (done ? "" : " failed"), model_);
    // Here the batch is in, but what belongs beside it could not be written.
    if (log_->offline()) {
      REQUIRE(log_->reopen_after_error(0));
      model_.loaded = true;
    }
    const std::string differs = difference(*log_, model_, random_);
    INFO(differs << trace_.text());
    REQUIRE(differs.empty());
  }
  // What was said to be there is there for the next process, too.
  void restart() {
    REQUIRE(sync(*log_));
    log_ = open(files_, config_);
    model_.settle_epochs(log_->size_bytes() > 0);
    const std::string differs = difference(*log_, model_, random_);
    INFO(differs << trace_.text());
    REQUIRE(differs.empty());
  }
  int failures() const { return failures_; }

 private:
  void arm() {
    const int code = random_.chance(30) ? ENOSPC : EIO;
    auto countdown = random_.below(30);
    files_.fault = [code, countdown](DiskCall call, const std::string&) mutable {
      // A failed sync ends the log's life, another test's business.
      if (call == DiskCall::sync || call == DiskCall::sync_directory) return base::Error{};
      return countdown-- == 0 ? base::Error(code, boost::system::system_category()) : base::Error{};
    };
  }

  bool act(std::uint64_t what) {
    if (what < 12) {
      appended_ = maker_.next(model_, far_gaps_);
      if (!log_->append_verbatim(appended_, maker_.epoch, 0)) return false;
      model_.add(appended_);
      return true;
    }
    if (what < 13) return log_->maybe_roll(now_ += 2'000'000'000).has_value();
    if (what < 14) {
      model_.begun = {++maker_.epoch, model_.end};
      return log_->begin_epoch(maker_.epoch).has_value();
    }
    if (what < 16) {
      model_.start += static_cast<base::Offset>(random_.below(
          static_cast<std::uint64_t>(std::min<base::Offset>(model_.end - model_.start, 30) + 1)));
      REQUIRE(log_->advance_log_start(model_.start));
      return true;
    }
    if (what < 18) return sync(*log_).has_value();
    if (model_.end == model_.start) return true;
    model_.truncate_to(model_.end - 1);
    if (!log_->truncate_to(before_.end - 1)) return false;
    if (model_.batches.empty()) model_.end = log_->log_end();
    model_.settle_epochs(log_->size_bytes() > 0);
    return true;
  }

  void recover() {
    ++failures_;
    if (random_.chance(30)) {  // and once more, while it comes back
      arm();
      (void)log_->reopen_after_error(0);
      files_.fault = nullptr;
    }
    REQUIRE(log_->reopen_after_error(0));
    // A truncation that failed either did not begin or was carried out by the reopening.
    if (log_->log_end() == before_.end)
      model_ = before_;
    else if (appended_.empty())
      model_.settle_epochs(log_->size_bytes() > 0);
    model_.loaded = true;
    if (model_.batches.empty()) model_.end = log_->log_end();
    if (appended_.empty() || log_->log_end() == model_.end) return;
    const auto batch = protocol::parse_batch(appended_);
    if (log_->log_end() == batch->next_offset()) return model_.add(appended_);  // all was written
    // A batch behind a far gap was not written, but the gap is known.
    REQUIRE(log_->log_end() == batch->base_offset);
    REQUIRE(log_->log_end() > model_.end + std::numeric_limits<std::int32_t>::max());
    model_.end = log_->log_end();
  }

  base::Random random_;
  FaultFileSystem files_;
  storage::LogConfig config_;
  bool far_gaps_ = false;
  BatchMaker maker_;
  LogModel model_, before_;
  base::Buffer appended_;
  std::unique_ptr<Log> log_;
  Trace trace_;
  std::int64_t now_ = 0;
  int failures_ = 0;
};

}  // namespace

TEST_CASE("single errors at any call: the log comes back with what it acknowledged") {
  int failures = 0;
  for (const std::uint64_t seed : seeds(150)) {
    INFO("seed " << seed);
    Sufferer log(seed);
    for (int step = 0; step < 60; ++step) {
      INFO("step " << step);
      log.step();
    }
    log.restart();
    failures += log.failures();
  }
  CHECK(failures > 0);
}

TEST_CASE("whichever sync fails: the log is offline for good and vouches for no more") {
  storage::LogConfig config;
  config.segment_bytes = 700;
  int syncs = 0;
  for (int failing = 0; failing == syncs; ++failing) {
    INFO("sync number " << failing);
    FaultFileSystem files(static_cast<std::uint64_t>(failing) + 1);
    base::Offset durable = 0;
    auto log = open(files, config);
    syncs = 0;
    files.fault = [&](DiskCall call, const std::string&) {
      const bool one = call == DiskCall::sync || call == DiskCall::sync_directory;
      return one && syncs++ == failing ? io_error() : base::Error{};
    };
    // Of a batch with an abort marker in each round, so that there are all kinds of files.
    auto round = [&](base::LeaderEpoch epoch) -> base::Result<void> {
      for (int i = 0; i < 8; ++i) {
        const base::Offset at = log->log_end();
        TRY_VOID(log->append_verbatim(make_batch({.base = at,
                                                  .count = 2,
                                                  .epoch = epoch,
                                                  .producer = 5,
                                                  .sequence = 0,
                                                  .transactional = true}),
                                      epoch, 0));
        TRY_VOID(log->append_verbatim(
            make_marker(at + 2, epoch, 5, 0, protocol::TransactionResult::abort), epoch, 0));
      }
      TRY_VOID(sync(*log));
      durable = log->durable_end();
      return {};
    };
    auto work = [&]() -> base::Result<void> {
      TRY_VOID(round(1));
      TRY_VOID(round(2));
      TRY_VOID(log->advance_log_start(9));
      TRY_VOID(sync(*log));
      durable = std::min<base::Offset>(durable, 39);
      TRY_VOID(log->truncate_to(39));
      TRY_VOID(round(3));
      return log->close();
    };
    const auto worked = work();
    if (syncs <= failing) {
      REQUIRE(worked);  // there are no more to fail
      break;
    }
    syncs = failing + 1;
    files.fault = nullptr;
    CHECK(worked.error() == StorageErrc::sync_failed);
    CHECK(log->offline());
    CHECK(log->reopen_after_error(0).error() == StorageErrc::offline);
    CHECK(log->begin_sync() == nullptr);
    const base::Offset vouched = log->durable_end();
    log.reset();
    files.power_cut();
    log = open(files, config);
    CHECK(vouched >= durable);
    CHECK(log->log_end() >= vouched);
  }
  CHECK(syncs > 30);
}

TEST_CASE("a read error is the reader's only") {
  FaultFileSystem files(3);
  const base::Buffer batch = make_batch({.base = 0});
  {
    auto log = open(files);
    REQUIRE(log->append_verbatim(batch, 0, 0));
    REQUIRE(sync(*log));
  }
  auto log = open(files);  // one that does not remember where the batch lies
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
