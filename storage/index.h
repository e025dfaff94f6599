// Kafka's two indexes of a segment.
//
//   .index      int32 offset - base, int32 file position     one entry per index.interval.bytes;
//   the
//               offset is a batch's LAST one, the position where that batch begins
//   .timeindex  int64 largest timestamp so far, int32 last offset - base of the batch that holds it
//
// Indexes are caches of the .log file: one that is missing or wrong is rebuilt, and a reader that
// follows an entry checks what it finds there. Entries are searched on disk and cost no memory;
// those not yet written wait in `pending`. Files are opened at first use.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "storage/file.h"

namespace storage {

// Entries of fixed size at the end of a file.
class IndexFile {
 public:
  IndexFile(FileSystem& files, std::string path, std::size_t entry_bytes);

  // Takes the file as it stands. corrupt_file when its size is no multiple of an entry's; an error
  // of the file system when it is missing.
  base::Result<void> open();
  // A new, empty file, also in place of an old one.
  base::Result<void> create();
  // The same under a temporary name: the old file stays until commit() has made the new one durable
  // and puts it in its place.
  base::Result<void> create_aside();
  base::Result<void> commit();

  std::size_t count() const { return written_ + pending_.size() / entry_bytes_; }
  void append(base::Bytes entry);
  // Writes out what waits; call it from time to time. On failure the entries go on waiting.
  base::Result<void> flush();
  bool wants_flush() const;
  base::Result<void> truncate(std::size_t count);
  // Consecutive entries from number `first` on, which must be there.
  base::Result<void> read(std::size_t first, base::MutableBytes into) const;
  // The number of leading entries for which `holds(entry)` is true; it must be true for a prefix.
  template <class F>
  base::Result<std::size_t> count_while(F holds) const;

  const std::string& path() const { return path_; }
  // For syncing; opens the file if need be.
  base::Result<std::shared_ptr<File>> file() const;
  // Gives the descriptor back until the next use.
  void release() const { file_.reset(); }

 private:
  std::string path_now() const { return aside_ ? path_ + ".tmp" : path_; }

  FileSystem& files_;
  std::string path_;
  std::size_t entry_bytes_;
  std::size_t written_ = 0;  // entries in the file
  bool aside_ = false;
  base::Buffer pending_;
  mutable std::shared_ptr<File> file_;
};

class OffsetIndex {
 public:
  OffsetIndex(FileSystem& files, std::string path, base::Offset base);

  base::Result<void> create(bool aside = false);
  // corrupt_file when the last entry cannot be right for a log file of `log_bytes`.
  base::Result<void> open(std::uint64_t log_bytes);

  // Position of a batch at or before the first one that reaches `target`; 0 if no entry helps.
  base::Result<std::uint32_t> lookup(base::Offset target) const;
  // The offset of the first entry at or behind `position`; nothing if there is none.
  base::Result<std::optional<base::Offset>> offset_at(std::uint64_t position) const;
  // Offsets and positions grow from call to call, and the offset is above the base.
  void append(base::Offset last_offset, std::uint32_t position);
  // Removes entries of batches that reach `offset`.
  base::Result<void> truncate_to(base::Offset offset);
  bool full(std::uint32_t index_bytes_max) const { return entries_.count() >= index_bytes_max / 8; }
  struct Entry {
    base::Offset offset = 0;
    std::uint32_t position = 0;
  };
  const std::optional<Entry>& last() const { return last_; }
  std::size_t count() const { return entries_.count(); }
  IndexFile& entries() { return entries_; }

 private:
  base::Result<void> load_last();

  IndexFile entries_;
  base::Offset base_;
  std::optional<Entry> last_;
};

class TimeIndex {
 public:
  TimeIndex(FileSystem& files, std::string path, base::Offset base);

  base::Result<void> create(bool aside = false);
  base::Result<void> open();

  struct Entry {
    std::int64_t timestamp_ms = 0;
    base::Offset offset = 0;
  };
  // The last entry with a timestamp at or below the given one.
  base::Result<std::optional<Entry>> lookup(std::int64_t timestamp_ms) const;
  // Does nothing unless the timestamp is above that of the last entry.
  void maybe_append(Entry entry);
  // Removes entries at or above `offset`.
  base::Result<void> truncate_to(base::Offset offset);
  // One slot is kept for the entry that sealing adds.
  bool full(std::uint32_t index_bytes_max) const {
    return entries_.count() + 1 >= index_bytes_max / 12;
  }
  const std::optional<Entry>& last() const { return last_; }
  std::size_t count() const { return entries_.count(); }
  IndexFile& entries() { return entries_; }

 private:
  base::Result<void> load_last();

  IndexFile entries_;
  base::Offset base_;
  std::optional<Entry> last_;
};

}  // namespace storage
