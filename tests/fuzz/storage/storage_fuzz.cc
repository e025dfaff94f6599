// Damaged directories given to the log and the log directory. Nothing may crash or read outside its
// bytes (run it with the sanitizers); a log that can be opened is consistent, can be worked on, and
// comes back the same.
//
//   storage_fuzz [ROUNDS [SEED]]      the same seed takes the same way
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "tests/fuzz/storage/log_directories.h"
#include "tests/fuzz/storage/log_probe.h"

namespace storage_fuzz {
namespace {

using storage::Log;
using storage_test::FaultFileSystem;

struct Counts {
  std::uint64_t opened = 0, refused = 0, digest = 0;
};

storage::LogConfig some_config(base::Random& random) {
  storage::LogConfig config;
  config.segment_bytes = static_cast<std::uint32_t>(300 + random.below(1500));
  config.index_interval_bytes = static_cast<std::uint32_t>(random.below(300));
  return config;
}

base::Offset some_offset(base::Random& random) {
  if (random.chance(5)) return std::numeric_limits<base::Offset>::max() - base::Offset{1};
  if (random.chance(20)) return 3'000'000'000 + static_cast<base::Offset>(random.below(200));
  return static_cast<base::Offset>(random.below(150));
}

// Opened again it must be what it was when it was closed.
void come_back(FaultFileSystem& files, const std::string& place, std::unique_ptr<Log> log,
               bool verified, base::Random& random) {
  const base::Offset start = log->log_start(), end = log->log_end();
  const auto epoch = log->last_epoch();
  Log::OpenOptions options;
  options.clean_shutdown = random.chance(50);
  options.recovery_point = log->durable_end();
  options.log_start = start;
  const auto closed = log->close();
  log.reset();
  if (closed.has_error()) return;
  auto again = Log::open(files, place, some_config(random), options);
  CHECK(again.has_value());
  CHECK((*again)->log_start() == start);
  // After a crash the last segment is read again, and ends before what is no batch.
  CHECK(verified || options.clean_shutdown ? (*again)->log_end() == end
                                           : (*again)->log_end() <= end);
  // An epoch file that is wrong and well-formed is believed until the batches are read again.
  if (verified && start < end) CHECK((*again)->last_epoch() == epoch);
  (void)probe(**again, false, random);
}

void try_log(const Files& content, base::Random& random, Counts& counts) {
  FaultFileSystem files(random.below(1 << 20));
  const std::string place = "/d/t-0";
  put(files, place, content);
  Log::OpenOptions options;
  options.clean_shutdown = random.chance(40);
  if (random.chance(50)) options.recovery_point = some_offset(random);
  if (random.chance(30)) options.log_start = some_offset(random);
  const bool verified =
      !options.clean_shutdown && options.recovery_point == 0 && !content.contains("log-state");
  auto log = Log::open(files, place, some_config(random), options);
  if (!log) {
    ++counts.refused;
    return;
  }
  ++counts.opened;
  counts.digest += probe(**log, verified, random);
  if (random.chance(70)) work_on(**log, random);
  come_back(files, place, std::move(*log), verified, random);
}

void try_directory(const Files& content, base::Random& random, Counts& counts) {
  FaultFileSystem files(random.below(1 << 20));
  storage::LogDirectoryIdentity node;
  node.node_id = 1;
  base::Uuid topic;
  topic.bytes[0] = std::byte{1};
  {
    auto directory = storage::LogDirectory::open(files, "/d", node);
    CHECK(directory.has_value());
    CHECK((*directory)->write_checkpoints({{"t", 0, 40, 3, 40}}).has_value());
    CHECK((*directory)->close_clean({}).has_value());
  }
  Files around = take(files, "/d");
  put(files, "/d/t-0", content);
  CHECK(storage::write_partition_metadata(files, "/d/t-0", topic).has_value());
  damage(around, random);
  CHECK(files.remove_all("/d").has_value());
  put(files, "/d", around);
  auto directory = storage::LogDirectory::open(files, "/d", node);
  if (!directory) {
    ++counts.refused;
    return;
  }
  CHECK((*directory)->scan().has_value());
  auto log = (*directory)->open_log("t", 0, topic, some_config(random), 0, 0);
  if (!log) {
    ++counts.refused;
    return;
  }
  ++counts.opened;
  counts.digest += probe(**log, false, random);
}

int run(std::uint64_t rounds, std::uint64_t seed) {
  base::logger("storage").set_level(spdlog::level::off);  // it would say a lot
  base::Random random(seed);
  const std::vector<Files> sound = sound_directories();
  Counts counts;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    Files content = sound[random.below(sound.size())];
    if (i >= sound.size()) damage(content, random);
    if (random.chance(15))
      try_directory(content, random, counts);
    else
      try_log(content, random, counts);
  }
  CHECK(counts.opened > counts.refused);
  fmt::print("storage_fuzz: {} rounds from seed {}, {} opened, {} refused, digest {}\n", rounds,
             seed, counts.opened, counts.refused, counts.digest);
  return 0;
}

}  // namespace
}  // namespace storage_fuzz

int main(int argc, char** argv) {
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return storage_fuzz::run(rounds, seed);
}
