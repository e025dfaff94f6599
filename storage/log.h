// A partition's log: Kafka's directory of segments (`.log .index .timeindex .txnindex .snapshot`,
// `leader-epoch-checkpoint`, `partition.metadata`) behind two doors:
//
//   append_as_leader  assigns offsets and the leader epoch; keeps producer state; may refuse.
//   append_verbatim   changes no byte: offset gaps, control batches, emptied batches, legacy
//   formats.
//                     Refuses only what is out of order, above the leader epoch, or damaged.
//
// Not thread-safe: all calls come from the thread of the shard that owns the partition, except that
// the body of a SyncJob runs on one of the shard's disk threads. Appends are in the page cache when
// the call returns and durable once a SyncJob that began after them has finished.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "storage/file.h"

namespace storage {

using base::LeaderEpoch;
using base::Offset;

struct LogConfig {
  std::uint32_t segment_bytes = 1u << 30;  // segment.bytes
  std::int64_t segment_ms =
      7ll * 24 * 3600 * 1000;                     // segment.ms, by record timestamps as Kafka does
  std::int64_t segment_jitter_ms = 0;             // segment.jitter.ms: at most so much earlier
  std::uint32_t segment_index_bytes = 10u << 20;  // segment.index.bytes
  std::uint32_t index_interval_bytes = 4096;      // index.interval.bytes
  std::uint32_t max_message_bytes = 1048588;      // max.message.bytes; the leader's door only
  bool log_append_time = false;                   // message.timestamp.type
  bool compacted = false;  // cleanup.policy contains compact: records need keys
  std::int64_t producer_expiration_ms = 24ll * 3600 * 1000;
  std::int64_t producer_check_interval_ms = 10ll * 60 * 1000;  // how often that is looked at
  std::int64_t file_delete_delay_ms = 60'000;                  // file.delete.delay.ms
};

enum class AppendOrigin {
  client,
  coordinator
};  // coordinator: control batches and internal topics' records

struct AppendInfo {
  Offset first_offset = 0;
  Offset last_offset = 0;
  // Set when the topic stamps records itself; for a duplicate its largest timestamp, whatever kind
  // it is.
  std::optional<std::int64_t> log_append_time_ms;
  std::optional<LeaderEpoch> last_epoch;  // of the last batch appended
  bool duplicate =
      false;  // idempotent producer: was already there, nothing appended; offsets are the old ones
};

// Whole batches as they lie in one segment file. The file outlives retention and truncation by
// being held.
struct FileSlice {
  std::shared_ptr<const File> file;
  std::uint64_t position = 0;
  std::uint32_t size = 0;
};

struct ReadLimits {
  std::uint32_t max_bytes = 0;
  bool at_least_one_batch =
      true;  // KIP-74: the first batch comes whole even when larger than max_bytes
  std::optional<Offset> below;  // only batches that begin below this offset (high watermark, LSO)
  bool want_upper_bound = false;
};

struct ReadResult {
  FileSlice slice;                   // size 0: nothing at or after the offset
  std::optional<Offset> first_base;  // base offset of the first batch, may be below the asked one
  std::uint32_t first_bytes = 0;     // size of the first batch
  bool sealed = false;               // more follows in another segment
  Offset upper_bound = 0;            // no batch of the slice reaches this offset; when wanted
};

struct EpochEnd {  // answer of OffsetForLeaderEpoch
  LeaderEpoch epoch = 0;
  Offset end_offset = 0;
};

struct TimestampOffset {
  std::int64_t timestamp_ms = 0;
  Offset offset = 0;
  std::optional<LeaderEpoch> epoch;
};

struct AbortedTransaction {
  base::ProducerId producer_id = 0;
  Offset first_offset = 0;
};

struct OpenTransaction {
  base::ProducerId producer_id = 0;
  base::ProducerEpoch producer_epoch = 0;
  std::int32_t coordinator_epoch = -1;
  Offset first_offset = 0;
};

// An idempotent or transactional producer that the log remembers.
struct ActiveProducer {
  base::ProducerId id = 0;
  std::optional<base::ProducerEpoch> epoch;
  std::optional<std::int32_t> last_sequence;
  std::int64_t last_timestamp_ms = -1;
  std::int32_t coordinator_epoch = -1;
  std::optional<Offset> transaction_first_offset;  // of an open transaction
};

// Kafka's three reasons to drop the oldest segments; absent: no limit.
struct RetentionLimits {
  std::int64_t now_ms = 0;
  Offset high_watermark = 0;  // nothing above it goes
  std::optional<std::int64_t> retention_ms;
  std::optional<std::uint64_t> retention_bytes;
};

struct CompactionLimits {
  std::int64_t now_ms = 0;
  std::int64_t delete_retention_ms = 24ll * 3600 * 1000;  // delete.retention.ms
  std::size_t key_bytes_max = std::size_t{64} << 20;      // memory for keys; beyond: next time
};

struct CompactionStats {
  std::size_t segments = 0;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  std::uint64_t records_dropped = 0;
};

// A promise to make durable all that was appended before it was begun. `run` waits for the device
// and may be called on another thread; hand its result to Log::finish_sync on the owner's thread.
class SyncJob {
 public:
  virtual ~SyncJob() = default;
  virtual base::Result<void> run() = 0;
  virtual Offset end_offset() const = 0;  // durable up to here when run() succeeds
};

class Log {
 public:
  struct OpenOptions {
    bool clean_shutdown =
        false;  // false: the segments above the recovery point are scanned and CRC-checked
    Offset recovery_point = 0;        // from recovery-point-offset-checkpoint
    std::optional<Offset> log_start;  // from log-start-offset-checkpoint
    std::int64_t now_ms = 0;
    std::uint64_t reserve_bytes =
        0;  // appends fail with no_space when the file system has less left
  };
  // Opens or creates. A torn tail is cut at the last good batch; indexes that are missing or wrong
  // are rebuilt; the epoch file and the producer snapshots never speak of more than the log holds.
  static base::Result<std::unique_ptr<Log>> open(FileSystem& files, std::string directory,
                                                 LogConfig config, OpenOptions options);
  virtual ~Log() = default;

