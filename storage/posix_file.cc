// The real file system behind storage/file.h.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "protocol/base/log.h"
#include "storage/error.h"
#include "storage/file.h"

namespace storage {
namespace {

base::Error last_error() {
  return {errno, boost::system::system_category()};
}

// Logged here, where the path is known; the code goes up.
base::Error failed(const char* what, const std::string& path) {
  base::Error error = last_error();
  base::logger("storage").error("{} of {} failed: {}", what, path, error.message());
  return error;
}

class PosixFile final : public File {
 public:
  PosixFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;
  ~PosixFile() override { ::close(descriptor_); }

  base::Result<void> pread(base::MutableBytes into, std::uint64_t position) const override {
    while (!into.empty()) {
      ssize_t n = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(position));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("read", path_);
      if (n == 0) return StorageErrc::short_read;
      into = into.subspan(static_cast<std::size_t>(n));
      position += static_cast<std::uint64_t>(n);
    }
    return {};
  }

  base::Result<void> pwrite(base::Bytes bytes, std::uint64_t position) override {
    while (!bytes.empty()) {
      ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(position));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      position += static_cast<std::uint64_t>(n);
    }
    return {};
  }

  base::Result<void> sync() override {
    // fdatasync need not write a size that only became smaller.
    bool whole = truncated_.exchange(false);
    if ((whole ? ::fsync(descriptor_) : ::fdatasync(descriptor_)) == 0) return {};
    failed("sync", path_);
    return StorageErrc::sync_failed;
  }

  base::Result<void> truncate(std::uint64_t size) override {
    truncated_ = true;
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return failed("truncation", path_);
    return {};
  }

  base::Result<std::uint64_t> size() const override {
    struct stat s{};
    if (::fstat(descriptor_, &s) != 0) return failed("stat", path_);
    return static_cast<std::uint64_t>(s.st_size);
  }

  void reserve(std::uint64_t position, std::uint64_t bytes) override {
    // Some file systems have no such call; then writes just cost more.
    (void)::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position),
                      static_cast<off_t>(bytes));
  }

  int descriptor() const override { return descriptor_; }

 private:
  int descriptor_;
  std::string path_;
  std::atomic<bool> truncated_ = false;
};

class PosixFileSystem final : public FileSystem {
 public:
  base::Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) override {
    int flags = O_CLOEXEC | (mode == OpenMode::read ? O_RDONLY : O_RDWR);
    if (mode == OpenMode::create) flags |= O_CREAT | O_TRUNC;
    int descriptor = ::open(path.c_str(), flags, 0644);
    if (descriptor < 0) {
      if (errno == ENOENT && mode != OpenMode::create) return last_error();  // callers ask this way
      return failed("opening", path);
    }
    return std::shared_ptr<File>(std::make_shared<PosixFile>(descriptor, path));
  }

  base::Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      if (errno == ENOENT) return last_error();
      return failed("renaming", from);
    }
    return {};
  }

  base::Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) {
      if (errno == ENOENT) return last_error();
      return failed("removing", path);
    }
    return {};
  }

  base::Result<void> remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return to_error(error, "removing", path);
    return {};
  }

  base::Result<void> create_directory(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return to_error(error, "making", path);
    return {};
  }

  base::Result<void> sync_directory(const std::string& path) override {
    int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return failed("opening", path);
    base::Result<void> outcome;
    if (::fsync(descriptor) != 0) {
      failed("sync", path);
      outcome = StorageErrc::sync_failed;
    }
    ::close(descriptor);
    return outcome;
  }

  base::Result<std::vector<std::string>> list(const std::string& path) override {
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) {
      if (errno == ENOENT) return last_error();
      return failed("listing", path);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* one = ::readdir(directory)) {
      std::string name = one->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
      errno = 0;
    }
    int code = errno;
    ::closedir(directory);
    if (code != 0) return base::Error(code, boost::system::system_category());
    std::sort(names.begin(), names.end());
    return names;
  }

  base::Result<bool> exists(const std::string& path) override {
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return base::Result<bool>(boost::system::in_place_error, failed("looking for", path));
  }

  base::Result<std::shared_ptr<void>> lock(const std::string& path) override {
    int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return failed("opening", path);
    // What it points to does not matter, only that it is not null: that is how a holder tells.
    std::shared_ptr<void> held(this, [descriptor](void*) { ::close(descriptor); });
    // Of the open file: it also meets the record lock that a Kafka broker takes.
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(descriptor, F_OFD_SETLK, &whole) != 0) {
      if (errno == EAGAIN || errno == EACCES) return StorageErrc::locked;
      return failed("locking", path);
    }
    return held;
  }

  base::Result<std::uint64_t> free_bytes(const std::string& path) override {
    TRY(auto s, statistics(path));
    return std::uint64_t{s.f_bavail} * s.f_frsize;
  }
  base::Result<std::uint64_t> total_bytes(const std::string& path) override {
    TRY(auto s, statistics(path));
    return std::uint64_t{s.f_blocks} * s.f_frsize;
  }

 private:
  static base::Result<struct statvfs> statistics(const std::string& path) {
    struct statvfs s{};
    if (::statvfs(path.c_str(), &s) != 0) return failed("statvfs", path);
    return s;
  }
  static base::Error to_error(const std::error_code& error, const char* what,
                              const std::string& path) {
    base::logger("storage").error("{} of {} failed: {}", what, path, error.message());
    return {error.value(), boost::system::system_category()};
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

}  // namespace storage
