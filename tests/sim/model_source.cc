#include "tests/sim/model_source.h"

#include <algorithm>

namespace sim {

void SourceModel::write(Kind kind, std::int64_t producer) {
  const Offset base = log.end();
  const Offset records = kind == Kind::data || kind == Kind::transactional
                             ? static_cast<Offset>(1 + random_.below(5))
                             : 1;
  // Every now and then compaction has left a gap behind the batch before.
  const Offset gap = random_.chance(5) ? static_cast<Offset>(random_.below(3)) : 0;
  log.append({.base = base,
              .next = base + records + gap,
              .epoch = epoch,
              .id = next_id_++,
              .kind = kind,
              .producer = producer,
              .mirrored = false,
              .life = life});
  ends_[epoch] = std::max(ends_[epoch], log.end());
  if (kind == Kind::transactional) open_.insert(producer);
  if (kind == Kind::commit || kind == Kind::abort) open_.erase(producer);
  if (random_.chance(80)) high_watermark = log.end();
}

// What an unclean leader does not have is gone, committed or not. It may have records instead that
// no other replica had seen, of an epoch that ended long ago.
void SourceModel::lose_tail() {
  const LeaderEpoch last = log.last_epoch().value_or(0);
  const bool whole_epoch = random_.chance(50);
  for (std::uint64_t n = 1 + random_.below(3); n > 0 && !log.empty(); --n) {
    log.truncate(std::max(log.start, log.batches.back().base));
    if (whole_epoch && !log.empty()) n = log.last_epoch() == last ? 2 : 1;
  }
  open_ = log.producers().open;
  high_watermark = std::min(high_watermark, log.end());
  // Of one epoch there is one history: only whoever holds all of it can have more of it.
  if (log.empty() || log.end() < ends_[*log.last_epoch()] || random_.chance(30)) return;
  const LeaderEpoch newest = epoch;
  epoch = *log.last_epoch();
  for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) write(Kind::data, -1);
  epoch = newest;
}

void SourceModel::act() {
  if (dead) return;
  const bool frozen =
      ever_recreated && !has_ids;  // else nobody could ever tell the new topic apart
  switch (random_.below(16)) {
    case 0:
    case 1:  // a clean election: the new leader has all that was committed
      if (frozen) return;
      if (random_.chance(50)) {
        while (!log.empty() && log.end() > high_watermark)
          log.truncate(std::max(log.start, log.batches.back().base));
        open_ = log.producers().open;
      }
      // Mostly by one; sometimes so far that it comes near or passes whoever copies from here.
      epoch += random_.chance(10)   ? 30
               : random_.chance(20) ? 5 + static_cast<LeaderEpoch>(random_.below(6))
                                    : 1;
      log.begin_epoch(epoch);
      if (random_.chance(30) && high_watermark > log.start)
        reported_end = log.start + static_cast<Offset>(random_.below(
                                       static_cast<std::uint64_t>(high_watermark - log.start + 1)));
      return;
    case 2:
      if (frozen || random_.chance(70)) return;
      ever_unclean = true;
      ++epoch;
      lose_tail();
      log.begin_epoch(epoch);
      return;
    case 3:  // retention, or DeleteRecords into the middle of a batch
      if (frozen || log.batches.size() < 2 || random_.chance(50)) return;
      if (random_.chance(30))
        log.raise_start(std::min(high_watermark, log.batches.front().next - 1));
      else
        for (std::uint64_t n = 1 + random_.below(4); n > 0 && log.batches.size() > 1; --n)
          log.raise_start(std::min(high_watermark, log.batches.front().next));
      return;
    case 4:
      metadata_epoch = epoch;
      return;
    case 5:
      reported_end = high_watermark = log.end();
      return;
    case 6:
      if (random_.chance(10)) away = !away;
      if (away && random_.chance(30)) away = false;
      return;
    case 7:
      if (!random_.chance(3) || log.empty() || ever_recreated) return;
      ever_recreated = true;
      ++life;
      log = Log{};
      open_.clear();
      ends_.clear();
      epoch = metadata_epoch = 0;
      high_watermark = reported_end = 0;
      log.begin_epoch(0);
      if (has_ids && random_.chance(50)) {
        write(Kind::data, -1);
        high_watermark = reported_end = log.end();
      }
      return;
    case 8:
      if (open_.empty() || frozen) return;
      write(random_.chance(50) ? Kind::commit : Kind::abort, *open_.begin());
      return;
    case 9:
    case 10:
      if (!frozen) write(Kind::transactional, static_cast<std::int64_t>(1 + random_.below(4)));
      return;
    default:
      if (!frozen)
        write(Kind::data,
              random_.chance(50) ? static_cast<std::int64_t>(1 + random_.below(4)) : -1);
  }
}

void SourceModel::settle() {
  dead = away = false;
  metadata_epoch = epoch;
  high_watermark = reported_end = log.end();
}

std::vector<Batch> SourceModel::read(Offset offset, std::size_t count) const {
  std::vector<Batch> out;
  for (const Batch& b : log.batches)
    if (b.next > offset && b.next <= high_watermark && out.size() < count) out.push_back(b);
  return out;
}

}  // namespace sim
