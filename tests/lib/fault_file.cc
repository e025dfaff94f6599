#include "tests/lib/fault_file.h"

#include <algorithm>
#include <cerrno>

#include "protocol/base/check.h"
#include "storage/error.h"

namespace storage_test {
namespace {

constexpr std::size_t sector_bytes = 512;

base::Error system_error(int code) {
  return {code, boost::system::system_category()};
}

std::string name_of(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

class FaultFile final : public storage::File {
 public:
  FaultFile(FaultFileSystem& files, std::shared_ptr<FaultFileSystem::Inode> inode, std::string path)
      : files_(files), inode_(std::move(inode)), path_(std::move(path)) {}

  base::Result<void> pread(base::MutableBytes into, std::uint64_t position) const override {
    if (files_.fault)
      if (auto error = files_.fault(DiskCall::read, path_)) return error;
    const base::Buffer& content = inode_->written;
    if (position + into.size() > content.size()) return storage::StorageErrc::short_read;
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(position), into.size(), into.begin());
    return {};
  }

  base::Result<void> pwrite(base::Bytes bytes, std::uint64_t position) override {
    base::Error error = files_.begin(DiskCall::write, path_);
    if (error && files_.dead()) return error;
    base::Buffer& content = inode_->written;
    const std::uint64_t end = position + bytes.size();
    const std::uint64_t grows = end > content.size() ? end - content.size() : 0;
    if (!error && files_.used_bytes() + grows > files_.capacity_bytes) error = system_error(ENOSPC);
    if (error) bytes = bytes.first(files_.random_.below(bytes.size() + 1));
    if (content.size() < position + bytes.size()) content.resize(position + bytes.size());
    std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(position));
    if (error) return error;
    return {};
  }

  base::Result<void> sync() override {
    if (files_.begin(DiskCall::sync, path_)) {
      inode_->sync_failed = true;
      return storage::StorageErrc::sync_failed;
    }
    if (inode_->sync_failed || (files_.lost_sync && files_.lost_sync(path_))) return {};
    inode_->synced = inode_->written;
    return {};
  }

  base::Result<void> truncate(std::uint64_t size) override {
    if (auto error = files_.begin(DiskCall::truncate, path_)) return error;
    inode_->written.resize(size);
    return {};
  }

  base::Result<std::uint64_t> size() const override {
    return std::uint64_t{inode_->written.size()};
  }
  void reserve(std::uint64_t, std::uint64_t) override {}
  int descriptor() const override { return -1; }

