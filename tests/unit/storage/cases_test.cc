// Single cases that have cost others data, by the name of what went wrong.
#include <cerrno>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;
using storage::StorageErrc;

namespace {

const std::string directory = "/data/t-0";

std::unique_ptr<Log> open(FaultFileSystem& files, storage::LogConfig config = {},
                          bool clean = false, base::Offset recovery_point = 0) {
  Log::OpenOptions options;
  options.clean_shutdown = clean;
  options.recovery_point = recovery_point;
  auto log = Log::open(files, directory, config, options);
  REQUIRE(log);
  return std::move(*log);
}

std::string file_name(base::Offset base, const std::string& suffix) {
  std::string digits = std::to_string(base);
  return directory + "/" + std::string(20 - digits.size(), '0') + digits + suffix;
}

// Sets four bytes of a record's value so that the batch's checksum becomes 0: the checksum is
// linear, so the bits to flip solve a system of 32 equations.
void force_crc_zero(base::MutableBytes batch) {
  const std::size_t at = batch.size() - 5;  // inside the last value; the last byte counts headers
  auto crc = [&] { return protocol::crc32c(batch.subspan(21)); };
  auto flip = [&](int bit) {
    batch[at - static_cast<std::size_t>(bit / 8)] ^= std::byte{1} << (bit % 8);
  };
  const std::uint32_t start = crc();
  std::uint32_t effect[32], bits[32];
  for (int bit = 0; bit < 32; ++bit) {
    flip(bit);
    effect[bit] = crc() ^ start;
    bits[bit] = 1u << bit;
    flip(bit);
  }
  std::uint32_t target = start, solution = 0;
  for (int column = 31, row = 0; column >= 0; --column) {
    int pivot = row;
    while (pivot < 32 && !(effect[pivot] >> column & 1)) ++pivot;
    if (pivot == 32) continue;
    std::swap(effect[pivot], effect[row]);
    std::swap(bits[pivot], bits[row]);
    for (int other = row + 1; other < 32; ++other)
      if (effect[other] >> column & 1) effect[other] ^= effect[row], bits[other] ^= bits[row];
    if (target >> column & 1) target ^= effect[row], solution ^= bits[row];
    ++row;
  }
  REQUIRE(target == 0);
  for (int bit = 0; bit < 32; ++bit)
    if (solution >> bit & 1) flip(bit);
  REQUIRE(crc() == 0);
  protocol::store_be(batch.data() + 17, std::uint32_t{0});
}

}  // namespace

TEST_CASE("B01: a batch whose checksum is 0 is a batch") {
  FaultFileSystem files(1);
  base::Buffer batch = make_batch({.base = 0, .value_bytes = 40});
  force_crc_zero(batch);
  const base::Buffer all = join({batch, make_batch({.base = 1})});
  REQUIRE(open(files)->append_verbatim(all, 0, 0));
  auto log = open(files);
  CHECK(log->log_end() == 2);
  CHECK(read_all(*log, 0) == all);
}

TEST_CASE("B02: missing or damaged indexes are rebuilt") {
  storage::LogConfig config;
  config.segment_bytes = 3000;
  config.index_interval_bytes = 100;
  base::Buffer all;
  for (int i = 0; i < 60; ++i)
    all = join({all, make_batch({.base = i * 2, .count = 2, .timestamp = 1000 + i * 10})});
  for (int kind = 0; kind < 5; ++kind) {
    INFO("damage " << kind);
    FaultFileSystem files(1);
    {
      auto log = open(files, config);
      REQUIRE(log->append_verbatim(all, 0, 0));
      REQUIRE(log->segment_count() > 2);
      REQUIRE(log->close());
    }
    const auto names = files.list(directory).value();
    for (const std::string& name : names) {
      if (!name.ends_with(".index") && !name.ends_with(".timeindex")) continue;
      const std::string path = directory + "/" + name;
      base::Buffer& content = files.content(path);
      if (kind == 0) REQUIRE(files.remove(path));
      if (kind == 1) content.resize(content.size() + 5);
      if (kind == 2) content.resize(content.size() + 240);  // zeros
      if (kind == 3)
        for (std::byte& b : content) b ^= std::byte{0x11};
      if (kind == 4)  // only in the middle, where opening does not look
        for (std::size_t i = content.size() / 4; i < content.size() / 2; ++i)
          content[i] ^= std::byte{0x35};
    }
    auto log = open(files, config, true);
    REQUIRE(log->log_end() == 120);
    for (base::Offset from = 0; from < 120; ++from) {
      storage::ReadLimits limits;
      limits.max_bytes = 1;
      auto one = log->read(from, limits);
      REQUIRE(one);
      REQUIRE(one->first_base == from / 2 * 2);
    }
    CHECK(read_all(*log, 0) == all);
    for (int i = 0; i < 60; ++i)
      REQUIRE(log->offset_for_timestamp(1000 + i * 10).value()->offset == i * 2);
    REQUIRE(log->max_timestamp().value()->offset == 119);
  }
}

