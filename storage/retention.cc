#include "storage/retention.h"

namespace storage {

base::Result<std::size_t> segments_to_drop(
    std::span<const SegmentFacts> segments, Offset log_start, Offset log_end,
    const RetentionLimits& limits,
    const std::function<base::Result<std::int64_t>(std::size_t)>& newest_ms) {
  const auto end_of = [&](std::size_t i) {
    return i + 1 < segments.size() ? segments[i + 1].base : log_end;
  };
  const auto may_go = [&](std::size_t i) {
    const bool last = i + 1 == segments.size();
    return i < segments.size() && end_of(i) <= limits.high_watermark &&
           !(last && segments[i].size_bytes == 0);
  };
  std::size_t count = 0;
  // The active segment stays, whatever the log start: its end is not known yet.
  while (count + 1 < segments.size() && may_go(count) && end_of(count) <= log_start) ++count;

  if (limits.retention_bytes) {
    std::uint64_t size = 0;
    for (const SegmentFacts& one : segments.subspan(count)) size += one.size_bytes;
    std::uint64_t above = size > *limits.retention_bytes ? size - *limits.retention_bytes : 0;
    while (above > 0 && may_go(count) && segments[count].size_bytes <= above)
      above -= segments[count++].size_bytes;
  }
  if (limits.retention_ms) {
    while (may_go(count)) {
      TRY(const std::int64_t newest, newest_ms(count));
      // Not a difference: timestamps are the clients', and may be anything.
      if (newest >= limits.now_ms || limits.now_ms - newest <= *limits.retention_ms) break;
      ++count;
    }
  }
  return count;
}

}  // namespace storage