  virtual Offset log_start() const = 0;
  virtual Offset log_end() const = 0;
  virtual Offset durable_end() const = 0;  // all below it survives a power cut
  virtual std::uint64_t size_bytes() const = 0;
  virtual std::size_t segment_count() const = 0;
  virtual std::optional<LeaderEpoch> last_epoch()
      const = 0;  // of the last batch, or as begun by begin_epoch
  virtual const std::string& directory() const = 0;
  virtual void set_config(LogConfig config) = 0;

  // Exactly one v2 batch per call from clients (protocol/batch.h: check_produce); patched in place
  // and written.
  virtual base::Result<AppendInfo> append_as_leader(base::MutableBytes batch,
                                                    LeaderEpoch leader_epoch, std::int64_t now_ms,
                                                    AppendOrigin origin) = 0;
  // One or more whole batches. `leader_epoch`: no batch may carry a higher one. The first batch may
  // begin below the log end only if the log is empty or the batch covers log_start (a source whose
  // start lies inside a batch, E36).
  virtual base::Result<AppendInfo> append_verbatim(base::Bytes batches, LeaderEpoch leader_epoch,
                                                   std::int64_t now_ms) = 0;

  // Records in the epoch cache that this broker leads from the log end on (not done while the
  // partition is mirrored).
  virtual base::Result<void> begin_epoch(LeaderEpoch epoch) = 0;

  virtual base::Result<ReadResult> read(Offset from, const ReadLimits& limits) const = 0;

