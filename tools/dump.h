// `calque dump-log`: shows what a file of a partition directory holds and checks it. The kind of
// file is told by its name, as Kafka names them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/batch.h"
#include "storage/file.h"
#include "tools/arguments.h"
#include "tools/json.h"

namespace tools {

enum class FileKind {
  segment,             // %020d.log
  offset_index,        // %020d.index
  time_index,          // %020d.timeindex
  transaction_index,   // %020d.txnindex
  producer_snapshot,   // %020d.snapshot
  epoch_checkpoint,    // leader-epoch-checkpoint
  partition_metadata,  // partition.metadata
};
std::optional<FileKind> kind_of(std::string_view path);

struct DumpOptions {
  bool records = false;  // of a segment: also the records inside its batches
  bool json = false;     // one object a line
};

// One line of output: `kind name value name value`, or a JSON object with a field `kind`. Absent
// values are left out, or null.
class DumpLine {
 public:
  DumpLine(std::string_view kind, bool json);
  DumpLine& add(std::string_view name, std::string_view text);
  DumpLine& add(std::string_view name, const char* text) {
    return add(name, std::string_view(text));
  }
  template <std::integral T>
  DumpLine& add(std::string_view name, T number) {
    if (json_) {
      object_.field(name, number);
    } else {
      plain_ += " " + std::string(name) + " " + std::to_string(number);
    }
    return *this;
  }
  template <class T>
  DumpLine& add(std::string_view name, const std::optional<T>& value) {
    if (value) return add(name, *value);
    if (json_) object_.key(name).null();
    return *this;
  }
  // A word that stands alone, or a field that is true.
  DumpLine& mark(std::string_view name, bool on);
  std::string text() const;

 private:
  bool json_;
  std::string plain_;
  Json object_;
};

// Walks the batch headers of a segment file; the records stay on disk.
class SegmentScan {
 public:
  explicit SegmentScan(const storage::File& file);
  bool next();
  const protocol::BatchInfo& info() const { return info_; }
  std::uint64_t position() const { return next_ - info_.size_bytes; }
  std::uint64_t file_bytes() const { return size_; }
  std::uint64_t end() const { return next_; }  // of the last batch returned
  // Why next() said no before the end of the file.
  base::Error stopped() const { return stopped_; }

 private:
  const storage::File& file_;
  std::uint64_t size_ = 0;
  std::uint64_t next_ = 0;
  protocol::BatchInfo info_;
  base::Error stopped_;
};

class Dump {
 public:
  Dump(storage::FileSystem& files, std::string path, DumpOptions options, std::ostream& out);
  // Prints everything. False when something in the file is invalid. Throws Failure when the file
  // cannot be read or is none that is known.
  bool run();

 private:
  void segment();
  void batch(base::Bytes bytes, std::uint64_t position);
  void batch_records(base::Bytes bytes, bool control);
  void offset_index();
  void time_index();
  void transaction_index();
  void producer_snapshot();
  void epoch_checkpoint();
  void partition_metadata();

  void print(const DumpLine& line);
  void problem(const std::string& what);
  std::shared_ptr<storage::File> open(const std::string& path) const;
  base::Buffer whole_file(std::uint64_t size_max) const;
  // The `.log` beside an index, if it is there.
  std::shared_ptr<storage::File> segment_beside() const;
  // The offset in the file's name.
  std::int64_t named_offset() const;
  // The entries before the zeros that preallocation leaves at the end. A size that is no multiple
  // of an entry's is a problem.
  std::uint64_t entry_count(base::Bytes content, std::uint64_t entry_bytes);
  void summary(std::string_view what, std::uint64_t count);

  storage::FileSystem& files_;
  std::string path_;
  DumpOptions options_;
  std::ostream& out_;
  bool mirror_state_ = false;  // the segment belongs to __mirror_state
  std::uint64_t problems_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t records_ = 0;
};

ExitCode dump_log(const Arguments& arguments, Output& output);

}  // namespace tools
