// Power cuts at random points of random work: what is left is a prefix of what was appended, holds
// all that was reported durable, and every cache says the same as a rebuild from the batches.
#include <algorithm>

#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/model.h"

using namespace storage_test;
using storage::Log;

namespace {

constexpr base::ProducerId leader_producer = 77;

// What a power cut must not do.
struct Violation {
  std::string what;
};
void must(bool holds, const std::string& what) {
  if (!holds) throw Violation{what};
}

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed), files_(seed + 1), maker_(random_) {
    config_.segment_bytes = static_cast<std::uint32_t>(500 + random_.below(3000));
    config_.index_interval_bytes = static_cast<std::uint32_t>(random_.below(600));
    config_.producer_expiration_ms = std::int64_t{1} << 60;
    far_gaps_ = random_.chance(20);
  }

  // What went wrong; empty if nothing did.
  std::string run(int lives) {
    int life = 0;
    try {
      open(false);
      for (; life < lives; ++life) live();
    } catch (const Violation& violation) {
      return "life " + std::to_string(life) + ": " + violation.what + trace_.text();
    }
    return {};
  }
  FaultFileSystem& files() { return files_; }

 private:
  void note(const std::string& what) {
    trace_.note(what + (files_.dead() ? " (dead), durable " : ", durable ") +
                    std::to_string(log_ ? log_->durable_end() : -1),
                attempt_);
  }

  void note_files(std::string what) {
    if (auto names = files_.list("/data/t-0"))
      for (const std::string& name : *names)
        if (!name.ends_with("index"))
          what += " " + name.substr(std::min(name.find_first_not_of('0'), std::size_t{19}));
    note(what);
  }

  void live() {
    files_.die_after(1 + random_.below(random_.chance(50) ? 60 : 300));
    while (!files_.dead()) {
      before_ = attempt_ = model_;
      durable_before_ = log_->durable_end();
      step();
      if (files_.dead()) break;
      must(log_->log_start() == attempt_.start && log_->log_end() == attempt_.end,
           "the log is [" + std::to_string(log_->log_start()) + ", " +
               std::to_string(log_->log_end()) + ")");
      model_ = attempt_;
    }
    do {
      log_.reset();
      files_.power_cut();
      note_files("left");
      // The next cut may come while the log is loaded.
      if (random_.chance(30)) files_.die_after(1 + random_.below(40));
      open(false);
    } while (files_.dead());
    files_.live_on();
    note_files("loaded");
    check();
    must(sync(*log_).has_value(), "the first sync");
  }

  void open(bool clean) {
    Log::OpenOptions options;
    options.clean_shutdown = clean;
    options.recovery_point = recovery_point_;
    options.now_ms = now_;
    auto log = Log::open(files_, "/data/t-0", config_, options);
    if (files_.dead()) return;
    must(log.has_value(), "opening");
    model_.loaded = attempt_.loaded = true;
    log_ = std::move(*log);
  }

  void step() {
    now_ += 100;
    const auto what = random_.below(100);
    if (what < 40) {
      append();
    } else if (what < 55) {
      append_as_leader();
    } else if (what < 75) {
      synchronize();
    } else if (what < 80) {
      (void)log_->maybe_roll(now_ + 2'000'000'000'000);
    } else if (what < 88) {
      truncate();
    } else if (what < 90) {
      attempt_.restart_at(random_.chance(50) ? model_.end + 10 : model_.start);
      cut_ = true;
      (void)log_->restart_at(attempt_.end);
      note("restart");
      if (!files_.dead()) settle();
    } else if (what < 94) {
      attempt_.start += below(model_.end - model_.start + 1);
      must(log_->advance_log_start(attempt_.start).has_value(), "advancing the log start");
      note("advance log start");
    } else if (what < 97) {
      const base::LeaderEpoch epoch = ++maker_.epoch;
      must(log_->begin_epoch(epoch).has_value(), "beginning an epoch");
      attempt_.begun = {epoch, attempt_.end};
    } else if (log_->close()) {
      log_.reset();
      open(true);
      note_files("close and open");
      if (files_.dead()) return;
      attempt_.settle_epochs(log_->size_bytes() > 0);
      settle();
    }
  }

  void append() {
    base::Buffer all;
    for (auto n = 1 + random_.below(6); n > 0; --n) {
      base::Buffer one = maker_.next(attempt_, far_gaps_);
      attempt_.add(one);
      all.insert(all.end(), one.begin(), one.end());
    }
    auto info = log_->append_verbatim(all, maker_.epoch, now_);
    note_files("append");
    if (!files_.dead()) must(info.has_value(), "appending");
  }

  // The last batch of the producer that appends as to a leader, if the log knows it.
  const ModelBatch* last_of_producer() const {
    for (auto it = model_.batches.rbegin(); it != model_.batches.rend(); ++it) {
      if (it->info.control() && !it->info.producer_id) return nullptr;  // a reset
      if (!it->info.control() && it->info.producer_id == leader_producer) return &*it;
    }
    return nullptr;
  }

  void append_as_leader() {
    BatchSpec spec;
    spec.count = 1 + static_cast<int>(random_.below(3));
    spec.timestamp = 1'000'000 + static_cast<std::int64_t>(random_.below(100'000));
    spec.producer = leader_producer;
    if (const ModelBatch* last = last_of_producer())
      spec.sequence = *last->info.last_sequence() + 1;
    base::Buffer batch = make_batch(spec);
    auto info = log_->append_as_leader(batch, maker_.epoch, now_, storage::AppendOrigin::client);
    if (!files_.dead()) must(info.has_value(), "appending as a leader");
    if (!info) protocol::set_base_offset(batch, attempt_.end);
    if (!info) protocol::set_partition_leader_epoch(batch, maker_.epoch);
    attempt_.add(batch);
    note("append as leader");
  }

  void synchronize() {
    auto job = log_->begin_sync();
    if (!job) return;
    const LogModel at_begin = attempt_;
    if (random_.chance(50)) append();
    // The log may also be cut while the job is under way; then it says nothing.
    const auto cut = random_.below(10);
    if (cut == 0 && !files_.dead()) truncate();
    auto outcome = job->run();
    if (cut == 1 && !files_.dead()) truncate();
    if (cut < 2 && !files_.dead() && random_.chance(70)) append();
    const auto finished = log_->finish_sync(*job, outcome);
    note("sync " + std::to_string(cut));
    durable_before_ = log_->durable_end();
    if (!finished || files_.dead()) return;
    if (cut >= 2) must(log_->durable_end() >= at_begin.end, "a sync did not advance");
    if (cut >= 2) durable_start_ = std::max(durable_start_, at_begin.start);
    if (random_.chance(50)) recovery_point_ = log_->durable_end();
  }

  void truncate() {
    base::Offset to = attempt_.end;
    if (!random_.chance(20))
      to = std::max(attempt_.start, attempt_.end - below(std::min<base::Offset>(
                                                       attempt_.end - attempt_.start + 1, 60)));
    before_ = attempt_;
    durable_before_ = log_->durable_end();
    const bool cuts = to < attempt_.end;
    attempt_.truncate_to(to);
    cut_ = cuts;
    (void)log_->truncate_to(to);
    note("truncate to " + std::to_string(to));
    if (!files_.dead()) attempt_.settle_epochs(log_->size_bytes() > 0);
    if (cuts && !files_.dead()) settle();
  }

  // After a cut that went through.
  void settle() {
    if (attempt_.batches.empty()) attempt_.end = log_->log_end();
    cut_ = false;
    durable_start_ = attempt_.start = log_->log_start();
  }

  base::Offset below(base::Offset limit) {
    return static_cast<base::Offset>(random_.below(static_cast<std::uint64_t>(limit)));
  }

  // True if the log is `whole` up to some batch, and reaches `durable`.
  bool is_prefix_of(const LogModel& whole, base::Offset durable) const {
    // A log that was emptied has no byte, and may end anywhere between.
    const bool emptied = cut_ && whole.batches.empty();
    if (emptied && (log_->size_bytes() > 0 || log_->log_start() != whole.start)) return false;
    const base::Offset reached = emptied ? whole.start : whole.end;
    if (log_->log_end() < std::min(durable, reached) || log_->log_end() > whole.end) return false;
    const base::Offset from = std::max(log_->log_start(), whole.start);
    if (from > log_->log_end()) return log_->log_end() >= durable;
    const auto ours = try_read_all(*log_, from);
    must(ours.has_value(),
         "reading [" + std::to_string(from) + ", " + std::to_string(log_->log_end()) + ")");
    const base::Buffer theirs = whole.bytes_from(from);
    return ours->size() <= theirs.size() && std::equal(ours->begin(), ours->end(), theirs.begin());
  }

  void check() {
    LogModel from = attempt_;
    if (cut_ && !is_prefix_of(attempt_, durable_before_)) from = before_;
    const std::string where = "log [" + std::to_string(log_->log_start()) + ", " +
                              std::to_string(log_->log_end()) + ") of [" +
                              std::to_string(from.start) + ", " + std::to_string(from.end) +
                              "), durable " + std::to_string(durable_before_) + ": ";
    // Nothing durable is missing, unless the log start had moved beyond it.
    must(is_prefix_of(from, durable_before_), where + "something durable is missing");
    must(log_->log_start() <= from.start, where + "the beginning is missing");
    if (!cut_) must(log_->log_start() >= durable_start_, where + "the log start went back");
    // Go on from what is left.
    model_ = from;
    while (!model_.batches.empty() && model_.batches.back().info.last_offset >= log_->log_end())
      model_.batches.pop_back();
    model_.epochs_from = std::min(model_.epochs_from, model_.batches.size());
    model_.start = log_->log_start();
    model_.end = log_->log_end();
    // A start that was written down before the records up to it: if these are lost, so is what they
    // told of producers.
    if (model_.start == model_.end && durable_before_ < model_.start && log_->size_bytes() == 0 &&
        log_->open_transactions().empty())
      model_.restart_at(model_.start);
    model_.settle_epochs(log_->size_bytes() > 0);
    durable_start_ = model_.start;
    cut_ = false;
    const std::string differs = difference(*log_, model_, random_);
    must(differs.empty(), where + differs);
    // What a producer did not hear of before the cut it sends again.
    if (const ModelBatch* last = last_of_producer()) {
      base::Buffer again = last->bytes;
      auto info = log_->append_as_leader(again, maker_.epoch, now_, storage::AppendOrigin::client);
      must(info && info->duplicate && info->first_offset == last->info.base_offset,
           where + "a batch sent again was appended again");
    }
  }

  base::Random random_;
  FaultFileSystem files_;
  storage::LogConfig config_;
  bool far_gaps_ = false;
  BatchMaker maker_;
  LogModel model_, before_, attempt_;
  std::unique_ptr<Log> log_;
  Trace trace_;
  std::int64_t now_ = 10'000;
  base::Offset recovery_point_ = 0;  // as checkpointed at some time, perhaps long ago
  base::Offset durable_before_ = 0, durable_start_ = 0;
  bool cut_ = false;  // a truncation or restart was under way
};

}  // namespace

