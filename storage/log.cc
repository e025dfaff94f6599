#include "storage/log.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

base::Result<std::unique_ptr<Log>> Log::open(FileSystem& files, std::string directory,
                                             LogConfig config, OpenOptions options) {
  auto log = std::make_unique<SegmentedLog>(files, std::move(directory), config, options);
  TRY_VOID(log->load(options));
  return std::unique_ptr<Log>(std::move(log));
}

SegmentedLog::SegmentedLog(FileSystem& files, std::string directory, LogConfig config,
                           const OpenOptions& options)
    : files_(files),
      directory_(std::move(directory)),
      config_(config),
      reserve_bytes_(options.reserve_bytes),
      now_ms_(options.now_ms) {}

SegmentedLog::~SegmentedLog() {
  begin_turn();  // a job that still runs must not touch files that are no longer ours
}

void SegmentedLog::set_config(LogConfig config) {
  config_ = config;
  for (auto& segment : segments_) segment->set_index_interval(config.index_interval_bytes);
}

std::uint64_t SegmentedLog::size_bytes() const {
  std::uint64_t total = 0;
  for (const auto& segment : segments_) total += segment->size_bytes();
  return total;
}

std::size_t SegmentedLog::segment_index(Offset offset) const {
  auto above = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                [](Offset o, const auto& s) { return o < s->base(); });
  return above == segments_.begin() ? 0 : static_cast<std::size_t>(above - segments_.begin()) - 1;
}

Segment::Place SegmentedLog::place(std::int64_t now_ms) const {
  return {files_, directory_, config_.index_interval_bytes, now_ms};
}

base::Error SegmentedLog::go_offline(base::Error why) {
  // What the kernel could not write it may have forgotten: a second sync would lie.
  if (why == StorageErrc::sync_failed) sync_failed_ = true;
  if (is_no_space(why)) why = StorageErrc::no_space;
  if (!offline_)
    base::logger("storage").error("log {} goes offline: {}", directory_, why.message());
  offline_ = why;
  return why;
}

// Kafka's rule: size, age by the records' own timestamps (else by the clock), a full index, or an
// offset that a 32-bit relative one cannot express. `pending`: what will be in the segment before
// `next`, but is not yet written; `first_timestamp_ms`: of the segment's first batch.
bool SegmentedLog::should_roll(const protocol::BatchInfo& next, std::uint64_t pending_bytes,
                               std::size_t pending_batches,
                               std::optional<std::int64_t> first_timestamp_ms,
                               std::int64_t now_ms) const {
  const Segment& segment = active();
  if (next.last_offset - segment.base() > std::numeric_limits<std::int32_t>::max()) return true;
  const std::uint64_t size = segment.size_bytes() + pending_bytes;
  if (size == 0) return false;
  if (size + next.size_bytes > std::min<std::uint64_t>(config_.segment_bytes, segment_bytes_limit))
    return true;
  const std::size_t entries = std::min<std::size_t>(
      pending_batches, pending_bytes / std::max(config_.index_interval_bytes, 1u) + 1);
  if (segment.index_full(config_.segment_index_bytes, entries)) return true;
  if (first_timestamp_ms && *first_timestamp_ms >= 0)
    return next.max_timestamp > *first_timestamp_ms &&
           next.max_timestamp - *first_timestamp_ms > segment_ms();
  return now_ms - segment.created_ms() > segment_ms();
}

// Begins a new segment, for the batch `next` if there is one. Nothing is lost when it fails
// half-way: the old segment stays the active one.
base::Result<void> SegmentedLog::roll(const protocol::BatchInfo* next, std::int64_t now_ms) {
  const bool far = next && next->last_offset - log_end_ > std::numeric_limits<std::int32_t>::max();
  const Offset base = far ? next->base_offset : log_end_;
  if (segments_.size() == 1 && !front_durable_) {
    // Else a power cut might leave only the second one, and the log would seem to begin there.
    TRY_VOID(files_.sync_directory(directory_));
    front_durable_ = true;
  }
  TRY_VOID(write_snapshot(base, false));
  TRY(auto segment, Segment::create(place(now_ms), base));
  TRY(auto log, active().file());
  TRY_VOID(active().seal(dirty_files_));
  if (active_dirty_) dirty_files_.push_back(log);
  active_dirty_ = true;
  directory_dirty_ = true;
  segments_.push_back(std::move(segment));
  if (!far) return {};
  // First the segment, durably, then the word that the gap before it is no loss. From then on the
  // log ends behind the gap, with or without the batch.
  TRY_VOID(sync_now());
  if (!state_) state_.emplace();
  state_->recovery_point = base;
  state_->log_start = log_start_;
  TRY_VOID(persist_state());
  log_end_ = durable_end_ = base;
  return {};
}

