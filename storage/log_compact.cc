// Carries out a compaction, segment by segment. It blocks the log's thread, which is bearable for
// the internal topics that it is meant for.
#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/record.h"
#include "storage/batch_scanner.h"
#include "storage/compaction.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

double SegmentedLog::dirty_ratio() const {
  std::uint64_t dirty = 0, total = 0;
  for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
    total += segments_[i]->size_bytes();
    if (segments_[i]->base() >= cleaned_to_) dirty += segments_[i]->size_bytes();
  }
  return total == 0 ? 0 : static_cast<double>(dirty) / static_cast<double>(total);
}

// Sealed segments that are durable and lie before every transaction that is open, or whose marker a
// power cut could still take back: so many.
std::size_t SegmentedLog::cleanable_segments() const {
  const Offset bound = producers_.decided_below(durable_end_);
  std::size_t n = 0;
  while (n + 1 < segments_.size() && segments_[n + 1]->base() <= bound) ++n;
  return n;
}

// Records of aborted transactions say nothing about their keys, and go. Their markers may lie in
// segments that are not cleaned.
base::Result<std::vector<CompletedTransaction>> SegmentedLog::all_aborted() const {
  std::vector<CompletedTransaction> all;
  for (const auto& segment : segments_) {
    if (segment->txn_index().empty()) continue;
    TRY(auto some, segment->txn_index().read_all());
    if (segment.get() != &active()) segment->txn_index().entries().release();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

base::Result<CompactionStats> SegmentedLog::compact(const CompactionLimits& limits) {
  CHECK(!closed_);
  CompactionStats stats;
  if (offline_) return StorageErrc::offline;
  std::size_t count = cleanable_segments();
  TRY(auto aborted, all_aborted());
  auto is_aborted = [&](const protocol::BatchInfo& info) {
    return info.transactional() &&
           std::any_of(aborted.begin(), aborted.end(), [&](const CompletedTransaction& one) {
             return one.producer_id == info.producer_id && info.base_offset >= one.first_offset &&
                    info.last_offset <= one.marker_offset;
           });
  };
  // In what was compacted before, each key stands once: only what came later can outdate it.
  KeyOffsets keys(limits.key_bytes_max);
  SpentMarkers markers;
  for (std::size_t i = 0; i < count; ++i) {
    if (segments_[i]->base() < cleaned_to_) continue;
    TRY(auto file, segments_[i]->file());
    CheckedScanner scanner(*file, 0, segments_[i]->size_bytes());
    bool full = false;
    while (!full && scanner.next()) {
      markers.look_at(scanner.info());
      if (!is_aborted(scanner.info())) TRY_VOID(keys.add_batch(scanner.batch(), full));
    }
    if (scanner.error()) return StorageErrc::corrupt_batch;
    if (full) count = i;  // the next run goes on from here
    segments_[i]->release();
  }
  for (std::size_t i = 0; i < count; ++i) {
    stats.bytes_before += segments_[i]->size_bytes();
    TRY_VOID(clean_segment(i, keys, is_aborted, markers, limits, stats));
    stats.bytes_after += segments_[i]->size_bytes();
    ++stats.segments;
  }
  if (count > 0) cleaned_to_ = std::max(cleaned_to_, segments_[count]->base());
  return stats;
}

base::Result<void> SegmentedLog::clean_segment(
    std::size_t index, const KeyOffsets& keys,
    const std::function<bool(const protocol::BatchInfo&)>& is_aborted, SpentMarkers& markers,
    const CompactionLimits& limits, CompactionStats& stats) {
  Segment& segment = *segments_[index];
  TRY(auto file, segment.file());
  TRY(auto tail, segment.load_tail());
  base::Buffer output;
  bool changed = false;
  CheckedScanner scanner(*file, 0, segment.size_bytes());
  while (scanner.next()) {
    const protocol::BatchInfo& info = scanner.info();
    const ProducerState::Producer* producer =
        info.producer_id ? producers_.find(*info.producer_id) : nullptr;
    CleanRules rules;
    rules.now_ms = limits.now_ms;
    rules.delete_retention_ms = limits.delete_retention_ms;
    rules.keep_batch =
        info.next_offset() == tail.end ||
        (producer && producer->last() && producer->last()->last_offset == info.last_offset);
    CleanedBatch cleaned;
    if (info.control() || is_aborted(info)) {
      const bool goes = !rules.keep_batch && (!info.control() || markers.is_spent(info));
      if (goes) cleaned.what = CleanedBatch::What::dropped;
    } else {
      TRY(cleaned, clean_batch(scanner.batch(), keys, rules));
    }
    if (cleaned.what != CleanedBatch::What::dropped) markers.stays(info);
    stats.records_dropped +=
        cleaned.what == CleanedBatch::What::as_it_is ? 0 : cleaned.records_dropped;
    changed = changed || cleaned.what != CleanedBatch::What::as_it_is;
    const base::Bytes bytes =
        cleaned.what == CleanedBatch::What::as_it_is ? scanner.batch() : base::Bytes(cleaned.bytes);
    output.insert(output.end(), bytes.begin(), bytes.end());
  }
  if (scanner.error()) return StorageErrc::corrupt_batch;
  if (!changed) {
    segment.release();
    return {};
  }
  return replace_segment(index, output);
}

base::Result<void> SegmentedLog::replace_segment(std::size_t index, base::Bytes content) {
  const Offset base = segments_[index]->base();
  const std::string log = segments_[index]->path(".log"), cleaned = log + ".cleaned";
  auto writing = [&]() -> base::Result<void> {
    TRY(auto file, files_.open(cleaned, OpenMode::create));
    TRY_VOID(file->pwrite(content, 0));
    return file->sync();
  };
  auto written = writing();
  if (written.has_error()) {
    if (!is_no_space(written.error())) return go_offline(written.error());
    (void)files_.remove(cleaned);  // the room is needed; what is left is removed at the next start
    return StorageErrc::no_space;
  }
  // From here on the replacement is under way, and an error leaves it to the reopening of the log.
  auto replacing = [&]() -> base::Result<void> {
    TRY_VOID(files_.rename(cleaned, log + ".swap"));
    TRY_VOID(files_.sync_directory(directory_));
    TRY_VOID(finish_swaps(files_, directory_));
    TRY(auto segment, Segment::open(place(now_ms_), base));
    TRY_VOID(segment->txn_index().open());
    TRY_VOID(segment->rebuild_indexes());
    segment->release();
    if (last_read_ == segments_[index].get()) last_read_ = nullptr;
    segments_[index] = std::move(segment);
    return {};
  };
  auto replaced = replacing();
  if (replaced.has_error()) return go_offline(replaced.error());
  return {};
}

}  // namespace storage
