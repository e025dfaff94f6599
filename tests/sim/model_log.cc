#include "tests/sim/model_log.h"

#include <algorithm>

namespace sim {

std::optional<LeaderEpoch> Log::last_epoch() const {
  if (batches.empty()) return std::nullopt;
  return batches.back().epoch;
}

std::optional<LeaderEpoch> Log::newest_mirrored_epoch() const {
  std::optional<LeaderEpoch> newest;
  for (const Batch& b : batches)
    if (b.mirrored) newest = std::max(newest.value_or(b.epoch), b.epoch);
  return newest;
}

Offset Log::end_of_epoch(LeaderEpoch epoch) const {
  Offset end = start;
  for (const Batch& b : batches)
    if (b.epoch <= epoch) end = b.next;
  return end;
}

Producers Log::producers() const {
  Producers p;
  for (const Batch& b : batches) {
    if (b.kind == Kind::producer_reset) {
      p.known.clear();  // but a reader still waits for the end of what was begun
      p.open.clear();
      continue;
    }
    if (b.producer < 0) continue;
    if (b.mirrored) p.known.insert(b.producer);
    if (b.kind == Kind::transactional) {
      p.open.insert(b.producer);
      if (b.mirrored) p.unfinished.insert(b.producer);
    } else if (b.kind == Kind::commit || b.kind == Kind::abort) {
      p.open.erase(b.producer);
      p.unfinished.erase(b.producer);
    }
  }
  return p;
}

void Log::append(Batch batch) {
  begin_epoch(batch.epoch);
  batches.push_back(batch);
}

void Log::truncate(Offset offset) {
  if (offset < start) return restart(offset);
  while (!batches.empty() && batches.back().next > offset) {
    empty_end_ = std::max(start, batches.back().base);
    batches.pop_back();
  }
  while (!epochs_.empty() && epochs_.back().start >= end() && end() > start) epochs_.pop_back();
  if (batches.empty()) epochs_.clear();
}

void Log::restart(Offset offset) {
  batches.clear();
  epochs_.clear();
  start = empty_end_ = offset;
}

void Log::raise_start(Offset offset) {
  if (offset <= start) return;
  start = offset;
  while (!batches.empty() && batches.front().next <= offset) {
    empty_end_ = std::max(offset, batches.front().next);
    batches.pop_front();
  }
  while (epochs_.size() > 1 && epochs_[1].start <= offset) epochs_.erase(epochs_.begin());
  if (!epochs_.empty()) epochs_.front().start = std::max(epochs_.front().start, offset);
}

void Log::begin_epoch(LeaderEpoch epoch) {
  if (!epochs_.empty() && epochs_.back().epoch >= epoch) return;
  while (!epochs_.empty() && epochs_.back().start >= end()) epochs_.pop_back();
  epochs_.push_back({epoch, end()});
}

std::optional<mirror::EpochEnd> Log::end_offset_for(LeaderEpoch epoch) const {
  if (epochs_.empty()) return std::nullopt;
  if (epochs_.back().epoch == epoch) return mirror::EpochEnd{epoch, end()};
  const auto higher =
      std::ranges::find_if(epochs_, [&](const Entry& e) { return e.epoch > epoch; });
  if (higher == epochs_.end()) return std::nullopt;
  if (higher == epochs_.begin()) return mirror::EpochEnd{epoch, higher->start};
  return mirror::EpochEnd{std::prev(higher)->epoch, higher->start};
}

}  // namespace sim
