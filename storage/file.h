// The only door to the disk. The product links posix_file.cc; tests wrap a FileSystem in one that
// fails, tears and forgets what was not synced (tests/lib/fault_file.h).
//
// Calls block. Appends go to the page cache and are made on the thread that owns the log, while the
// bytes are still warm in its cache; syncs, which wait for the device, are made on a disk thread
// (see docs/decisions.md). A File may be read from any thread; writes and truncation belong to its
// owner.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

namespace storage {

class File {
 public:
  virtual ~File() = default;
  // Fills all of `into` or fails; StorageErrc::short_read when the file ends before.
  virtual base::Result<void> pread(base::MutableBytes into, std::uint64_t position) const = 0;
  // Writes all of `bytes` or fails; after a failure what stands at `position` is unknown.
  virtual base::Result<void> pwrite(base::Bytes bytes, std::uint64_t position) = 0;
  // fdatasync. Fails with sync_failed, whatever the system said: after the first failure nothing
  // written since the last success can be trusted, so never "try again".
  virtual base::Result<void> sync() = 0;
  // Shorter or longer (with zeros); durable with the next sync(). Gives back what reserve() took
  // beyond `size`.
  virtual base::Result<void> truncate(std::uint64_t size) = 0;
  virtual base::Result<std::uint64_t> size() const = 0;
  // Takes disk blocks for [position, position + bytes) without changing the size or any byte: it
  // halves the cost of the writes that follow. A hint: nothing fails when it cannot be done.
  virtual void reserve(std::uint64_t position, std::uint64_t bytes) = 0;
  // For sendfile; -1 where there is no descriptor (in-memory files).
  virtual int descriptor() const = 0;
};

enum class OpenMode {
  read,
  read_write,
  create
};  // create: exclusive or truncating an existing file

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual base::Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual base::Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual base::Result<void> remove(const std::string& path) = 0;  // a file
  virtual base::Result<void> remove_all(
      const std::string& path) = 0;  // a directory and what is in it
  virtual base::Result<void> create_directory(
      const std::string& path) = 0;  // with parents; fine when it exists
  // sync_failed likewise.
  virtual base::Result<void> sync_directory(const std::string& path) = 0;
  virtual base::Result<std::vector<std::string>> list(
      const std::string& path) = 0;  // names, sorted
  virtual base::Result<bool> exists(const std::string& path) = 0;
  // Creates the file if need be and holds it against every other process, and everybody else in
  // this one, until the result is dropped; StorageErrc::locked when somebody has it.
  virtual base::Result<std::shared_ptr<void>> lock(const std::string& path) = 0;
  // Bytes that may still be written to the file system that holds `path`.
  virtual base::Result<std::uint64_t> free_bytes(const std::string& path) = 0;
  virtual base::Result<std::uint64_t> total_bytes(const std::string& path) = 0;

  // Small files as a whole. write_whole: temporary, sync, rename, sync of the directory.
  base::Result<base::Buffer> read_whole(const std::string& path);
  base::Result<void> write_whole(const std::string& path, base::Bytes content);
};

// "a/b" of "a/b/c".
std::string parent_directory(const std::string& path);

// The disk, or somebody's share of it, is full.
bool is_no_space(base::Error error);

// The real one.
FileSystem& posix_file_system();

}  // namespace storage