// An empty log's only segment under another name: its first batch begins below it (a source whose
// log start lies inside a batch).
base::Result<void> SegmentedLog::replace_empty(Offset base, std::int64_t now_ms) {
  CHECK(active().size_bytes() == 0);
  if (active().base() == base) return {};
  TRY(auto segment, Segment::create(place(now_ms), base));
  std::swap(segments_.back(), segment);
  front_durable_ = false;
  directory_dirty_ = true;
  active_dirty_ = true;
  return segment->remove_files();
}

base::Result<void> SegmentedLog::write_snapshot(Offset offset, bool sync) {
  const base::Buffer content = producers_.encode_snapshot();
  const std::string path = segment_path(directory_, offset, ".snapshot");
  if (sync) return files_.write_whole(path, content);
  // Not yet synced: one that a power cut tears fails its checksum and is passed over.
  TRY(auto file, files_.open(path, OpenMode::create));
  TRY_VOID(file->pwrite(content, 0));
  dirty_files_.push_back(file);
  directory_dirty_ = true;
  return {};
}

base::Result<void> SegmentedLog::begin_epoch(LeaderEpoch epoch) {
  if (offline_) return StorageErrc::offline;
  if (epochs_.latest() && epoch < *epochs_.latest()) return StorageErrc::epoch_goes_back;
  if (epochs_.assign(epoch, log_end_)) epochs_dirty_ = true;
  return {};
}

void SegmentedLog::advance_epochs_start() {
  if (epochs_.advance_start(log_start_)) epochs_dirty_ = true;
}

base::Result<void> SegmentedLog::advance_log_start(Offset offset) {
  if (offset > log_end_) return StorageErrc::offset_out_of_range;
  if (offset <= log_start_) return {};
  log_start_ = offset;
  if (!state_) {
    state_.emplace();
    state_->recovery_point = durable_end_;
  }
  state_->log_start = offset;
  state_dirty_ = true;
  advance_epochs_start();
  while (segments_.size() > 1 && segments_[1]->base() <= log_start_) {
    if (last_read_ == segments_.front().get()) last_read_ = nullptr;
    doomed_.push_back(std::move(segments_.front()));
    segments_.erase(segments_.begin());
  }
  return {};
}

std::optional<EpochEnd> SegmentedLog::end_offset_for(LeaderEpoch epoch) const {
  auto end = epochs_.end_of(epoch, log_end_);
  if (!end) return std::nullopt;
  return EpochEnd{end->epoch, end->offset};
}

std::vector<EpochEnd> SegmentedLog::epochs() const {
  std::vector<EpochEnd> all;
  for (const EpochCache::Entry& e : epochs_.entries()) all.push_back({e.epoch, e.start});
  return all;
}

Offset SegmentedLog::last_stable_offset(Offset high_watermark) const {
  return producers_.last_stable_offset(high_watermark);
}

bool SegmentedLog::in_transaction(base::ProducerId id, base::ProducerEpoch epoch) const {
  const ProducerState::Producer* producer = producers_.find(id);
  return producer != nullptr && producer->transaction_first_offset && producer->epoch == epoch;
}

std::vector<OpenTransaction> SegmentedLog::open_transactions() const {
  std::vector<OpenTransaction> all;
  for (const auto& [id, producer] : producers_.open_transactions())
    all.push_back({id, producer->epoch.value_or(0), producer->coordinator_epoch,
                   *producer->transaction_first_offset});
  return all;
}

std::vector<ActiveProducer> SegmentedLog::active_producers() const {
  std::vector<ActiveProducer> all;
  for (const auto& [id, producer] : producers_.all()) all.push_back(*active_producer(id));
  std::ranges::sort(all, {}, &ActiveProducer::id);
  return all;
}

