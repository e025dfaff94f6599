#include "storage/log_dir.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/base/random.h"
#include "storage/checkpoint.h"
#include "storage/error.h"

namespace storage {
namespace {

constexpr const char* lock_file = ".lock";
constexpr const char* identity_file = "meta.properties";
constexpr const char* clean_file = ".kafka_cleanshutdown";
constexpr const char* recovery_point_file = "recovery-point-offset-checkpoint";
constexpr const char* log_start_file = "log-start-offset-checkpoint";
constexpr const char* high_watermark_file = "replication-offset-checkpoint";
constexpr std::string_view delete_suffix = "-delete";
constexpr std::size_t file_name_max = 255;

bool missing(base::Error error) {
  return error == boost::system::errc::no_such_file_or_directory;
}

std::map<std::string, std::string> parse_properties(std::string_view text) {
  std::map<std::string, std::string> properties;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    properties[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return properties;
}

struct Parsed {
  std::string topic;
  std::int32_t partition = 0;
};
// `<topic>-<partition>`
std::optional<Parsed> parse_directory_name(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(dash + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  auto number = parse_number(digits);
  if (!number || *number > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return Parsed{name.substr(0, dash), static_cast<std::int32_t>(*number)};
}

class KafkaLogDirectory final : public LogDirectory {
 public:
  KafkaLogDirectory(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  base::Result<void> start(const LogDirectoryIdentity& expected) {
    TRY_VOID(files_.create_directory(path_));
    TRY(lock_, files_.lock(at(lock_file)));
    TRY_VOID(settle_identity(expected));
    // The mark goes before anything is loaded: a crash from here on must not find it again.
    TRY(was_clean_, files_.exists(at(clean_file)));
    if (was_clean_) {
      TRY_VOID(files_.remove(at(clean_file)));
      TRY_VOID(files_.sync_directory(path_));
    }
    TRY(recovery_points_, read_offsets(recovery_point_file));
    TRY(log_starts_, read_offsets(log_start_file));
    TRY(high_watermarks_, read_offsets(high_watermark_file));
    return {};
  }

  const std::string& path() const override { return path_; }
  const LogDirectoryIdentity& identity() const override { return identity_; }
  bool was_clean() const override { return was_clean_; }
  base::Result<std::vector<Found>> scan() override;
  base::Result<std::unique_ptr<Log>> open_log(const std::string& topic, std::int32_t partition,
                                              const base::Uuid& topic_id, LogConfig config,
                                              std::int64_t now_ms,
                                              std::uint64_t reserve_bytes) override;
  base::Result<void> delete_log(const std::string& topic, std::int32_t partition) override;
  base::Result<std::optional<std::string>> set_log_aside(const std::string& topic,
                                                         std::int32_t partition) override;
  base::Result<void> write_checkpoints(const std::vector<Checkpoint>& all) override;
  std::optional<Checkpoint> checkpoint(const std::string& topic,
                                       std::int32_t partition) const override;
  base::Result<void> close_clean(const std::vector<Checkpoint>& all) override;

 private:
  std::string at(const char* name) const { return path_ + "/" + name; }
  std::string log_path(const std::string& topic, std::int32_t partition) const {
    return path_ + "/" + topic + "-" + std::to_string(partition);
  }
  base::Result<void> settle_identity(const LogDirectoryIdentity& expected);
  base::Result<void> write_identity();
  base::Result<OffsetCheckpoint> read_offsets(const char* name);
  base::Result<void> write_offsets();
  // With mutex_ held; the files follow with the next write_offsets().
  void forget(const std::string& topic, std::int32_t partition) {
    for (OffsetCheckpoint* offsets : {&recovery_points_, &log_starts_, &high_watermarks_})
      if (offsets->erase({topic, partition}) > 0) files_lag_ = true;
  }

  FileSystem& files_;
  std::string path_;
  LogDirectoryIdentity identity_;
  bool was_clean_ = false;
  std::shared_ptr<void> lock_;
  mutable std::mutex mutex_;  // logs are opened and deleted by the shards
  OffsetCheckpoint recovery_points_, log_starts_, high_watermarks_;
  bool files_lag_ = false;  // the files still speak of logs that are gone
};

base::Result<void> KafkaLogDirectory::settle_identity(const LogDirectoryIdentity& expected) {
  identity_ = expected;
  auto content = files_.read_whole(at(identity_file));
  if (content.has_error() && !missing(content.error())) return content.error();
  if (content) {
    auto properties = parse_properties(base::as_text(*content));
    const std::string cluster_id = properties["cluster.id"];
    // Version 0, of brokers with ZooKeeper, says broker.id.
    auto node = parse_number(properties.contains("node.id") ? properties["node.id"]
                                                            : properties["broker.id"]);
    if (cluster_id.empty() || !node) {
      base::logger("storage").error("{} lacks cluster.id or node.id", at(identity_file));
      return StorageErrc::corrupt_file;
    }
    const bool other_cluster = !expected.cluster_id.empty() && expected.cluster_id != cluster_id;
    if (other_cluster || *node != expected.node_id) {
      base::logger("storage").error("{} belongs to node {} of cluster {}", path_, *node,
                                    cluster_id);
      return StorageErrc::wrong_cluster;
    }
    identity_.cluster_id = cluster_id;
    if (auto id = base::Uuid::parse(properties["directory.id"])) {
      identity_.directory_id = *id;
      return {};
    }
  }
  base::Random random = base::Random::from_system();
  if (identity_.cluster_id.empty()) identity_.cluster_id = random.uuid().to_string();
  if (identity_.directory_id.is_zero()) identity_.directory_id = random.uuid();
  return write_identity();
}

base::Result<void> KafkaLogDirectory::write_identity() {
  const std::string text = "cluster.id=" + identity_.cluster_id +
                           "\ndirectory.id=" + identity_.directory_id.to_string() +
                           "\nnode.id=" + std::to_string(identity_.node_id) + "\nversion=1\n";
  return files_.write_whole(at(identity_file), base::as_bytes(text));
}

base::Result<OffsetCheckpoint> KafkaLogDirectory::read_offsets(const char* name) {
  auto content = files_.read_whole(at(name));
  if (content.has_error() && missing(content.error())) return OffsetCheckpoint{};
  if (content.has_error()) return content.error();
  auto offsets = parse_offset_checkpoint(base::as_text(*content));
  if (offsets) return offsets;
  // Without it more is verified at start, nothing is lost.
  base::logger("storage").error("{} is damaged and not used", at(name));
  was_clean_ = false;
  return OffsetCheckpoint{};
}

base::Result<std::vector<LogDirectory::Found>> KafkaLogDirectory::scan() {
  TRY(auto names, files_.list(path_));
  std::vector<Found> found;
  OffsetCheckpoint there;
  for (const std::string& name : names) {
    if (name.ends_with(delete_suffix)) {
      base::logger("storage").info("removing {}/{}, which was deleted before", path_, name);
      TRY_VOID(files_.remove_all(path_ + "/" + name));
      continue;
    }
    auto parsed = parse_directory_name(name);
    if (!parsed) continue;
    Found one{name, parsed->topic, parsed->partition, std::nullopt};
    auto id = read_partition_metadata(files_, path_ + "/" + name);
    if (id)
      one.topic_id = *id;
    else if (id.error() != StorageErrc::corrupt_file)
      return id.error();
    else
      base::logger("storage").error("{}/{}/partition.metadata is damaged", path_, name);
    there[{one.topic, one.partition}] = 0;
    found.push_back(std::move(one));
  }
  std::lock_guard lock(mutex_);
  for (OffsetCheckpoint* offsets : {&recovery_points_, &log_starts_, &high_watermarks_})
    if (std::erase_if(*offsets, [&](const auto& one) { return !there.contains(one.first); }) > 0)
      files_lag_ = true;
  return found;
}

base::Result<std::unique_ptr<Log>> KafkaLogDirectory::open_log(
    const std::string& topic, std::int32_t partition, const base::Uuid& topic_id, LogConfig config,
    std::int64_t now_ms, std::uint64_t reserve_bytes) {
  const std::string directory = log_path(topic, partition);
  TRY(bool there, files_.exists(directory));
  std::optional<base::Uuid> stored;
  if (there) {
    TRY(stored, read_partition_metadata(files_, directory));
  }
  if (stored && *stored != topic_id) {
    base::logger("storage").error("{} belongs to topic id {}, not {}", directory,
                                  stored->to_string(), topic_id.to_string());
    return StorageErrc::conflict;
  }
  if (!there) {
    // A new log must not inherit the recovery point of an earlier one of its name.
    std::lock_guard lock(mutex_);
    forget(topic, partition);
    if (files_lag_) TRY_VOID(write_offsets());
  }
  Log::OpenOptions options;
  options.now_ms = now_ms;
  options.reserve_bytes = reserve_bytes;
  options.clean_shutdown = was_clean_;
  if (auto known = there ? checkpoint(topic, partition) : std::nullopt) {
    options.recovery_point = known->recovery_point;
    options.log_start = known->log_start;
  }
  TRY(auto log, Log::open(files_, directory, config, options));
  if (!stored && !topic_id.is_zero())
    TRY_VOID(write_partition_metadata(files_, directory, topic_id));
  return log;
}

base::Result<void> KafkaLogDirectory::delete_log(const std::string& topic, std::int32_t partition) {
  TRY(const auto aside, set_log_aside(topic, partition));
  if (aside) TRY_VOID(files_.remove_all(*aside));
  // Not before: on a full disk deleting is what makes the room to write.
  std::lock_guard lock(mutex_);
  if (files_lag_) TRY_VOID(write_offsets());
  return {};
}

base::Result<std::optional<std::string>> KafkaLogDirectory::set_log_aside(const std::string& topic,
                                                                          std::int32_t partition) {
  const std::string directory = log_path(topic, partition);
  {
    std::lock_guard lock(mutex_);
    forget(topic, partition);
  }
  TRY(bool there, files_.exists(directory));
  if (!there) return std::optional<std::string>();
  const std::string suffix = "-" + std::to_string(partition) + "." +
                             base::to_hex(base::Random::from_system().uuid().bytes) +
                             std::string(delete_suffix);
  // A long topic name is cut: with the suffix it may be too long for a file system.
  const std::string aside = path_ + "/" + topic.substr(0, file_name_max - suffix.size()) + suffix;
  TRY_VOID(files_.rename(directory, aside));
  TRY_VOID(files_.sync_directory(path_));
  return std::optional(aside);
}

// All three, with mutex_ held.
base::Result<void> KafkaLogDirectory::write_offsets() {
  TRY_VOID(files_.write_whole(at(recovery_point_file), base::as_bytes(to_text(recovery_points_))));
  TRY_VOID(files_.write_whole(at(log_start_file), base::as_bytes(to_text(log_starts_))));
  TRY_VOID(files_.write_whole(at(high_watermark_file), base::as_bytes(to_text(high_watermarks_))));
  files_lag_ = false;
  return {};
}

base::Result<void> KafkaLogDirectory::write_checkpoints(const std::vector<Checkpoint>& all) {
  std::lock_guard lock(mutex_);
  for (const Checkpoint& one : all) {
    const std::pair key(one.topic, one.partition);
    recovery_points_[key] = one.recovery_point;
    log_starts_[key] = one.log_start;
    high_watermarks_[key] = one.high_watermark;
  }
  return write_offsets();
}

std::optional<LogDirectory::Checkpoint> KafkaLogDirectory::checkpoint(
    const std::string& topic, std::int32_t partition) const {
  std::lock_guard lock(mutex_);
  const std::pair key(topic, partition);
  auto recovery = recovery_points_.find(key), start = log_starts_.find(key),
       high = high_watermarks_.find(key);
  Checkpoint one{topic, partition};
  if (recovery == recovery_points_.end() && start == log_starts_.end() &&
      high == high_watermarks_.end())
    return std::nullopt;
  if (recovery != recovery_points_.end()) one.recovery_point = recovery->second;
  if (start != log_starts_.end()) one.log_start = start->second;
  if (high != high_watermarks_.end()) one.high_watermark = high->second;
  return one;
}

base::Result<void> KafkaLogDirectory::close_clean(const std::vector<Checkpoint>& all) {
  CHECK(lock_ != nullptr);
  TRY_VOID(write_checkpoints(all));
  TRY_VOID(
      files_.write_whole(at(clean_file), base::as_bytes("{\"version\":0,\"brokerEpoch\":-1}")));
  lock_.reset();
  return {};
}

}  // namespace

base::Result<std::unique_ptr<LogDirectory>> LogDirectory::open(FileSystem& files, std::string path,
                                                               LogDirectoryIdentity expected) {
  auto directory = std::make_unique<KafkaLogDirectory>(files, std::move(path));
  TRY_VOID(directory->start(expected));
  return std::unique_ptr<LogDirectory>(std::move(directory));
}

}  // namespace storage
