// Dropping old segments, and what is left of them.
#include <algorithm>
#include <functional>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/retention.h"
#include "storage/segmented_log.h"

namespace storage {

// Segments of many logs that began together should not end together. The share depends on the
// segment alone, so that it is the same after a restart.
std::int64_t SegmentedLog::segment_ms() const {
  const std::int64_t most = std::min(config_.segment_jitter_ms, config_.segment_ms - 1);
  if (most <= 0) return config_.segment_ms;
  const std::size_t share =
      std::hash<std::string>{}(directory_) ^ std::hash<Offset>{}(active().base() * 0x9e3779b9);
  return config_.segment_ms - static_cast<std::int64_t>(share % static_cast<std::uint64_t>(most));
}

base::Result<std::size_t> SegmentedLog::apply_retention(const RetentionLimits& limits) {
  CHECK(!closed_);
  now_ms_ = limits.now_ms;
  if (offline_) return StorageErrc::offline;
  std::vector<SegmentFacts> facts;
  for (const auto& segment : segments_) facts.push_back({segment->base(), segment->size_bytes()});
  const auto newest_ms = [&](std::size_t i) -> base::Result<std::int64_t> {
    Segment& segment = *segments_[i];
    auto newest = segment.max_timestamp_ms();
    if (i + 1 < segments_.size()) segment.release();
    if (newest.has_error()) return newest.error();
    // Records without a time are as old as their segment.
    if (*newest < 0) return segment.created_ms();
    return *newest;
  };
  TRY(const std::size_t count, segments_to_drop(facts, log_start_, log_end_, limits, newest_ms));
  if (count == 0) return count;
  if (count == segments_.size()) {
    auto rolled = roll(nullptr, limits.now_ms);
    if (rolled.has_error()) return go_offline(rolled.error());
  }
  const Offset start = std::max(log_start_, segments_[count]->base());
  base::logger("storage").info("log {}: {} segments are dropped, it begins at {} now", directory_,
                               count, start);
  // The segments may lie below the log start already.
  const std::size_t before = segments_.size();
  TRY_VOID(advance_log_start(start));
  return before - segments_.size();
}

std::vector<std::string> SegmentedLog::take_deleted(std::int64_t now_ms) {
  std::vector<std::string> paths;
  std::erase_if(deleted_, [&](const Deleted& one) {
    if (one.until_ms > now_ms) return false;
    for (const char* suffix : segment_suffixes)
      paths.push_back(segment_path(directory_, one.base, suffix) + deleted_suffix);
    return true;
  });
  return paths;
}

}  // namespace storage
