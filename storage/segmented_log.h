// The body of storage/log.h. Its parts stand in log.cc (answers, rolling, closing), log_append.cc,
// log_read.cc, log_truncate.cc, log_sync.cc and recovery.cc (loading).
//
// Facts that the parts share:
//   - A new segment is named by the log end at its creation, so a segment begins where the one
//     before ends, whatever gaps the batches have. After a crash a segment above the recovery point
//     that does not is known to lack something before it, and is cut off. The exception is a gap
//     that a 32-bit relative offset cannot span: the recovery point in log-state moves to the new
//     segment before anything is written there, and the log then ends behind the gap.
//   - What must be written when data becomes durable (epoch file, log state, removal of segments
//     below the log start) is done by the SyncJob, after the data, on a disk thread. `turn_`
//     orders it with truncations, which run on the owner's thread.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/batch.h"
#include "protocol/record.h"
#include "storage/epoch_cache.h"
#include "storage/log.h"
#include "storage/log_state.h"
#include "storage/producer_state.h"
#include "storage/segment.h"

namespace storage {

constexpr const char* epoch_file = "leader-epoch-checkpoint";

// Whose turn it is to change the small files of the directory. A job of an older generation leaves
// them alone: the log was truncated, restarted or closed after it was begun.
struct DiskTurn {
  std::mutex mutex;
  std::uint64_t generation = 0;
};

// What one append consists of; kept per thread, since an idle log should cost nothing.
struct ParsedBatches {
  std::vector<protocol::BatchInfo> infos;
  std::vector<std::pair<std::size_t, protocol::ControlRecord>> controls;  // index into infos
};

class KeyOffsets;
class SpentMarkers;
class LogSyncJob;

class SegmentedLog final : public Log {
 public:
  SegmentedLog(FileSystem& files, std::string directory, LogConfig config,
               const OpenOptions& options);
  ~SegmentedLog() override;
  base::Result<void> load(const OpenOptions& options);

  Offset log_start() const override { return log_start_; }
  Offset log_end() const override { return log_end_; }
  Offset durable_end() const override { return durable_end_; }
  std::uint64_t size_bytes() const override;
  std::size_t segment_count() const override { return segments_.size(); }
  std::optional<LeaderEpoch> last_epoch() const override { return epochs_.latest(); }
  const std::string& directory() const override { return directory_; }
  void set_config(LogConfig config) override;
  base::Result<AppendInfo> append_as_leader(base::MutableBytes batch, LeaderEpoch leader_epoch,
                                            std::int64_t now_ms, AppendOrigin origin) override;
  base::Result<AppendInfo> append_verbatim(base::Bytes batches, LeaderEpoch leader_epoch,
                                           std::int64_t now_ms) override;
  base::Result<void> begin_epoch(LeaderEpoch epoch) override;
  base::Result<ReadResult> read(Offset from, const ReadLimits& limits) const override;
  base::Result<void> truncate_to(Offset offset) override;
  base::Result<void> restart_at(Offset offset) override;
  base::Result<void> advance_log_start(Offset offset) override;
  base::Result<std::size_t> apply_retention(const RetentionLimits& limits) override;
  std::vector<std::string> take_deleted(std::int64_t now_ms) override;
  std::optional<EpochEnd> end_offset_for(LeaderEpoch epoch) const override;
  std::vector<EpochEnd> epochs() const override;
  base::Result<std::optional<TimestampOffset>> offset_for_timestamp(
      std::int64_t timestamp_ms) const override;
  base::Result<std::optional<TimestampOffset>> max_timestamp() const override;
  Offset last_stable_offset(Offset high_watermark) const override;
  std::vector<OpenTransaction> open_transactions() const override;
  bool in_transaction(base::ProducerId id, base::ProducerEpoch epoch) const override;
  std::vector<ActiveProducer> active_producers() const override;
  std::optional<ActiveProducer> active_producer(base::ProducerId id) const override;
  base::Result<std::vector<AbortedTransaction>> aborted_transactions(Offset from,
                                                                     Offset to) const override;
  std::unique_ptr<SyncJob> begin_sync() override;
  base::Result<void> finish_sync(const SyncJob& job, base::Result<void> outcome) override;
  base::Result<void> maybe_roll(std::int64_t now_ms) override;
  double dirty_ratio() const override;
  base::Result<CompactionStats> compact(const CompactionLimits& limits) override;
  std::optional<base::Error> offline() const override { return offline_; }
  base::Result<void> reopen_after_error(std::int64_t now_ms) override;
  base::Result<void> close() override;

 private:
  // log.cc
  Segment& active() const { return *segments_.back(); }
  bool empty() const { return segments_.size() == 1 && active().size_bytes() == 0; }
  std::size_t segment_index(Offset offset) const;  // the last one that begins at or below
  std::string path(const char* name) const { return directory_ + "/" + name; }
  Segment::Place place(std::int64_t now_ms) const;
  bool should_roll(const protocol::BatchInfo& next, std::uint64_t pending_bytes,
                   std::size_t pending_batches, std::optional<std::int64_t> first_timestamp_ms,
                   std::int64_t now_ms) const;
  base::Result<void> roll(const protocol::BatchInfo* next, std::int64_t now_ms);
  base::Result<void> replace_empty(Offset base, std::int64_t now_ms);
  base::Result<void> write_snapshot(Offset offset, bool sync);
  base::Error go_offline(base::Error why);
  bool is_as_it_was_closed() const;
  void advance_epochs_start();

  // log_retention.cc
  std::int64_t segment_ms() const;  // segment.ms less the active segment's share of the jitter

