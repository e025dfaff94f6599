#include "broker/log_store.h"

#include <algorithm>
#include <map>

#include "protocol/base/clock.h"
#include "protocol/base/random.h"

namespace broker {
namespace {

constexpr std::uint64_t reserve_bytes_max = 1ull << 30;
constexpr std::uint64_t short_of_space_bytes = 16ull << 20;
constexpr std::uint64_t reserve_divisor = 20;  // 5 %
constexpr std::size_t file_name_max = 255;

}  // namespace

base::Result<std::unique_ptr<LogStore>> LogStore::open(storage::FileSystem& files, std::string path,
                                                       base::NodeId node_id,
                                                       std::optional<std::uint64_t> reserve_bytes) {
  storage::LogDirectoryIdentity expected;
  expected.node_id = node_id;
  TRY(auto directory, storage::LogDirectory::open(files, path, expected));
  if (!reserve_bytes) {
    TRY(const std::uint64_t total, files.total_bytes(path));
    reserve_bytes = std::min(total / reserve_divisor, reserve_bytes_max);
  }
  return std::unique_ptr<LogStore>(new LogStore(files, std::move(directory), *reserve_bytes));
}

base::Result<LogStore::Space> LogStore::space() const {
  Space space;
  TRY(space.total_bytes, files_.total_bytes(path()));
  TRY(space.free_bytes, files_.free_bytes(path()));
  return space;
}

bool LogStore::is_short_of_space() const {
  const auto now = space();
  return now.has_value() && now->free_bytes < 2 * reserve_bytes_ + short_of_space_bytes;
}

base::Result<std::vector<std::string>> LogStore::set_strays_aside(const std::vector<Known>& known) {
  std::map<std::string, const Known*> by_name;
  for (const Known& one : known) by_name[one.topic] = &one;
  TRY(const auto found, directory_->scan());
  std::vector<std::string> moved;
  base::Random random = base::Random::from_system();
  for (const auto& one : found) {
    const auto at = by_name.find(one.topic);
    if (at != by_name.end() && one.partition < at->second->partitions &&
        (!one.topic_id || *one.topic_id == at->second->id))
      continue;
    const std::string from = path() + "/" + one.directory_name;
    // The unique part keeps two strays of one name apart; a long name is cut to make room for it.
    const std::string suffix = "." + base::to_hex(random.uuid().bytes) + "-stray";
    const std::string to =
        path() + "/" + one.directory_name.substr(0, file_name_max - suffix.size()) + suffix;
    TRY_VOID(files_.rename(from, to));
    moved.push_back(to);
  }
  if (!moved.empty()) TRY_VOID(files_.sync_directory(path()));
  return moved;
}

base::Result<std::unique_ptr<storage::Log>> LogStore::open_log(const std::string& topic,
                                                               std::int32_t partition,
                                                               const base::Uuid& topic_id,
                                                               const storage::LogConfig& config) {
  return directory_->open_log(topic, partition, topic_id, config, base::wall_clock_ms(),
                              reserve_bytes_);
}

base::Result<void> LogStore::delete_log(const std::string& topic, std::int32_t partition,
                                        std::int64_t delay_ms) {
  if (delay_ms <= 0) return directory_->delete_log(topic, partition);
  TRY(const auto aside, directory_->set_log_aside(topic, partition));
  if (!aside) return {};
  const std::lock_guard lock(mutex_);
  deleted_.push_back({*aside, base::wall_clock_ms() + delay_ms});
  return {};
}

std::vector<std::string> LogStore::take_deleted(std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  std::erase_if(deleted_, [&](const Deleted& one) {
    if (one.until_ms > now_ms) return false;
    paths.push_back(one.path);
    return true;
  });
  return paths;
}

base::Result<void> LogStore::remove(const std::string& path) {
  auto removed = files_.remove_all(path);
  if (removed.has_error() && removed.error() == boost::system::errc::no_such_file_or_directory)
    return {};
  return removed;
}

base::Result<void> LogStore::write_checkpoints(
    const std::vector<storage::LogDirectory::Checkpoint>& all) {
  return directory_->write_checkpoints(all);
}

base::Result<void> LogStore::close_clean(
    const std::vector<storage::LogDirectory::Checkpoint>& all) {
  return directory_->close_clean(all);
}

}  // namespace broker
