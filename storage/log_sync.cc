// Group commit: what a sync has to make durable, and in which order.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {

// Holds copies of all it needs, so that the log may go on, or go away, while it runs.
class LogSyncJob final : public SyncJob {
 public:
  LogSyncJob(FileSystem& files, std::string directory, std::shared_ptr<DiskTurn> turn)
      : files_(files), directory_(std::move(directory)), turn_(std::move(turn)) {
    std::lock_guard lock(turn_->mutex);
    generation = turn_->generation;
  }

  base::Result<void> run() override {
    for (const auto& file : to_sync) TRY_VOID(file->sync());
    if (sync_directory) TRY_VOID(files_.sync_directory(directory_));
    data_synced = true;
    std::lock_guard lock(turn_->mutex);
    if (turn_->generation != generation) return {};
    // All speak of the data. The log start comes before the epochs, which loading brings up to it,
    // and the recovery point after them: what is below it is not read again.
    if (log_start) TRY_VOID(write(log_state_file, *log_start));
    if (epochs) TRY_VOID(write(epoch_file, *epochs));
    if (state) TRY_VOID(write(log_state_file, *state));
    // Oldest first, one by one: whatever a power cut leaves is a log without a hole.
    for (const auto& segment : doomed) {
      TRY_VOID(segment->mark_deleted());
      TRY_VOID(files_.sync_directory(directory_));
    }
    small_files_written = true;
    return {};
  }
  Offset end_offset() const override { return end; }

  std::vector<std::shared_ptr<File>> to_sync;
  bool sync_directory = false;
  std::optional<std::string> log_start, epochs, state;
  std::vector<std::unique_ptr<Segment>> doomed;
  Offset end = 0;
  std::uint64_t generation = 0;
  bool data_synced = false, small_files_written = false;

 private:
  base::Result<void> write(const char* name, const std::string& text) {
    return files_.write_whole(directory_ + "/" + name, base::as_bytes(text));
  }

  FileSystem& files_;
  std::string directory_;
  std::shared_ptr<DiskTurn> turn_;
};

void SegmentedLog::begin_turn() {
  changed_ = true;
  std::lock_guard lock(turn_->mutex);
  ++turn_->generation;
}

std::unique_ptr<LogSyncJob> SegmentedLog::make_job() {
  changed_ = true;
  auto job = std::make_unique<LogSyncJob>(files_, directory_, turn_);
  // The state file also carries the recovery point, which should not stay far behind.
  const bool sealed_some = !dirty_files_.empty();
  job->to_sync = std::exchange(dirty_files_, {});
  if (active_dirty_) {
    if (auto log = active().file()) job->to_sync.push_back(*log);
    if (active().txn_index().exists())
      if (auto index = active().txn_index().entries().file()) job->to_sync.push_back(*index);
  }
  job->sync_directory = directory_dirty_;
  if (epochs_dirty_) job->epochs = epochs_.to_text();
  if (state_ && (state_dirty_ || sealed_some)) {
    if (state_dirty_ && epochs_dirty_) job->log_start = state_->to_text();
    LogState state = *state_;
    state.recovery_point = log_end_;
    job->state = state.to_text();
  }
  job->doomed = std::exchange(doomed_, {});
  job->end = log_end_;
  active_dirty_ = directory_dirty_ = epochs_dirty_ = state_dirty_ = false;
  return job;
}

std::unique_ptr<SyncJob> SegmentedLog::begin_sync() {
  CHECK(!job_out_);
  if (offline_ || closed_) return nullptr;
  if (dirty_files_.empty() && !active_dirty_ && !directory_dirty_ && !epochs_dirty_ &&
      !state_dirty_ && doomed_.empty())
    return nullptr;
  job_out_ = true;
  auto job = make_job();
  files_out_ = job->to_sync;
  return job;
}

base::Result<void> SegmentedLog::finish_sync(const SyncJob& job, base::Result<void> outcome) {
  CHECK(job_out_);
  job_out_ = false;
  files_out_.clear();
  // The job was made by begin_sync; it is const for others only.
  return settle(const_cast<LogSyncJob&>(static_cast<const LogSyncJob&>(job)), outcome);
}

base::Result<void> SegmentedLog::settle(LogSyncJob& job, base::Result<void> outcome) {
  if (outcome.has_error() && !(job.data_synced && is_no_space(outcome.error())))
    return go_offline(outcome.error());
  if (!job.small_files_written || job.generation != turn_->generation) {
    // A full disk, or the log was cut meanwhile and may have grown again: what the job knows of the
    // log is old, so all that is done again next time.
    active_dirty_ = true;
    epochs_dirty_ = epochs_dirty_ || job.epochs.has_value();
    state_dirty_ = state_dirty_ || job.state.has_value();
    std::erase_if(job.doomed, [&](const auto& segment) {
      return segments_.empty() || segment->base() >= segments_.front()->base();
    });
    doomed_.insert(doomed_.begin(), std::make_move_iterator(job.doomed.begin()),
                   std::make_move_iterator(job.doomed.end()));
    if (outcome.has_error()) return StorageErrc::no_space;
    return {};
  }
  if (job.sync_directory) front_durable_ = true;
  for (const auto& segment : job.doomed)
    deleted_.push_back({segment->base(), now_ms_ + config_.file_delete_delay_ms});
  if (state_ && job.state) state_->recovery_point = job.end;
  durable_end_ = std::max(durable_end_, job.end);
  return {};
}

// A sync on the owner's thread, for what must be durable on return: also what a job has taken over
// that still runs, and that will leave the small files alone from now on.
base::Result<void> SegmentedLog::sync_now() {
  begin_turn();
  if (job_out_) {
    dirty_files_.insert(dirty_files_.end(), files_out_.begin(), files_out_.end());
    active_dirty_ = directory_dirty_ = epochs_dirty_ = true;
    state_dirty_ = state_.has_value();
  }
  auto job = make_job();
  auto outcome = job->run();
  return settle(*job, outcome);
}

}  // namespace storage