TEST_CASE("B07: a torn producer snapshot falls back, and a resent batch is known") {
  for (int kind = 0; kind < 3; ++kind) {
    FaultFileSystem files(1);
    base::Buffer batch = make_batch({.base = 0, .count = 2, .producer = 4, .sequence = 0});
    const base::Buffer resent = batch;
    {
      auto log = open(files);
      REQUIRE(log->append_as_leader(batch, 0, 0, storage::AppendOrigin::client));
      REQUIRE(log->close());
    }
    base::Buffer& snapshot = files.content(file_name(2, ".snapshot"));
    REQUIRE(snapshot.size() == 56);
    if (kind == 0) snapshot.clear();
    if (kind == 1) snapshot.resize(30);
    if (kind == 2) snapshot[20] ^= std::byte{1};
    auto log = open(files, {}, true);
    base::Buffer again = resent;
    auto info = log->append_as_leader(again, 0, 0, storage::AppendOrigin::client);
    REQUIRE(info);
    CHECK(info->duplicate);
    CHECK(info->first_offset == 0);
    CHECK(info->last_offset == 1);
    CHECK(log->log_end() == 2);
  }
}

TEST_CASE("B10: truncation to the very end removes epochs begun there") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 5, .epoch = 1}), 1, 0));
  REQUIRE(log->begin_epoch(2));
  REQUIRE(log->begin_epoch(3));
  CHECK(log->last_epoch() == 3);
  REQUIRE(log->truncate_to(5));
  CHECK(log->last_epoch() == 1);
  CHECK(log->log_end() == 5);
  CHECK(base::as_text(files.content(directory + "/leader-epoch-checkpoint")) == "0\n1\n1 0\n");
}

TEST_CASE("B12: what a log answers for each epoch, also after a restart") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 10, .epoch = 1}), 9, 0));
  REQUIRE(log->append_verbatim(make_batch({.base = 10, .count = 15, .epoch = 3}), 9, 0));
  for (const char* state : {"live", "after a crash", "after a clean end"}) {
    INFO(state);
    auto end = [&](base::LeaderEpoch epoch) {
      auto found = log->end_offset_for(epoch);
      return found ? std::pair(found->epoch, found->end_offset)
                   : std::pair(base::LeaderEpoch{-1}, base::Offset{-1});
    };
    CHECK(end(0) == std::pair(0, base::Offset{0}));
    CHECK(end(1) == std::pair(1, base::Offset{10}));
    CHECK(end(2) == std::pair(1, base::Offset{10}));
    CHECK(end(3) == std::pair(3, base::Offset{25}));
    CHECK(end(4) == std::pair(-1, base::Offset{-1}));
    const bool clean = state == std::string("after a crash");
    if (clean) REQUIRE(log->close());
    log = open(files, {}, clean);
  }
}

TEST_CASE("epochs over a restart: those of batches stay, one begun without a batch goes") {
  FaultFileSystem files(1);
  for (bool clean : {true, false}) {
    INFO("clean " << clean);
    auto log = open(files);
    REQUIRE(log->restart_at(0));
    REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 5, .epoch = 1}), 1, 0));
    REQUIRE(log->begin_epoch(6));
    if (clean) REQUIRE(log->close());
    log = open(files, {}, clean);
    CHECK(log->last_epoch() == 1);
    // All records deleted: the batch in the file still tells, with no other file to help.
    REQUIRE(log->advance_log_start(5));
    REQUIRE(sync(*log));
    REQUIRE(log->begin_epoch(7));
    if (clean) REQUIRE(log->close());
    REQUIRE(files.remove(directory + "/leader-epoch-checkpoint"));
    log = open(files, {}, clean);
    CHECK(log->last_epoch() == 1);
    CHECK(log->epochs().front().end_offset == 5);
    // Nor is there a batch any more.
    REQUIRE(log->maybe_roll(std::int64_t{1} << 50));
    REQUIRE(log->advance_log_start(5));
    CHECK(log->last_epoch() == 1);
    if (clean) REQUIRE(log->close());
    log = open(files, {}, clean);
    CHECK(log->size_bytes() == 0);
    CHECK_FALSE(log->last_epoch());
    CHECK(log->log_start() == 5);
  }
}