 private:
  FaultFileSystem& files_;
  std::shared_ptr<FaultFileSystem::Inode> inode_;
  std::string path_;
};

FaultFileSystem::FaultFileSystem(std::uint64_t seed) : random_(seed) {}
FaultFileSystem::~FaultFileSystem() = default;

// Before a call that changes something.
base::Error FaultFileSystem::begin(DiskCall call, const std::string& path) {
  ++calls_;
  if (calls_left_) {
    if (*calls_left_ == 0) return system_error(EIO);
    if (--*calls_left_ == 0 && call != DiskCall::write) return system_error(EIO);
  }
  return fault ? fault(call, path) : base::Error{};
}

FaultFileSystem::Directory* FaultFileSystem::directory_of(const std::string& path) {
  auto it = directories_.find(storage::parent_directory(path));
  return it == directories_.end() ? nullptr : &it->second;
}

std::shared_ptr<FaultFileSystem::Inode> FaultFileSystem::find(const std::string& path) {
  Directory* directory = directory_of(path);
  if (!directory) return nullptr;
  auto it = directory->written.find(name_of(path));
  return it == directory->written.end() ? nullptr : it->second;
}

base::Buffer& FaultFileSystem::content(const std::string& path) {
  auto inode = find(path);
  CHECK(inode != nullptr);
  return inode->written;
}

std::uint64_t FaultFileSystem::used_bytes() const {
  std::uint64_t used = 0;
  for (const auto& [path, directory] : directories_)
    for (const auto& [name, inode] : directory.written) used += inode->written.size();
  return used;
}

base::Result<std::shared_ptr<storage::File>> FaultFileSystem::open(const std::string& path,
                                                                   storage::OpenMode mode) {
  auto inode = find(path);
  if (mode == storage::OpenMode::create) {
    if (auto error = begin(DiskCall::open, path)) return error;
    Directory* directory = directory_of(path);
    if (!directory) return system_error(ENOENT);
    if (inode) {
      inode->written.clear();
    } else {
      inode = std::make_shared<Inode>();
      directory->written[name_of(path)] = inode;
      directory->changes.push_back({name_of(path), {}, inode});
    }
  }
  if (!inode) return system_error(ENOENT);
  return std::shared_ptr<storage::File>(std::make_shared<FaultFile>(*this, inode, path));
}

base::Result<void> FaultFileSystem::rename(const std::string& from, const std::string& to) {
  if (auto error = begin(DiskCall::rename, from)) return error;
  if (auto moved = directories_.find(from); moved != directories_.end()) {
    directories_[to] = std::move(moved->second);
    directories_.erase(from);
    return {};
  }
  auto inode = find(from);
  Directory* directory = directory_of(to);
  if (!inode || directory != directory_of(from)) return system_error(ENOENT);
  directory->written.erase(name_of(from));
  directory->written[name_of(to)] = inode;
  directory->changes.push_back({name_of(to), name_of(from), inode});
  return {};
}

base::Result<void> FaultFileSystem::remove(const std::string& path) {
  if (auto error = begin(DiskCall::remove, path)) return error;
  if (!find(path)) return system_error(ENOENT);
  Directory* directory = directory_of(path);
  directory->written.erase(name_of(path));
  directory->changes.push_back({name_of(path), {}, nullptr});
  return {};
}

base::Result<void> FaultFileSystem::remove_all(const std::string& path) {
  if (auto error = begin(DiskCall::remove, path)) return error;
  directories_.erase(path);
  return {};
}

// Directories are durable at once; what is in them is not.
base::Result<void> FaultFileSystem::create_directory(const std::string& path) {
  if (auto error = begin(DiskCall::open, path)) return error;
  directories_[path];
  return {};
}

base::Result<void> FaultFileSystem::sync_directory(const std::string& path) {
  const base::Error error = begin(DiskCall::sync_directory, path);
  auto it = directories_.find(path);
  if (error) {
    if (it != directories_.end()) it->second.sync_failed = true;
    return storage::StorageErrc::sync_failed;
  }
  if (it == directories_.end()) return {};  // above what the test uses
  if (it->second.sync_failed || (lost_sync && lost_sync(path))) return {};
  it->second.synced = it->second.written;
  it->second.changes.clear();
  return {};
}

base::Result<std::vector<std::string>> FaultFileSystem::list(const std::string& path) {
  auto it = directories_.find(path);
  if (it == directories_.end()) return system_error(ENOENT);
  std::vector<std::string> names;
  for (const auto& [name, inode] : it->second.written) names.push_back(name);
  for (const auto& [below, directory] : directories_)
    if (below != path && storage::parent_directory(below) == path) names.push_back(name_of(below));
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<bool> FaultFileSystem::exists(const std::string& path) {
  return directories_.contains(path) || find(path) != nullptr;
}

base::Result<std::shared_ptr<void>> FaultFileSystem::lock(const std::string& path) {
  if (!locks_[path].expired()) return storage::StorageErrc::locked;
  auto held = std::make_shared<int>(0);
  locks_[path] = held;
  return std::shared_ptr<void>(held);
}

base::Result<std::uint64_t> FaultFileSystem::free_bytes(const std::string&) {
  const std::uint64_t used = used_bytes();
  return used >= capacity_bytes ? 0 : capacity_bytes - used;
}
base::Result<std::uint64_t> FaultFileSystem::total_bytes(const std::string&) {
  return capacity_bytes;
}

void FaultFileSystem::cut_file(Inode& inode) {
  const base::Buffer &synced = inode.synced, &written = inode.written;
  const std::size_t low = std::min(synced.size(), written.size());
  const std::size_t high = std::max(synced.size(), written.size());
  // Often exactly one of the two sizes.
  std::size_t size = low + random_.below(high - low + 1);
  if (random_.chance(30)) size = synced.size();
  if (random_.chance(30)) size = written.size();
  const unsigned keep_percent =
      random_.chance(30) ? 100 : static_cast<unsigned>(random_.below(101));
  base::Buffer left(size);
  for (std::size_t at = 0; at < size; at += sector_bytes) {
    const base::Buffer& from = random_.chance(keep_percent) ? written : synced;
    const std::size_t end = std::min({at + sector_bytes, size, from.size()});
    if (at < end)
      std::copy(from.begin() + static_cast<std::ptrdiff_t>(at),
                from.begin() + static_cast<std::ptrdiff_t>(end),
                left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  inode.written = inode.synced = left;
  inode.sync_failed = false;
}

void FaultFileSystem::cut_directory(Directory& directory) {
  const bool in_order = random_.chance(50);
  const std::size_t prefix = random_.below(directory.changes.size() + 1);
  auto left = directory.synced;
  for (std::size_t i = 0; i < directory.changes.size(); ++i) {
    const Change& change = directory.changes[i];
    if (in_order ? i >= prefix : random_.chance(50)) continue;
    if (!change.inode) {
      left.erase(change.name);
    } else if (change.from.empty()) {
      left[change.name] = change.inode;
    } else if (auto it = left.find(change.from); it != left.end() && it->second == change.inode) {
      left.erase(it);
      left[change.name] = change.inode;
    }
  }
  directory.written = directory.synced = left;
  directory.changes.clear();
  directory.sync_failed = false;
}

void FaultFileSystem::power_cut() {
  calls_left_.reset();
  std::map<Inode*, std::shared_ptr<Inode>> fresh;
  for (auto& [path, directory] : directories_) {
    cut_directory(directory);
    // Copies: files that are still open somewhere must not reach into the new life.
    for (auto& [name, inode] : directory.written) {
      auto& copy = fresh[inode.get()];
      if (!copy) {
        copy = std::make_shared<Inode>(*inode);
        cut_file(*copy);
      }
      inode = copy;
    }
    directory.synced = directory.written;
  }
  locks_.clear();
}

}  // namespace storage_test
