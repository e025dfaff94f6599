#include "tests/fuzz/storage/log_probe.h"

#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/batch.h"
#include "tests/fuzz/storage/log_directories.h"

namespace storage_fuzz {
namespace {

using base::Offset;
using storage::Log;

Offset below(base::Random& random, Offset limit) {
  return static_cast<Offset>(random.below(static_cast<std::uint64_t>(limit)));
}

// Batches from the log start on, in order, as far as they can be read.
std::uint64_t read_through(const Log& log, bool verified) {
  std::uint64_t sum = 0;
  Offset from = log.log_start();
  while (from < log.log_end()) {
    storage::ReadLimits limits;
    limits.max_bytes = 700;
    const auto result = log.read(from, limits);
    CHECK(result.has_value() || !verified);
    if (!result || result->slice.size == 0) return sum;
    base::Buffer bytes(result->slice.size);
    CHECK(result->slice.file->pread(bytes, result->slice.position).has_value());
    protocol::BatchIterator it(bytes, verified ? protocol::CrcCheck::yes : protocol::CrcCheck::no);
    const Offset before = from;
    while (it.next()) {
      if (it.info().last_offset < from) {
        CHECK(!verified);
        return sum;
      }
      from = it.info().next_offset();
      sum += it.info().size_bytes;
    }
    CHECK(!verified || !it.stopped() || it.stopped() == protocol::BatchErrc::incomplete);
    if (from == before) {
      CHECK(!verified);
      return sum;
    }
  }
  CHECK(!verified || from == log.log_end());
  return sum;
}

}  // namespace

std::uint64_t probe(const Log& log, bool verified, base::Random& random) {
  const Offset start = log.log_start(), end = log.log_end();
  CHECK(start >= 0 && start <= end && log.durable_end() == end);
  CHECK(log.segment_count() > 0 && !log.offline());
  Offset last = -1;
  base::LeaderEpoch epoch = -1;
  for (const auto& one : log.epochs()) {
    CHECK(one.epoch > epoch && one.end_offset > last);
    CHECK(one.end_offset >= start && one.end_offset <= end);
    epoch = one.epoch;
    last = one.end_offset;
  }
  CHECK(log.last_epoch().value_or(-1) == epoch);
  for (base::LeaderEpoch asked : {0, 1, 2, 3, 0x7fffffff})
    if (auto found = log.end_offset_for(asked)) CHECK(found->end_offset <= end);
  CHECK(log.last_stable_offset(end) <= end);

  std::uint64_t sum = read_through(log, verified);
  for (int i = 0; i < 4; ++i) {
    storage::ReadLimits limits;
    limits.max_bytes = static_cast<std::uint32_t>(random.below(500));
    const Offset from = start + below(random, end - start + 1);
    limits.below = from + below(random, 20);
    const auto one = log.read(from, limits);
    CHECK(one.has_value() || !verified);
    const auto hit = log.offset_for_timestamp(900 + below(random, 1200));
    if (hit && *hit && verified) CHECK((*hit)->offset >= start && (*hit)->offset < end);
    CHECK(log.aborted_transactions(from, from + below(random, 30)).has_value());
  }
  const auto newest = log.max_timestamp();
  if (newest && *newest) sum += static_cast<std::uint64_t>((*newest)->offset);
  for (const auto& open : log.open_transactions())
    sum += static_cast<std::uint64_t>(open.producer_id);
  return sum;
}

void work_on(Log& log, base::Random& random) {
  for (auto n = random.below(8); n > 0; --n) {
    const base::LeaderEpoch epoch = std::max<base::LeaderEpoch>(4, log.last_epoch().value_or(0));
    const Offset end = log.log_end();
    switch (random.below(8)) {
      case 0: {
        base::Buffer batch = a_batch(0, 2, epoch, random);
        auto info = log.append_as_leader(batch, epoch, 0, storage::AppendOrigin::coordinator);
        if (info) CHECK(info->first_offset == end && log.log_end() == end + 2);
        break;
      }
      case 1:
      case 2: {
        const Offset at = end + below(random, 5) + (random.chance(5) ? 3'000'000'000 : 0);
        const base::Buffer batch = a_batch(at, 3, epoch, random);
        if (log.append_verbatim(batch, epoch, 0)) CHECK(log.log_end() == at + 3);
        break;
      }
      case 3:
        if (auto job = log.begin_sync()) {
          const auto outcome = job->run();
          if (log.finish_sync(*job, outcome)) CHECK(log.durable_end() >= job->end_offset());
        }
        break;
      case 4: {
        const Offset to = log.log_start() + below(random, end - log.log_start() + 1);
        if (log.truncate_to(to)) CHECK(log.log_end() <= to);
        break;
      }
      case 5:
        (void)log.advance_log_start(log.log_start() + below(random, end - log.log_start() + 1));
        break;
      case 6: {
        const auto compacted = log.compact({});
        if (compacted) CHECK(log.log_end() == end);
        break;
      }
      default:
        (void)log.maybe_roll(std::int64_t{1} << 50);
    }
    CHECK(log.log_start() <= log.log_end());
  }
}

}  // namespace storage_fuzz