TEST_CASE("B20: offsets that a 32-bit relative one cannot span") {
  FaultFileSystem files(1);
  const base::Buffer low = make_batch({.base = 0, .count = 3}),
                     high = make_batch({.base = 3'000'000'000, .count = 2});
  const base::Buffer both = join({low, high});
  auto log = open(files);
  REQUIRE(log->append_verbatim(both, 0, 0));
  CHECK(log->segment_count() == 2);
  CHECK(log->log_end() == 3'000'000'002);
  CHECK(read_all(*log, 0) == both);
  REQUIRE(log->append_verbatim(make_batch({.base = 3'000'000'000 + 0x7fffffff}), 0, 0));
  CHECK(log->segment_count() == 2);
  REQUIRE(log->append_verbatim(make_batch({.base = 3'000'000'001 + 0x7fffffff}), 0, 0));
  CHECK(log->segment_count() == 3);
  const base::Offset end = log->log_end();
  log = open(files);
  CHECK(log->log_end() == end);
  storage::ReadLimits limits;
  limits.max_bytes = 1;
  CHECK(log->read(3, limits)->first_base == 3'000'000'000);  // from inside the gap
}

TEST_CASE("B20: the first batch of an empty log may be far away") {
  FaultFileSystem files(1);
  auto log = open(files);
  const base::Buffer high = make_batch({.base = 5'000'000'000, .count = 2});
  REQUIRE(log->append_verbatim(high, 0, 0));
  // The empty segment stays: by it Kafka's loader, and ours, know that the log begins at 0.
  CHECK(log->segment_count() == 2);
  CHECK(read_all(*log, 0) == high);
  log = open(files);
  CHECK(log->log_start() == 0);
  CHECK(read_all(*log, 0) == high);
}

TEST_CASE("B20: the batch behind a far gap was not written") {
  FaultFileSystem files(1);
  auto log = open(files);
  const base::Buffer low = make_batch({.base = 0, .count = 3});
  REQUIRE(log->append_verbatim(low, 0, 0));
  files.fault = [](DiskCall call, const std::string& path) {
    const bool new_segment = path.ends_with("3000000000.log");
    return call == DiskCall::write && new_segment
               ? base::Error(EIO, boost::system::system_category())
               : base::Error{};
  };
  CHECK(log->append_verbatim(make_batch({.base = 3'000'000'000}), 0, 0).has_error());
  files.fault = nullptr;
  REQUIRE(log->reopen_after_error(0));
  // The gap is known, and the log goes on behind it.
  CHECK(log->log_end() == 3'000'000'000);
  base::Buffer own = make_batch({.base = 0});
  CHECK(log->append_as_leader(own, 0, 0, storage::AppendOrigin::client)->first_offset ==
        3'000'000'000);
  log = open(files);
  CHECK(log->log_end() == 3'000'000'001);
  CHECK(read_all(*log, 0) == join({low, own}));
  REQUIRE(log->truncate_to(3'000'000'000));
  CHECK(log->log_end() == 3);

  files.fault = [](DiskCall call, const std::string& path) {
    return call == DiskCall::write && path.ends_with("6000000000.log")
               ? base::Error(ENOSPC, boost::system::system_category())
               : base::Error{};
  };
  CHECK(log->append_verbatim(make_batch({.base = 6'000'000'000}), 0, 0).error() ==
        StorageErrc::no_space);
  files.fault = nullptr;
  CHECK(log->log_end() == 6'000'000'000);
  REQUIRE(log->truncate_to(100));  // no batch reaches so far, but an empty segment does
  CHECK(log->log_end() == 3);
  CHECK(read_all(*log, 0) == low);
}

TEST_CASE("B24: timestamps that go back, and extreme ones") {
  constexpr std::int64_t day = 24ll * 3600 * 1000, now = 1'700'000'000'000;
  FaultFileSystem files(1);
  storage::LogConfig config;
  config.index_interval_bytes = 0;
  auto log = open(files, config);
  const std::int64_t stamps[] = {now, now - 60 * day, now - 59 * day, -1, 0, now, now + 1};
  base::Offset next = 0;
  for (std::int64_t stamp : stamps)
    REQUIRE(log->append_verbatim(make_batch({.base = next++, .timestamp = stamp}), 0, now));
  for (bool reopened : {false, true}) {
    if (reopened) log = open(files, config);
    CHECK(log->segment_count() == 1);
    CHECK(log->offset_for_timestamp(now - 60 * day).value()->offset == 0);
    CHECK(log->offset_for_timestamp(now).value()->offset == 0);
    CHECK(log->offset_for_timestamp(now + 1).value()->offset == 6);
    CHECK(log->offset_for_timestamp(now + 2).value() == std::nullopt);
    CHECK(log->max_timestamp().value()->offset == 6);
  }
  // Time rolls by the records' own clock: an old batch does not, a new one does.
  REQUIRE(log->append_verbatim(make_batch({.base = next++, .timestamp = now - 400 * day}), 0, now));
  CHECK(log->segment_count() == 1);
  REQUIRE(log->append_verbatim(make_batch({.base = next++, .timestamp = now + 8 * day}), 0, now));
  CHECK(log->segment_count() == 2);
  REQUIRE(log->append_verbatim(
      make_batch({.base = next++, .timestamp = std::numeric_limits<std::int64_t>::max() - 5}), 0,
      now));
  CHECK(log->segment_count() == 3);
}

TEST_CASE("E36: a log start inside a batch survives restarts") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->restart_at(4));
  CHECK(log->append_verbatim(make_batch({.base = 0, .count = 4}), 0, 0).error() ==
        StorageErrc::out_of_order_offset);  // does not reach the start
  const base::Buffer batch = make_batch({.base = 0, .count = 10});
  REQUIRE(log->append_verbatim(batch, 0, 0));
  for (int i = 0; i < 3; ++i) {
    CHECK(log->log_start() == 4);
    CHECK(log->log_end() == 10);
    CHECK(read_all(*log, 4) == batch);
    storage::ReadLimits limits;
    CHECK(log->read(3, limits).error() == StorageErrc::offset_out_of_range);
    CHECK(log->append_verbatim(make_batch({.base = 9}), 0, 0).error() ==
          StorageErrc::out_of_order_offset);
    if (i == 1) REQUIRE(log->close());
    log = open(files, {}, i == 1);
  }
}

TEST_CASE("refused batches change nothing") {
  FaultFileSystem files(1);
  auto log = open(files);
  REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 5, .epoch = 3}), 3, 0));
  auto refused = [&](const base::Buffer& bytes, base::LeaderEpoch leader) {
    auto info = log->append_verbatim(bytes, leader, 0);
    CHECK(log->log_end() == 5);
    return info.error();
  };
  CHECK(refused(make_batch({.base = 4, .epoch = 3}), 3) == StorageErrc::out_of_order_offset);
  CHECK(refused(make_batch({.base = 5, .epoch = 4}), 3) == StorageErrc::epoch_above_leader);
  CHECK(refused(make_batch({.base = 5, .epoch = 2}), 3) == StorageErrc::epoch_goes_back);
  const base::Buffer good = make_batch({.base = 5, .epoch = 3});
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (at >= 12 && at < 16) continue;  // the epoch is outside the checksum
    if (at < 8) continue;               // so is the offset
    base::Buffer bad = good;
    bad[at] ^= std::byte{0x40};
    CHECK(refused(bad, 3) == StorageErrc::corrupt_batch);
  }
  CHECK(refused(base::Buffer(good.begin(), good.end() - 1), 3) == StorageErrc::corrupt_batch);
  base::Buffer after = join({good, make_batch({.base = 5, .epoch = 3})});
  CHECK(refused(after, 3) == StorageErrc::out_of_order_offset);
}

TEST_CASE("bit rot below the recovery point cuts nothing") {
  FaultFileSystem files(1);
  const base::Buffer first = make_batch({.base = 0, .value_bytes = 200}),
                     second = make_batch({.base = 1});
  {
    auto log = open(files);
    REQUIRE(log->append_verbatim(join({first, second}), 0, 0));
  }
  files.content(file_name(0, ".log"))[150] ^= std::byte{1};
  auto log = open(files, {}, false, 1);
  CHECK(log->log_end() == 2);
  log = open(files, {}, false, 0);  // nothing vouches for it: cut
  CHECK(log->log_end() == 0);
}

TEST_CASE("read limits: whole first batch, cut rest, nothing at or above the bound") {
  FaultFileSystem files(1);
  auto log = open(files);
  const base::Buffer one = make_batch({.base = 0, .count = 2, .value_bytes = 100}),
                     two = make_batch({.base = 2, .count = 2, .value_bytes = 100});
  REQUIRE(log->append_verbatim(join({one, two}), 0, 0));
  storage::ReadLimits limits;
  limits.max_bytes = 10;
  CHECK(log->read(0, limits)->slice.size == one.size());
  limits.at_least_one_batch = false;
  CHECK(log->read(0, limits)->slice.size == 0);
  CHECK(log->read(0, limits)->first_base == 0);  // there is something
  limits.max_bytes = static_cast<std::uint32_t>(one.size() + 7);
  CHECK(log->read(0, limits)->slice.size == one.size() + 7);
  limits.below = 2;
  CHECK(log->read(0, limits)->slice.size == one.size());
  CHECK(log->read(2, limits)->slice.size == 0);
  limits.below = 1;  // a batch that begins below comes whole
  CHECK(log->read(0, limits)->slice.size == one.size());
}

TEST_CASE("the leader's door: offsets, epochs, append time, limits, transactions") {
  FaultFileSystem files(1);
  storage::LogConfig config;
  config.log_append_time = true;
  config.max_message_bytes = 300;
  auto log = open(files, config);
  REQUIRE(log->begin_epoch(7));
  base::Buffer batch = make_batch({.base = 0, .count = 3});
  auto info = log->append_as_leader(batch, 7, 4242, storage::AppendOrigin::client);
  REQUIRE(info);
  CHECK(info->log_append_time_ms == 4242);
  auto stored = protocol::parse_batch(read_all(*log, 0));
  REQUIRE(stored);
  CHECK(stored->log_append_time());
  CHECK(stored->max_timestamp == 4242);
  CHECK(stored->partition_leader_epoch == 7);
  CHECK(log->max_timestamp().value()->offset == 0);
  base::Buffer large = make_batch({.base = 0, .value_bytes = 400});
  CHECK(log->append_as_leader(large, 7, 0, storage::AppendOrigin::client).error() ==
        StorageErrc::batch_too_large);
  REQUIRE(log->append_as_leader(large, 7, 0, storage::AppendOrigin::coordinator));
  CHECK(log->append_as_leader(batch, 6, 0, storage::AppendOrigin::client).error() ==
        StorageErrc::epoch_goes_back);
  base::Buffer open_one = make_batch(
      {.base = 0, .producer = 1, .producer_epoch = 3, .sequence = 0, .transactional = true});
  REQUIRE(log->append_as_leader(open_one, 7, 0, storage::AppendOrigin::client));
  CHECK(log->last_stable_offset(log->log_end()) == 4);
  base::Buffer marker = make_marker(0, 0, 1, 3, protocol::TransactionResult::abort, 5);
  CHECK(log->append_as_leader(marker, 7, 0, storage::AppendOrigin::client).error() ==
        StorageErrc::corrupt_batch);
  REQUIRE(log->append_as_leader(marker, 7, 0, storage::AppendOrigin::coordinator));
  CHECK(log->last_stable_offset(log->log_end()) == log->log_end());
  auto aborted = log->aborted_transactions(0, log->log_end());
  REQUIRE(aborted);
  REQUIRE(aborted->size() == 1);
  CHECK(aborted->front().first_offset == 4);
  base::Buffer stale = make_marker(0, 0, 1, 3, protocol::TransactionResult::abort, 4);
  CHECK(log->append_as_leader(stale, 7, 0, storage::AppendOrigin::coordinator).error() ==
        StorageErrc::coordinator_fenced);
}
