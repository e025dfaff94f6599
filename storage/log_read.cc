// Answers from a log's files.
#include <algorithm>

#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

// Of the sealed segments only the one read last keeps its descriptors.
void SegmentedLog::keep_open_only(Segment& segment) const {
  if (&segment == &active() || &segment == last_read_) return;
  if (last_read_) last_read_->release();
  last_read_ = &segment;
}

// Bytes of one segment from the first batch that reaches `from`. Where max_bytes or a later index
// entry ends the slice, its last batch may be cut short, as in Kafka's answers; the first never is.
base::Result<ReadResult> SegmentedLog::read(Offset from, const ReadLimits& limits) const {
  if (from < log_start_ || from > log_end_) return StorageErrc::offset_out_of_range;
  ReadResult result;
  const Offset below = limits.below.value_or(log_end_);
  if (from == log_end_) return result;
  for (std::size_t i = segment_index(from); i < segments_.size(); ++i) {
    Segment& segment = *segments_[i];
    if (segment.size_bytes() == 0) continue;
    TRY(auto found, segment.find(from));
    keep_open_only(segment);
    if (!found) continue;  // a gap reaches to the next segment
    if (found->base_offset >= below) return result;
    std::uint64_t end = segment.size_bytes();
    if (below < log_end_) {
      TRY(auto bound, segment.find(below));
      if (bound) end = bound->position + (bound->base_offset < below ? bound->size_bytes : 0);
    }
    result.first_base = found->base_offset;
    std::uint64_t size = std::min<std::uint64_t>(end - found->position, limits.max_bytes);
    if (size < found->size_bytes) size = limits.at_least_one_batch ? found->size_bytes : 0;
    if (size == 0) return result;
    TRY(auto file, segment.file());
    result.slice = {file, found->position, static_cast<std::uint32_t>(size)};
    result.first_bytes = found->size_bytes;
    result.sealed = &segment != &active();
    if (!limits.want_upper_bound) return result;
    result.upper_bound = i + 1 < segments_.size() ? segments_[i + 1]->base() : log_end_;
    TRY(auto bound, segment.bound_before(found->position + size));
    if (bound) result.upper_bound = *bound;
    return result;
  }
  return result;
}

base::Result<std::optional<TimestampOffset>> SegmentedLog::offset_for_timestamp(
    std::int64_t timestamp_ms) const {
  std::optional<TimestampOffset> answer;
  for (const auto& segment : segments_) {
    if (segment->size_bytes() == 0) continue;
    TRY(auto newest, segment->max_timestamp_ms());
    keep_open_only(*segment);
    if (newest < timestamp_ms) continue;
    TRY(auto hit, segment->find_timestamp(timestamp_ms, log_start_));
    keep_open_only(*segment);
    if (!hit) continue;  // the header promised more than the records hold
    answer = TimestampOffset{hit->timestamp_ms, hit->offset, hit->epoch};
    break;
  }
  return answer;
}

// The first record that has the largest timestamp of the log.
base::Result<std::optional<TimestampOffset>> SegmentedLog::max_timestamp() const {
  std::optional<TimestampOffset> answer;
  Segment* best = nullptr;
  std::int64_t newest = -1;
  for (const auto& segment : segments_) {
    if (segment->size_bytes() == 0) continue;
    // Deleted records do not count.
    TRY(auto largest, segment->base() < log_start_ ? segment->max_timestamp_from(log_start_)
                                                   : segment->max_timestamp_ms());
    keep_open_only(*segment);
    if (largest <= newest) continue;
    best = segment.get();
    newest = largest;
  }
  if (!best) return answer;
  TRY(auto hit, best->find_timestamp(newest, log_start_));
  if (hit) answer = TimestampOffset{hit->timestamp_ms, hit->offset, hit->epoch};
  return answer;
}

base::Result<std::vector<AbortedTransaction>> SegmentedLog::aborted_transactions(Offset from,
                                                                                 Offset to) const {
  std::vector<AbortedTransaction> aborted;
  for (std::size_t i = segment_index(from); i < segments_.size(); ++i) {
    if (segments_[i]->txn_index().empty()) continue;
    TRY(auto entries, segments_[i]->txn_index().read_all());
    segments_[i]->txn_index().entries().release();
    for (const CompletedTransaction& one : entries) {
      if (one.marker_offset >= from && one.first_offset < to)
        aborted.push_back({one.producer_id, one.first_offset});
      // All that began below this offset was decided by then.
      if (one.last_stable_offset >= to) return aborted;
    }
  }
  return aborted;
}

}  // namespace storage
