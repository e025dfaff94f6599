// Cutting a log. The intention is written down first (log_state.h) and carried out again if the
// process ends in the middle, so the steps need no order among themselves.
#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

// Writes down what is going to be done. If that fails nothing was begun.
base::Result<void> SegmentedLog::intend(LogState intention) {
  const std::optional<LogState> before = std::exchange(state_, intention);
  auto written = persist_state();
  if (written.has_error()) state_ = before;
  return written;
}

// Writes the state file now; jobs under way will leave it alone.
base::Result<void> SegmentedLog::persist_state() {
  std::lock_guard lock(turn_->mutex);
  ++turn_->generation;
  state_dirty_ = false;
  return files_.write_whole(path(log_state_file), base::as_bytes(state_->to_text()));
}

base::Result<void> SegmentedLog::truncate_to(Offset offset) {
  CHECK(!closed_);
  if (offline_) return StorageErrc::offline;
  if (offset > log_end_) return {};
  if (offset < log_start_) return restart_at(offset);
  if (offset == log_end_) {
    // No byte to cut, but epochs may have been begun here that belong to the history cut off.
    TRY_VOID(settle_epochs());
    if (!epochs_dirty_) return {};
    return sync_now();
  }
  durable_end_ = std::min(durable_end_, offset);  // nobody vouches for what is to go
  auto truncating = [&]() -> base::Result<void> {
    TRY(const Cut cut, plan_cut(offset));
    LogState intention;
    // Not `offset`: where the last batch that stays ends is known only to its segment.
    intention.recovery_point = std::min(durable_end_, segments_[cut.keep - 1]->base());
    intention.log_start = log_start_;
    intention.truncate_to = offset;
    TRY_VOID(intend(intention));
    TRY_VOID(perform_truncation(offset));
    state_->truncate_to.reset();
    state_->recovery_point = log_end_;
    return persist_state();
  };
  base::logger("storage").info("log {} is truncated from {} to {}", directory_, log_end_, offset);
  auto truncated = truncating();
  if (truncated.has_error()) return go_offline(truncated.error());
  if (log_end_ < log_start_) return restart_at(log_start_);
  return {};
}

// A segment that would lose its first batch goes as a whole, and so does an empty one that begins
// behind a gap; the log then ends with the segment before.
base::Result<SegmentedLog::Cut> SegmentedLog::plan_cut(Offset offset) {
  std::optional<Segment::Found> first;
  std::size_t found = 0;
  for (std::size_t i = segment_index(offset); i < segments_.size() && !first; ++i) {
    TRY(first, segments_[i]->find(offset));
    found = i;
  }
  Cut cut;
  cut.keep = segments_.size();
  if (first) {
    const bool inside = first->position > 0 || found == 0;
    cut.keep = inside ? found + 1 : found;
    if (inside) cut.position = first->position;
  }
  while (!cut.position && cut.keep > 1 && segments_[cut.keep - 1]->size_bytes() == 0 &&
         segments_[cut.keep - 1]->base() > offset)
    --cut.keep;
  return cut;
}

// On return everything that is left is durable.
base::Result<void> SegmentedLog::perform_truncation(Offset offset) {
  last_read_ = nullptr;
  // Once, unless the log is so damaged that a segment reaches beyond the next one's beginning.
  while (log_end_ > offset) {
    TRY(const Cut cut, plan_cut(offset));
    if (!cut.position && cut.keep == segments_.size()) return StorageErrc::corrupt_batch;
    while (segments_.size() > cut.keep) {
      TRY_VOID(segments_.back()->remove_files());
      segments_.pop_back();
    }
    Segment::Tail tail;
    if (cut.position) {
      TRY(tail, active().truncate(*cut.position, offset));
    } else {
      TRY(tail, active().load_tail());
    }
    log_end_ = tail.end;
    TRY_VOID(remove_snapshots(log_end_));
    TRY_VOID(load_producers(std::numeric_limits<Offset>::max()));
  }
  TRY_VOID(settle_epochs());
  durable_end_ = std::min(durable_end_, log_end_);
  cleaned_to_ = std::min(cleaned_to_, active().base());
  active_dirty_ = directory_dirty_ = true;
  return sync_now();
}

base::Result<void> SegmentedLog::restart_at(Offset offset) {
  CHECK(!closed_);
  if (offline_) return StorageErrc::offline;
  if (offset < 0 || offset > log_end_limit) return StorageErrc::offset_out_of_range;
  if (empty() && log_end_ == offset && log_start_ == offset && active().base() == offset &&
      epochs_.entries().empty() && producers_.size() == 0)
    return {};
  base::logger("storage").info("log {} is emptied and begins anew at {}", directory_, offset);
  durable_end_ = std::min(durable_end_, offset);
  auto restarting = [&]() -> base::Result<void> {
    LogState intention;
    intention.recovery_point = intention.log_start = offset;
    intention.restart_at = offset;
    TRY_VOID(intend(intention));
    TRY_VOID(perform_restart(offset));
    state_->restart_at.reset();
    return persist_state();
  };
  auto restarted = restarting();
  if (restarted.has_error()) return go_offline(restarted.error());
  return {};
}

base::Result<void> SegmentedLog::perform_restart(Offset offset) {
  last_read_ = nullptr;
  segments_.clear();
  doomed_.clear();
  dirty_files_.clear();
  TRY(auto listing, list_directory());
  for (Offset base : listing.segments) TRY_VOID(remove_segment_files(files_, directory_, base));
  for (const std::string& name : listing.removable) TRY_VOID(files_.remove(path(name.c_str())));
  TRY_VOID(remove_snapshots(std::nullopt));
  TRY(auto fresh, Segment::create(place(now_ms_), offset));
  segments_.push_back(std::move(fresh));
  producers_.clear();
  epochs_.clear();
  log_start_ = log_end_ = durable_end_ = cleaned_to_ = offset;
  active_dirty_ = directory_dirty_ = epochs_dirty_ = true;
  return sync_now();
}

// Those above an offset, or all.
base::Result<void> SegmentedLog::remove_snapshots(std::optional<Offset> above) {
  TRY(auto listing, list_directory());
  for (Offset offset : listing.snapshots)
    if (!above || offset > *above)
      TRY_VOID(files_.remove(segment_path(directory_, offset, ".snapshot")));
  return {};
}

}  // namespace storage
