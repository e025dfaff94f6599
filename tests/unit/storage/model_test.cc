// Random operations on a log in memory, compared with a vector of batches after each one.
#include "tests/unit/storage/model.h"
#include "storage/error.h"
#include "tests/lib/fault_file.h"

using namespace storage_test;
using storage::Log;

namespace {

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed), files_(seed + 1), maker_(random_) {
    config_.segment_bytes = static_cast<std::uint32_t>(500 + random_.below(4000));
    config_.index_interval_bytes = static_cast<std::uint32_t>(random_.below(600));
    config_.segment_index_bytes = static_cast<std::uint32_t>(60 + random_.below(2000));
    config_.segment_ms = random_.chance(50) ? 30'000 : 1'000'000'000;
    config_.producer_expiration_ms = std::int64_t{1} << 60;
    far_gaps_ = random_.chance(30);
    open(false);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      const auto what = random_.below(100);
      step(what);
      trace_.note("choice " + std::to_string(what), model_);
      const std::string differs = difference(*log_, model_, random_);
      INFO(differs << trace_.text());
      REQUIRE(differs.empty());
    }
  }

 private:
  void open(bool clean) {
    log_.reset();
    Log::OpenOptions options;
    options.clean_shutdown = clean;
    options.recovery_point = recovery_point_;
    options.log_start = checkpointed_start_;
    options.now_ms = now_;
    auto log = Log::open(files_, "/data/t-0", config_, options);
    REQUIRE(log);
    log_ = std::move(*log);
    model_.loaded = true;
    model_.settle_epochs(log_->size_bytes() > 0);
  }

  void step(std::uint64_t what) {
    now_ += 100;
    if (what < 45) return append();
    if (what < 55) return append_as_leader();
    if (what < 65) {
      REQUIRE(sync(*log_));
      REQUIRE(log_->durable_end() == model_.end);
      durable_start_ = model_.start;
      if (random_.chance(50)) checkpoint();
    } else if (what < 70) {
      REQUIRE(log_->maybe_roll(now_ + (random_.chance(30) ? 2'000'000'000 : 0)));
    } else if (what < 77) {
      return truncate();
    } else if (what < 79) {
      const base::Offset at = random_.chance(50) ? model_.end + 10 : model_.start;
      REQUIRE(log_->restart_at(at));
      model_.restart_at(at);
      durable_start_ = at;
    } else if (what < 84) {
      const base::Offset to = model_.start + below(model_.end - model_.start + 1);
      REQUIRE(log_->advance_log_start(to));
      model_.start = to;
    } else if (what < 88) {
      const base::LeaderEpoch epoch = ++maker_.epoch;
      REQUIRE(log_->begin_epoch(epoch));
      model_.begun = {epoch, model_.end};
    } else if (what < 94) {
      REQUIRE(log_->close());
      durable_start_ = model_.start;
      checkpoint();
      open(true);
    } else {
      // As after kill -9: what was written is there, what was only in memory is not.
      const base::Offset start = log_->log_start();
      open(false);
      REQUIRE(log_->log_start() <= start);
      REQUIRE(log_->log_start() >= durable_start_);
      model_.start = log_->log_start();
      model_.settle_epochs(log_->size_bytes() > 0);
    }
  }

  base::Offset below(base::Offset limit) {
    return static_cast<base::Offset>(random_.below(static_cast<std::uint64_t>(limit)));
  }

  void append() {
    LogModel after = model_;
    base::Buffer all;
    for (auto n = 1 + random_.below(6); n > 0; --n) {
      base::Buffer one = maker_.next(after, far_gaps_);
      after.add(one);
      all.insert(all.end(), one.begin(), one.end());
    }
    if (random_.chance(10)) {
      // Refused as a whole.
      const base::Offset before = log_->log_end();
      base::Buffer bad = all;
      bad.back() ^= std::byte{1};
      CHECK(log_->append_verbatim(bad, maker_.epoch, now_).error() ==
            storage::StorageErrc::corrupt_batch);
      CHECK(log_->log_end() == before);
    }
    auto info = log_->append_verbatim(all, maker_.epoch, now_);
    REQUIRE(info);
    CHECK(info->last_offset + 1 == after.end);
    model_ = std::move(after);
  }

  void append_as_leader() {
    base::Buffer batch =
        make_batch({.base = 0,
                    .count = 1 + static_cast<int>(random_.below(5)),
                    .timestamp = 1'000'000 + static_cast<std::int64_t>(random_.below(100'000))});
    auto info = log_->append_as_leader(batch, maker_.epoch, now_, storage::AppendOrigin::client);
    REQUIRE(info);
    CHECK(info->first_offset == model_.end);
    model_.add(batch);
    CHECK(info->last_offset + 1 == model_.end);
  }

  void truncate() {
    base::Offset to = model_.end;
    if (!random_.chance(20) && !model_.batches.empty())
      to = std::max(model_.start,
                    model_.end - below(std::min<base::Offset>(model_.end - model_.start + 1, 60)));
    const bool cuts = to < model_.end;
    REQUIRE(log_->truncate_to(to));
    model_.truncate_to(to);
    // An emptied log may keep the base of its first segment.
    if (model_.batches.empty() && model_.start <= log_->log_end()) {
      REQUIRE(log_->log_end() <= to);
      model_.end = log_->log_end();
    }
    model_.settle_epochs(log_->size_bytes() > 0);
    if (!cuts) return;
    REQUIRE(log_->durable_end() == log_->log_end());
    durable_start_ = model_.start;
  }

  // What the directory's checkpoint files hold; it may be old when the log is opened.
  void checkpoint() {
    recovery_point_ = log_->durable_end();
    checkpointed_start_ = log_->log_start();
  }

  base::Random random_;
  FaultFileSystem files_;
  storage::LogConfig config_;
  bool far_gaps_ = false;
  BatchMaker maker_;
  LogModel model_;
  std::unique_ptr<Log> log_;
  Trace trace_;
  std::int64_t now_ = 10'000;
  base::Offset durable_start_ = 0;
  base::Offset recovery_point_ = 0;
  std::optional<base::Offset> checkpointed_start_;
};

}  // namespace

TEST_CASE("model: random operations") {
  for (const std::uint64_t seed : seeds(60)) {
    INFO("seed " << seed);
    World world(seed);
    world.run(120);
  }
}
