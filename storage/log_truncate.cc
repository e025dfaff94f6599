// Cutting a log. The intention is written down first (log_state.h) and carried out again if the
// process ends in the middle, so the steps need no order among themselves.
#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

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
    if (!epochs_.truncate_to(offset)) return {};
    epochs_dirty_ = true;
    return sync_now();
  }
  auto truncating = [&]() -> base::Result<void> {
    if (!state_) state_.emplace();
    state_->recovery_point = std::min(durable_end_, offset);
    state_->log_start = log_start_;
    state_->truncate_to = offset;
    TRY_VOID(persist_state());
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

// On return everything that is left is durable.
base::Result<void> SegmentedLog::perform_truncation(Offset offset) {
  std::size_t at = segment_index(offset);
  std::optional<Segment::Found> cut;
  for (; at < segments_.size() && !cut; ++at) {
    TRY(cut, segments_[at]->find(offset));
  }
  if (cut) {
    --at;
    const bool whole = cut->position == 0 && at > 0;  // the segment before ends where this begins
    last_read_ = nullptr;
    while (segments_.size() > (whole ? at : at + 1)) {
      TRY_VOID(segments_.back()->remove_files());
      segments_.pop_back();
    }
    Segment::Tail tail;
    if (whole) {
      TRY(tail, active().load_tail());
    } else {
      TRY(tail, active().truncate(cut->position, offset));
    }
    log_end_ = tail.end;
    TRY_VOID(remove_snapshots(log_end_));
    TRY_VOID(load_producers(std::numeric_limits<Offset>::max()));
  }
  if (epochs_.truncate_to(std::min(offset, log_end_))) epochs_dirty_ = true;
  durable_end_ = std::min(durable_end_, log_end_);
  cleaned_to_ = std::min(cleaned_to_, active().base());
  active_dirty_ = directory_dirty_ = true;
  return sync_now();
}

base::Result<void> SegmentedLog::restart_at(Offset offset) {
  CHECK(!closed_);
  if (offline_) return StorageErrc::offline;
  if (empty() && log_end_ == offset && log_start_ == offset && active().base() == offset &&
      epochs_.entries().empty())
    return {};
  base::logger("storage").info("log {} is emptied and begins anew at {}", directory_, offset);
  auto restarting = [&]() -> base::Result<void> {
    if (!state_) state_.emplace();
    state_->recovery_point = state_->log_start = offset;
    state_->truncate_to.reset();
    state_->restart_at = offset;
    TRY_VOID(persist_state());
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
