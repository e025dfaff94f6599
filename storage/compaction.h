// Compaction of a log by key, for the internal topics: of each key only the last value is kept,
// offsets stay. What to do with a batch is decided here, without files; log_compact.cc carries it
// out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"
#include "storage/file.h"

namespace storage {

// Where each key was written last. Control batches never enter it: a user's key may equal a
// marker's.
class KeyOffsets {
 public:
  explicit KeyOffsets(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // False, and nothing is added, when the map is full.
  bool add(std::string_view key, base::Offset offset);
  // Every record of the batch that has a key. False when the map is full in the middle of it.
  base::Result<void> add_batch(base::Bytes batch, bool& full);
  std::optional<base::Offset> last_of(std::string_view key) const;
  std::size_t size() const { return offsets_.size(); }

 private:
  std::unordered_map<std::string, base::Offset> offsets_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
};

// Which markers say nothing any more. One that has records of its transaction before it would leave
// them open if it went; a producer's last one keeps its epoch.
class SpentMarkers {
 public:
  // Every batch of the range, before anything of it is cleaned, in the log's order.
  void look_at(const protocol::BatchInfo& info) {
    if (is_marker(info)) newest_[*info.producer_id] = info.last_offset;
  }
  // Every batch that stays, from the log's start on: it is written down no later than a marker
  // behind it goes.
  void stays(const protocol::BatchInfo& info) {
    if (!info.producer_id || !info.transactional()) return;
    if (info.control())
      holding_.erase(*info.producer_id);
    else
      holding_.insert(*info.producer_id);
  }
  // `info`: of the marker that comes next.
  bool is_spent(const protocol::BatchInfo& info) const {
    if (!is_marker(info) || holding_.contains(*info.producer_id)) return false;
    const auto newest = newest_.find(*info.producer_id);
    return newest != newest_.end() && newest->second > info.last_offset;
  }

 private:
  static bool is_marker(const protocol::BatchInfo& info) {
    return info.control() && info.transactional() && info.producer_id;
  }

  std::unordered_map<base::ProducerId, base::Offset> newest_;
  std::unordered_set<base::ProducerId> holding_;
};

struct CleanRules {
  std::int64_t now_ms = 0;
  std::int64_t delete_retention_ms = 24ll * 3600 * 1000;  // delete.retention.ms
  // The batch must stay, perhaps without records: the log end, or a producer's sequence, is read
  // from it.
  bool keep_batch = false;
};

struct CleanedBatch {
  enum class What { as_it_is, rewritten, dropped } what = What::as_it_is;
  base::Buffer bytes;  // when rewritten
  std::uint32_t records_dropped = 0;
};

// A data batch of magic 2; others are kept as they are. Records without a key are dropped. A
// tombstone stays for delete_retention_ms after the first cleaning that met it, which writes that
// time into the batch.
base::Result<CleanedBatch> clean_batch(base::Bytes batch, const KeyOffsets& keys,
                                       const CleanRules& rules);

// A cleaned segment is written as `.log.cleaned`, renamed to `.log.swap` once it is durable, and
// then takes the place of the segment that it was made from. From `.swap` on the replacement is
// carried out, at the next start if need be; `.cleaned` files are dropped.
base::Result<void> finish_swaps(FileSystem& files, const std::string& directory);

}  // namespace storage
