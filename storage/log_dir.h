// One of `log.dirs`: the lock, meta.properties, the clean-shutdown mark, Kafka's checkpoint files,
// and the logs below it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/log.h"

namespace storage {

struct LogDirectoryIdentity {  // meta.properties, version 1
  std::string cluster_id;
  base::NodeId node_id = 0;
  base::Uuid directory_id;
};

class LogDirectory {
 public:
  // Takes `.lock` (locked if another process has it), reads or writes meta.properties
  // (wrong_cluster if it differs from `expected` where that is not empty; an empty cluster_id
  // adopts what stands there or makes a new one), reads and then REMOVES `.kafka_cleanshutdown`
  // durably before any log is loaded (B03).
  static base::Result<std::unique_ptr<LogDirectory>> open(FileSystem& files, std::string path,
                                                          LogDirectoryIdentity expected);
  virtual ~LogDirectory() = default;

  virtual const std::string& path() const = 0;
  virtual const LogDirectoryIdentity& identity() const = 0;
  virtual bool was_clean() const = 0;
  // Partition directories found: `<topic>-<partition>` with the id of partition.metadata. `-delete`
  // and `-stray` directories are removed or ignored. Fast: opens no log.
  struct Found {
    std::string directory_name;
    std::string topic;
    std::int32_t partition = 0;
    std::optional<base::Uuid> topic_id;
  };
  virtual base::Result<std::vector<Found>> scan() = 0;
  virtual base::Result<std::unique_ptr<Log>> open_log(const std::string& topic,
                                                      std::int32_t partition,
                                                      const base::Uuid& topic_id, LogConfig config,
                                                      std::int64_t now_ms,
                                                      std::uint64_t reserve_bytes) = 0;
  // Renames to `-delete` first, so that a crash cannot bring it back half, then removes.
  virtual base::Result<void> delete_log(const std::string& topic, std::int32_t partition) = 0;
  // The first half alone: the log is gone and its bytes are still there, under the path that is
  // answered, for the caller to remove. Absent: there was none.
  virtual base::Result<std::optional<std::string>> set_log_aside(const std::string& topic,
                                                                 std::int32_t partition) = 0;

  // Checkpoints, written together: recovery point (durable end), log start, high watermark, per
  // `topic partition`.
  struct Checkpoint {
    std::string topic;
    std::int32_t partition = 0;
    Offset recovery_point = 0, log_start = 0, high_watermark = 0;
  };
  virtual base::Result<void> write_checkpoints(const std::vector<Checkpoint>& all) = 0;
  virtual std::optional<Checkpoint> checkpoint(const std::string& topic,
                                               std::int32_t partition) const = 0;
  // After every log was closed without error: checkpoints and the mark, then the lock is released.
  virtual base::Result<void> close_clean(const std::vector<Checkpoint>& all) = 0;
};

}  // namespace storage
