// A file system in memory that fails on demand and loses power. It keeps two images of everything:
// what was written, and what was synced. A power cut leaves the synced image plus a random subset
// of the rest that a real disk may leave: single sectors of unsynced writes, a size between the
// synced and the written one, directory entries that were made, renamed or removed since the
// directory was synced, in any combination.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "storage/file.h"

namespace storage_test {

enum class DiskCall { write, sync, truncate, open, rename, remove, sync_directory, read };

class FaultFileSystem final : public storage::FileSystem {
 public:
  explicit FaultFileSystem(std::uint64_t seed);
  ~FaultFileSystem() override;

  // Asked before each call; an error makes it fail. A failing write leaves a random prefix behind.
  // Whatever the error, a failing sync says sync_failed, and as with a real kernel that forgets
  // what it could not write, later syncs of that file or directory succeed and keep nothing.
  std::function<base::Error(DiskCall, const std::string& path)> fault;
  // True for a file or directory whose syncs are reported done and not made: what a test of power
  // cuts must notice.
  std::function<bool(const std::string& path)> lost_sync;
  // So many bytes fit in all files; writes beyond fail with ENOSPC after a random prefix.
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;

  // After so many more changing calls everything fails, without effect, until power_cut().
  void die_after(std::uint64_t calls) { calls_left_ = calls; }
  void live_on() { calls_left_.reset(); }
  bool dead() const { return calls_left_ && *calls_left_ == 0; }
  // The machine starts again with what the disk kept. All files opened before are void.
  void power_cut();
  // Changing calls so far.
  std::uint64_t calls() const { return calls_; }

  // For damaging files behind the log's back.
  base::Buffer& content(const std::string& path);

  base::Result<std::shared_ptr<storage::File>> open(const std::string& path,
                                                    storage::OpenMode mode) override;
  base::Result<void> rename(const std::string& from, const std::string& to) override;
  base::Result<void> remove(const std::string& path) override;
  base::Result<void> remove_all(const std::string& path) override;
  base::Result<void> create_directory(const std::string& path) override;
  base::Result<void> sync_directory(const std::string& path) override;
  base::Result<std::vector<std::string>> list(const std::string& path) override;
  base::Result<bool> exists(const std::string& path) override;
  base::Result<std::shared_ptr<void>> lock(const std::string& path) override;
  base::Result<std::uint64_t> free_bytes(const std::string& path) override;
  base::Result<std::uint64_t> total_bytes(const std::string& path) override;

 private:
  friend class FaultFile;
  struct Inode {
    base::Buffer written, synced;
    bool sync_failed = false;
  };
  struct Change {                  // of one directory, not yet synced
    std::string name, from;        // `from`: renamed
    std::shared_ptr<Inode> inode;  // null: removed
  };
  struct Directory {
    std::map<std::string, std::shared_ptr<Inode>> written, synced;
    std::vector<Change> changes;
    bool sync_failed = false;
  };

  base::Error begin(DiskCall call, const std::string& path);
  Directory* directory_of(const std::string& path);
  std::shared_ptr<Inode> find(const std::string& path);
  std::uint64_t used_bytes() const;
  void cut_file(Inode& inode);
  void cut_directory(Directory& directory);

  base::Random random_;
  std::map<std::string, Directory> directories_;
  std::map<std::string, std::weak_ptr<void>> locks_;
  std::optional<std::uint64_t> calls_left_;
  std::uint64_t calls_ = 0;
};

}  // namespace storage_test
