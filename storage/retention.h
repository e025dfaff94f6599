// Which of a log's oldest segments are to go. Pure.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "storage/log.h"

namespace storage {

struct SegmentFacts {
  Offset base = 0;
  std::uint64_t size_bytes = 0;
};

// Kafka's rules, in its order: segments below the log start, then by size, then by age; none that
// reaches above the high watermark, and of the last one not when it is empty. How many, counted
// from the oldest. `newest_ms` tells the newest timestamp of a segment; it is asked of those only
// that nothing else decides, since the answer may cost a look at the disk.
base::Result<std::size_t> segments_to_drop(
    std::span<const SegmentFacts> segments, Offset log_start, Offset log_end,
    const RetentionLimits& limits,
    const std::function<base::Result<std::int64_t>(std::size_t)>& newest_ms);

}  // namespace storage