  // Removes every batch that reaches `offset` or beyond, and epoch entries that start there, even
  // when no byte is cut. The log end is then at most `offset`. Producer state is restored to the
  // new end. Durable on return.
  virtual base::Result<void> truncate_to(Offset offset) = 0;
  // Drops everything; the log is empty and begins at `offset`. Durable on return.
  virtual base::Result<void> restart_at(Offset offset) = 0;
  // Records below `offset` are no longer served; the files of whole segments below are renamed to
  // `.deleted` by the next SyncJob. Never beyond the log end; a lower value than now is ignored.
  virtual base::Result<void> advance_log_start(Offset offset) = 0;

  // Drops the oldest segments that the limits do not allow, the active one included if all of its
  // records are too old; the log start follows. How many went.
  virtual base::Result<std::size_t> apply_retention(const RetentionLimits& limits) = 0;
  // Files of dropped segments, renamed to `.deleted`, whose time on disk is over: paths for the
  // caller to remove where waiting for the device does no harm. They are not told of twice.
  virtual std::vector<std::string> take_deleted(std::int64_t now_ms) = 0;

  // Kafka's rule (B12): future epoch → nothing; known → its end; missing between → largest smaller
  // epoch and its end.
  virtual std::optional<EpochEnd> end_offset_for(LeaderEpoch epoch) const = 0;
  virtual std::vector<EpochEnd> epochs()
      const = 0;  // every epoch in the cache with its START offset in end_offset

  // First record with timestamp ≥ `timestamp_ms`, looking into batches.
  virtual base::Result<std::optional<TimestampOffset>> offset_for_timestamp(
      std::int64_t timestamp_ms) const = 0;
  virtual base::Result<std::optional<TimestampOffset>> max_timestamp() const = 0;

  virtual Offset last_stable_offset(Offset high_watermark) const = 0;
  virtual std::vector<OpenTransaction> open_transactions() const = 0;
  // Whether the producer has one open, begun with this epoch.
  virtual bool in_transaction(base::ProducerId id, base::ProducerEpoch epoch) const = 0;
  virtual std::vector<ActiveProducer> active_producers() const = 0;  // by id
  // Nothing: the log does not remember it.
  virtual std::optional<ActiveProducer> active_producer(base::ProducerId id) const = 0;
  virtual base::Result<std::vector<AbortedTransaction>> aborted_transactions(Offset from,
                                                                             Offset to) const = 0;

  // Group commit: at most one job outstanding; nullptr when everything is durable already.
  virtual std::unique_ptr<SyncJob> begin_sync() = 0;
  // A failed sync takes the log offline until it is reopened.
  virtual base::Result<void> finish_sync(const SyncJob& job, base::Result<void> outcome) = 0;

  // Rolls the active segment when it is older than segment.ms at `now_ms`.
  virtual base::Result<void> maybe_roll(std::int64_t now_ms) = 0;
  // Compaction by key, of the sealed and durable segments; offsets stay, and so does the log end.
  // Blocks: meant for internal topics. Worth while from a dirty ratio of 0.5 on: the share of the
  // sealed bytes that came after the last compaction of this process.
  virtual double dirty_ratio() const = 0;
  virtual base::Result<CompactionStats> compact(const CompactionLimits& limits) = 0;
  // Why nothing can be written, if so.
  virtual std::optional<base::Error> offline() const = 0;
  // After no_space or a failed write: verifies the tail again and goes on if it can.
  virtual base::Result<void> reopen_after_error(std::int64_t now_ms) = 0;
  // Syncs, trims index files and writes the producer snapshot; the log takes no further call.
  virtual base::Result<void> close() = 0;
};

// Kafka's file `partition.metadata`.
base::Result<std::optional<base::Uuid>> read_partition_metadata(FileSystem& files,
                                                                const std::string& directory);
base::Result<void> write_partition_metadata(FileSystem& files, const std::string& directory,
                                            const base::Uuid& topic_id);

}  // namespace storage
