// The log directory behind one door that every shard may use: opening, deleting, checkpoints, and
// what to do with directories that no topic knows. The directory has its own lock.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "storage/log_dir.h"

namespace broker {

class LogStore {
 public:
  // `reserve_bytes` absent: the lesser of 5 % of the disk and 1 GiB.
  static base::Result<std::unique_ptr<LogStore>> open(storage::FileSystem& files, std::string path,
                                                      base::NodeId node_id,
                                                      std::optional<std::uint64_t> reserve_bytes);

  const std::string& path() const { return directory_->path(); }
  const std::string& cluster_id() const { return directory_->identity().cluster_id; }
  bool was_clean() const { return directory_->was_clean(); }
  std::uint64_t reserve_bytes() const { return reserve_bytes_; }
  // Of the file system. Waits for the device.
  struct Space {
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
  };
  base::Result<Space> space() const;
  // Whether so little is left that files of deleted logs cannot be kept for a while. Waits too.
  bool is_short_of_space() const;

  // Moves partition directories that no topic knows, or that belong to another topic of the same
  // name, aside as `….-stray`: data is never deleted because a record is missing. Before any log is
  // opened. Answers what was moved.
  struct Known {
    std::string topic;
    std::int32_t partitions = 0;
    base::Uuid id;
  };
  base::Result<std::vector<std::string>> set_strays_aside(const std::vector<Known>& known);

  // Any thread.
  base::Result<std::unique_ptr<storage::Log>> open_log(const std::string& topic,
                                                       std::int32_t partition,
                                                       const base::Uuid& topic_id,
                                                       const storage::LogConfig& config);
  // The log is gone on return; its files stay for `delay_ms` and are then told by take_deleted().
  base::Result<void> delete_log(const std::string& topic, std::int32_t partition,
                                std::int64_t delay_ms = 0);
  std::vector<std::string> take_deleted(std::int64_t now_ms);
  // A file, or a directory and what is in it; fine when it is not there. Waits for the device.
  base::Result<void> remove(const std::string& path);
  base::Result<void> write_checkpoints(const std::vector<storage::LogDirectory::Checkpoint>& all);
  // Every log was closed without an error. Nothing may be called afterwards.
  base::Result<void> close_clean(const std::vector<storage::LogDirectory::Checkpoint>& all);

 private:
  LogStore(storage::FileSystem& files, std::unique_ptr<storage::LogDirectory> directory,
           std::uint64_t reserve_bytes)
      : files_(files), directory_(std::move(directory)), reserve_bytes_(reserve_bytes) {}

  storage::FileSystem& files_;
  std::unique_ptr<storage::LogDirectory> directory_;
  std::uint64_t reserve_bytes_;
  struct Deleted {
    std::string path;
    std::int64_t until_ms = 0;
  };
  std::mutex mutex_;
  std::vector<Deleted> deleted_;
};

}  // namespace broker