std::optional<ActiveProducer> SegmentedLog::active_producer(base::ProducerId id) const {
  const ProducerState::Producer* producer = producers_.find(id);
  if (!producer) return std::nullopt;
  ActiveProducer one;
  one.id = id;
  one.epoch = producer->epoch;
  if (const auto* const last = producer->last()) one.last_sequence = last->last_sequence;
  one.last_timestamp_ms = producer->last_timestamp_ms;
  one.coordinator_epoch = producer->coordinator_epoch;
  one.transaction_first_offset = producer->transaction_first_offset;
  return one;
}

base::Result<void> SegmentedLog::maybe_roll(std::int64_t now_ms) {
  now_ms_ = now_ms;
  if (now_ms - producers_checked_ms_ >= config_.producer_check_interval_ms) {
    producers_checked_ms_ = now_ms;
    producers_.expire(now_ms, config_.producer_expiration_ms);
  }
  if (offline_ || active().size_bytes() == 0) return {};
  if (now_ms - active().created_ms() <= segment_ms()) return {};
  auto rolled = roll(nullptr, now_ms);
  if (rolled.has_error()) return go_offline(rolled.error());
  return {};
}

// Like opening after a crash, but with what the page cache holds: the tail is read again, a torn
// rest is cut, a truncation that stopped half-way is done again.
base::Result<void> SegmentedLog::reopen_after_error(std::int64_t now_ms) {
  if (!offline_) return {};
  if (sync_failed_) return StorageErrc::offline;
  const EpochCache epochs = epochs_;
  const ProducerState producers = producers_;
  const std::optional<LogState> state = state_;
  const Offset start = log_start_, end = log_end_, durable = durable_end_;
  OpenOptions options;
  options.recovery_point = std::min(durable_end_, log_end_);
  options.log_start = log_start_;
  options.now_ms = now_ms;
  options.reserve_bytes = reserve_bytes_;
  begin_turn();
  last_read_ = nullptr;
  auto segments = std::exchange(segments_, {});
  doomed_.clear();
  auto loaded = load(options);
  if (loaded.has_error()) {
    // The log stays offline, and goes on answering from what it knew.
    segments_ = std::move(segments);
    epochs_ = epochs;
    producers_ = producers;
    state_ = state;
    log_start_ = start;
    log_end_ = end;
    durable_end_ = durable;
    return go_offline(loaded.error());
  }
  offline_.reset();
  // Loading forgets what was begun at the end. This is no restart, so it is kept, unless a cut that
  // was under way is to take it away.
  const bool cut = state && (state->truncate_to || state->restart_at);
  if (!cut && !epochs.entries().empty() && epochs.entries().back().start == log_end_ &&
      epochs_.assign(epochs.entries().back().epoch, log_end_))
    epochs_dirty_ = true;
  if (start > log_start_ && start <= log_end_) return advance_log_start(start);
  return {};
}

// Whether the files of the active segment and the snapshot are as the last clean end left them: who
// changes them marks something, and that is still marked or was taken over by a job.
bool SegmentedLog::is_as_it_was_closed() const {
  if (changed_ || job_out_ || active_dirty_ || !dirty_files_.empty() || active().indexes_rebuilt())
    return false;
  const auto snapshot = files_.exists(segment_path(directory_, log_end_, ".snapshot"));
  return snapshot && *snapshot;
}

// A broker of thousands of quiet partitions shall not sync all their files when it ends.
base::Result<void> SegmentedLog::close() {
  if (closed_) return {};
  closed_ = true;
  if (offline_) return StorageErrc::offline;
  auto closing = [&]() -> base::Result<void> {
    if (!is_as_it_was_closed()) {
      TRY_VOID(write_snapshot(log_end_, true));
      TRY(auto log, active().file());
      TRY_VOID(active().seal(dirty_files_));
      if (active_dirty_) dirty_files_.push_back(log);
      active_dirty_ = false;
    } else if (!directory_dirty_ && !state_dirty_ && doomed_.empty() &&
               (!epochs_dirty_ || epochs_.entries().back().start == log_end_)) {
      // An epoch that no batch has will be begun anew.
      return {};
    }
    return sync_now();
  };
  auto closed = closing();
  if (closed.has_error()) return go_offline(closed.error());
  offline_ = StorageErrc::offline;
  return {};
}

}  // namespace storage