TEST_CASE("power cuts: a prefix is left, with all that was durable") {
  for (const std::uint64_t seed : seeds(150)) {
    INFO("seed " << seed);
    const std::string wrong = World(seed).run(4);
    INFO(wrong);
    REQUIRE(wrong.empty());
  }
}

// The test above is worth what it can notice: syncs that are reported and not made.
TEST_CASE("power cuts: a sync that is left out is noticed") {
  const auto lost = GENERATE(
      values<std::string>({".log", ".timeindex", ".txnindex", "/data/t-0", "log-state.tmp"}));
  bool noticed = false;
  for (std::uint64_t seed = 0; seed < 400 && !noticed; ++seed) {
    World world(seed);
    world.files().lost_sync = [&](const std::string& path) { return path.ends_with(lost); };
    noticed = !world.run(4).empty();
  }
  INFO("syncs of " << lost);
  CHECK(noticed);
}

TEST_CASE("a torn write is cut at the last whole batch, wherever it is torn") {
  FaultFileSystem files(1);
  const base::Buffer first = make_batch({.base = 0, .count = 3});
  const base::Buffer all =
      join({first, make_batch({.base = 3, .count = 2}), make_batch({.base = 5, .count = 4})});
  const std::string file = "/t-0/00000000000000000000.log";
  Log::OpenOptions options;
  for (std::size_t size = 0; size <= all.size(); ++size) {
    REQUIRE(files.create_directory("/t-0"));
    {
      auto log = Log::open(files, "/t-0", {}, options);
      REQUIRE(log);
      REQUIRE((*log)->append_verbatim(all, 0, 0));
    }
    const bool zeros = size % 2 == 0;
    base::Buffer& content = files.content(file);
    content.resize(size);
    if (zeros) content.resize(all.size() + 1000);
    auto log = Log::open(files, "/t-0", {}, options);
    REQUIRE(log);
    base::Offset expected = 0;
    std::size_t whole = 0;
    for (auto [end, bytes] : {std::pair{3, first.size()},
                              std::pair{5, all.size() - make_batch({.base = 5, .count = 4}).size()},
                              std::pair{9, all.size()}})
      if (size >= bytes) expected = end, whole = bytes;
    if (zeros) {
      REQUIRE((*log)->log_end() >= expected);  // zeros may be just what was there
    } else {
      REQUIRE((*log)->log_end() == expected);
      REQUIRE((*log)->size_bytes() == whole);
    }
    base::Buffer left = read_all(**log, 0);
    REQUIRE(std::equal(left.begin(), left.end(), all.begin()));
    log->reset();
    REQUIRE(files.remove_all("/t-0"));
  }
}
