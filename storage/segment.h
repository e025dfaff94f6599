// One segment of a log: `%020d.log`, named by its base offset, and its indexes.
//
// A segment belongs to one Log and its thread. Files are opened at first use; a sealed segment can
// give its descriptor back. Indexes are looked at when they are needed for the first time, and
// rebuilt when they are missing or wrong, also later when an entry leads to something else than a
// batch.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"
#include "storage/file.h"
#include "storage/index.h"
#include "storage/recent_batches.h"
#include "storage/txn_index.h"

namespace storage {

// A file position is an int32 in the index.
constexpr std::uint64_t segment_bytes_limit = 0x7fffffff;
// No log reaches beyond: a relative offset can be added to any base below without overflow.
constexpr base::Offset log_end_limit = std::numeric_limits<base::Offset>::max() - (1ll << 32);

// `<directory>/%020d<suffix>`
std::string segment_path(const std::string& directory, base::Offset base, const char* suffix);

// The files of a segment that was dropped keep their names with this behind, until they are
// removed.
constexpr const char* deleted_suffix = ".deleted";
// All that a segment may consist of, the producer snapshot included; the .log file first.
constexpr const char* segment_suffixes[] = {".log", ".index", ".timeindex", ".txnindex",
                                            ".snapshot"};

// Of whatever is there by these names.
base::Result<void> remove_segment_files(FileSystem& files, const std::string& directory,
                                        base::Offset base);

class Segment {
 public:
  struct Place {
    FileSystem& files;
    const std::string& directory;  // outlives the segment
    std::uint32_t index_interval_bytes;
    std::int64_t now_ms;
  };
  // New and empty, in place of whatever has these names.
  static base::Result<std::unique_ptr<Segment>> create(const Place& place, base::Offset base);
  // One that is there. Only the size of the .log file is looked at.
  static base::Result<std::unique_ptr<Segment>> open(const Place& place, base::Offset base);

  base::Offset base() const { return base_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::int64_t created_ms() const { return created_ms_; }
  base::Result<std::shared_ptr<File>> file();

  struct Tail {
    base::Offset end = 0;  // one above the last batch, or the base
    std::int64_t max_timestamp_ms = -1;
    std::optional<base::LeaderEpoch> last_epoch;  // of the last batch
  };
  // Reads from the last index entry to the end. corrupt_batch when the last bytes are no batch.
  base::Result<Tail> load_tail();

  // Writes whole batches at the end: `infos` tells about all that is in `bytes`, in order. When
  // this fails nothing was appended, but the file may hold a torn rest beyond size_bytes().
  base::Result<void> append(base::Bytes bytes, std::span<const protocol::BatchInfo> infos);
  // Cuts off a torn rest.
  base::Result<void> drop_rest();

  using Found = RecentBatches::Place;
  // The first batch that reaches `target`. Of those appended last it is known without reading.
  base::Result<std::optional<Found>> find(base::Offset target);

  // An offset of this segment that no batch before `position` reaches, as near as the index tells;
  // nothing if it does not tell.
  base::Result<std::optional<base::Offset>> bound_before(std::uint64_t position) const {
    return offset_index_.offset_at(position);
  }

  // First record at or above `from` with a timestamp ≥ the given one.
  struct Hit {
    std::int64_t timestamp_ms = 0;
    base::Offset offset = 0;
    std::optional<base::LeaderEpoch> epoch;
  };
  base::Result<std::optional<Hit>> find_timestamp(std::int64_t timestamp_ms, base::Offset from);
  base::Result<std::int64_t> max_timestamp_ms();
  // Of the records from `from` on.
  base::Result<std::int64_t> max_timestamp_from(base::Offset from);
  // What time-based rolling counts from: the largest timestamp of the first batch.
  base::Result<std::optional<std::int64_t>> rolling_timestamp_ms();

  bool index_full(std::uint32_t index_bytes_max, std::size_t more_entries) const;
  // No more appends: adds the last time index entry, writes indexes out, gives descriptors back.
  // `to_sync` gets the index files.
  base::Result<void> seal(std::vector<std::shared_ptr<File>>& to_sync);
  // Writes index entries out if many wait.
  base::Result<void> flush_indexes(bool all);
  // Cuts at the batch at `position`, the first one that reaches `offset`, and syncs.
  base::Result<Tail> truncate(std::uint64_t position, base::Offset offset);
  // Makes both indexes from the .log file, durably and as one step: a segment below the recovery
  // point is not looked at after a crash, so a half-made index would be believed.
  base::Result<void> rebuild_indexes();
  bool indexes_rebuilt() const { return indexes_rebuilt_; }  // since it was opened
  // The same in place and not synced, while the caller reads the batches, for a recovery that a
  // crash makes begin again: begin, one call per batch, end.
  base::Result<void> begin_rebuild() { return begin_rebuild(false); }
  base::Result<void> rebuild_add(const protocol::BatchInfo& info, std::uint64_t position);
  base::Result<void> end_rebuild(std::uint64_t size_bytes);
  base::Result<void> sync_indexes();

  base::Result<void> remove_files();
  // Renames them to `.deleted`. Readers that hold the file go on.
  base::Result<void> mark_deleted();
  // Gives back the descriptor of the .log file until the next use.
  void release();

  TxnIndex& txn_index() { return txn_index_; }
  void set_index_interval(std::uint32_t bytes) { index_interval_bytes_ = bytes; }
  std::string path(const char* suffix) const;

 private:
  Segment(const Place& place, base::Offset base);
  base::Result<void> begin_rebuild(bool aside);
  base::Result<void> ensure_indexes();
  base::Result<Tail> try_load_tail();
  base::Result<void> verify(const TimeIndex::Entry& entry);
  base::Result<std::optional<TimeIndex::Entry>> time_entry(std::int64_t timestamp_ms);
  bool in_order(const protocol::BatchInfo& info, base::Offset end) const;
  struct Scanned {
    protocol::BatchInfo info;
    std::uint64_t position = 0;
  };
  base::Result<std::optional<Scanned>> find_from(base::Offset target, std::uint32_t position,
                                                 bool from_index);
  base::Result<std::optional<Found>> find_in_file(base::Offset target);
  void index_batch(const protocol::BatchInfo& info, std::uint64_t position);
  void reserve_for(std::uint64_t bytes);

  FileSystem& files_;
  const std::string& directory_;
  base::Offset base_;
  std::int64_t created_ms_;
  std::uint32_t index_interval_bytes_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t reserved_to_ = 0;
  std::shared_ptr<File> file_;
  RecentBatches recent_;

  OffsetIndex offset_index_;
  TimeIndex time_index_;
  TxnIndex txn_index_;
  bool indexes_ready_ = false;
  bool indexes_rebuilt_ = false;  // what still seems wrong with them is the log's damage
  bool rebuild_due_ = false;      // one was begun and did not end
  bool rebuilds_aside_ = false;
  bool tail_loaded_ = false;
  std::uint64_t bytes_since_index_ = 0;
  base::Offset rebuilt_end_ = 0;           // while indexes are rebuilt
  TimeIndex::Entry max_timestamp_{-1, 0};  // known once the tail is loaded
  std::optional<std::int64_t> rolling_timestamp_ms_;
};

}  // namespace storage