  // log_read.cc
  void keep_open_only(Segment& segment) const;

  // log_append.cc
  base::Result<void> ensure_writable(std::size_t bytes, std::int64_t now_ms);
  base::Result<ParsedBatches*> parse_verbatim(base::Bytes batches, LeaderEpoch leader_epoch) const;
  base::Result<void> accept_order(const protocol::BatchInfo& info, base::Bytes batch,
                                  Offset expected, bool first) const;
  base::Result<void> write_batches(base::Bytes bytes, const ParsedBatches& parsed,
                                   std::int64_t now_ms);
  base::Result<void> write_group(base::Bytes bytes, const ParsedBatches& parsed, std::size_t first,
                                 std::size_t last);
  base::Result<void> note_batch(const protocol::BatchInfo& info,
                                const std::optional<protocol::ControlRecord>& control);
  base::Result<std::optional<AppendInfo>> check_as_leader(const ParsedBatches& parsed,
                                                          std::size_t bytes,
                                                          AppendOrigin origin) const;

  // log_truncate.cc
  base::Result<void> intend(LogState intention);
  base::Result<void> persist_state();
  struct Cut {
    std::size_t keep = 0;                   // so many segments stay
    std::optional<std::uint64_t> position;  // the last of them loses what is from here on
  };
  base::Result<Cut> plan_cut(Offset offset);
  base::Result<void> perform_truncation(Offset offset);
  base::Result<void> perform_restart(Offset offset);
  base::Result<void> remove_snapshots(std::optional<Offset> above);
  void begin_turn();

  // log_sync.cc
  std::unique_ptr<LogSyncJob> make_job();
  base::Result<void> settle(LogSyncJob& job, base::Result<void> outcome);
  base::Result<void> sync_now();

  // log_compact.cc
  std::size_t cleanable_segments() const;
  base::Result<std::vector<CompletedTransaction>> all_aborted() const;
  base::Result<void> clean_segment(
      std::size_t index, const KeyOffsets& keys,
      const std::function<bool(const protocol::BatchInfo&)>& is_aborted, SpentMarkers& markers,
      const CompactionLimits& limits, CompactionStats& stats);
  base::Result<void> replace_segment(std::size_t index, base::Bytes content);

  // recovery.cc
  struct Listing {
    std::vector<Offset> segments;
    std::vector<Offset> snapshots;
    std::vector<Offset> txn_indexes;
    std::vector<std::string> removable;  // what a crash may leave behind
  };
  base::Result<Listing> list_directory();
  base::Result<void> prepare_directory();
  base::Result<void> load_state(const OpenOptions& options);
  base::Result<void> begin_empty();
  base::Result<void> open_segments(const Listing& listing);
  base::Result<void> load_segments(const OpenOptions& options);
  base::Result<void> lower_recovery_point(Offset told);
  base::Result<void> recover(Offset recovery_point);
  base::Result<void> recover_from(std::size_t first, Offset recovery_point);
  base::Result<std::uint64_t> recover_segment(Segment& segment, Offset recovery_point);
  base::Result<void> load_epochs();
  base::Result<void> settle_epochs();
  base::Result<void> load_producers(Offset rebuild_txns_from);
  base::Result<void> renew_snapshot(Offset base);
  base::Result<Offset> load_snapshot(Offset at_most);
  base::Result<void> replay_producers(Segment& segment, Offset from, bool write_txns);
  base::Result<void> drop_below_start();
  base::Result<void> drop_front();
  base::Result<void> finish_deletion(Offset below);

  FileSystem& files_;
  std::string directory_;
  LogConfig config_;
  std::uint64_t reserve_bytes_;
  std::int64_t now_ms_;  // the latest time that a call told

  std::vector<std::unique_ptr<Segment>> segments_;  // never empty once loaded; the last is active
  bool front_durable_ = false;  // known: a power cut leaves the name of the first one
  Offset log_start_ = 0, log_end_ = 0, durable_end_ = 0;
  EpochCache epochs_;
  mutable ProducerState producers_;
  std::int64_t producers_checked_ms_ = 0;
  std::optional<LogState> state_;  // as in the file, if there is one

  std::optional<base::Error> offline_;
  bool sync_failed_ = false;
  bool closed_ = false;

  // What the next SyncJob has to do.
  std::vector<std::shared_ptr<File>> dirty_files_;  // of sealed segments, and snapshots
  bool active_dirty_ = false, directory_dirty_ = false, epochs_dirty_ = false, state_dirty_ = false;
  bool changed_ = false;                          // since it was loaded
  std::vector<std::unique_ptr<Segment>> doomed_;  // below the log start, oldest first
  struct Deleted {
    Offset base = 0;
    std::int64_t until_ms = 0;
  };
  std::vector<Deleted> deleted_;  // renamed; to be removed from then on
  bool job_out_ = false;
  std::vector<std::shared_ptr<File>> files_out_;  // that it syncs
  std::shared_ptr<DiskTurn> turn_ = std::make_shared<DiskTurn>();

  // Of the file system, as asked last.
  std::uint64_t free_bytes_ = 0, appended_since_asked_ = 0;
  std::optional<std::int64_t> asked_ms_;

  Offset cleaned_to_ = 0;  // segments below were compacted
  // While loading.
  Offset rebuild_txns_from_ = 0;                // .txnindex files are made anew from here on
  Offset gaps_until_ = 0;                       // below, a hole between segments is no crash's work
  std::vector<EpochCache::Entry> epochs_read_;  // as in the file
  mutable Segment* last_read_ = nullptr;        // a sealed one whose descriptor is open
};

}  // namespace storage
