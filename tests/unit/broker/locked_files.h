// A file system for one thread (tests/lib/fault_file.h), for a broker with many.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/lib/fault_file.h"

namespace broker::test {

// How slow the disk is, and how often it was asked.
struct Syncs {
  std::atomic<int> take_ms = 0;
  std::atomic<int> count = 0;
};

class LockedFile final : public storage::File {
 public:
  LockedFile(std::mutex& mutex, Syncs& syncs, std::shared_ptr<storage::File> inner)
      : mutex_(mutex), syncs_(syncs), inner_(std::move(inner)) {}
  ~LockedFile() override {
    const std::lock_guard lock(mutex_);
    inner_.reset();
  }
  base::Result<void> pread(base::MutableBytes into, std::uint64_t position) const override {
    const std::lock_guard lock(mutex_);
    return inner_->pread(into, position);
  }
  base::Result<void> pwrite(base::Bytes bytes, std::uint64_t position) override {
    const std::lock_guard lock(mutex_);
    return inner_->pwrite(bytes, position);
  }
  base::Result<void> sync() override {
    ++syncs_.count;
    std::this_thread::sleep_for(std::chrono::milliseconds(syncs_.take_ms.load()));
    const std::lock_guard lock(mutex_);
    return inner_->sync();
  }
  base::Result<void> truncate(std::uint64_t size) override {
    const std::lock_guard lock(mutex_);
    return inner_->truncate(size);
  }
  base::Result<std::uint64_t> size() const override {
    const std::lock_guard lock(mutex_);
    return inner_->size();
  }
  void reserve(std::uint64_t position, std::uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    inner_->reserve(position, bytes);
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  std::mutex& mutex_;
  Syncs& syncs_;
  std::shared_ptr<storage::File> inner_;
};

class LockedFiles final : public storage::FileSystem {
 public:
  explicit LockedFiles(std::uint64_t seed) : inner_(seed) {}

  Syncs syncs;

  // Does something with the file system while nobody else does.
  template <class F>
  auto with(F f) {
    const std::lock_guard lock(mutex_);
    return f(inner_);
  }

  base::Result<std::shared_ptr<storage::File>> open(const std::string& path,
                                                    storage::OpenMode mode) override {
    return with([&](auto& files) -> base::Result<std::shared_ptr<storage::File>> {
      TRY(auto file, files.open(path, mode));
      return std::shared_ptr<storage::File>(
          std::make_shared<LockedFile>(mutex_, syncs, std::move(file)));
    });
  }
  base::Result<void> rename(const std::string& from, const std::string& to) override {
    return with([&](auto& files) { return files.rename(from, to); });
  }
  base::Result<void> remove(const std::string& path) override {
    return with([&](auto& files) { return files.remove(path); });
  }
  base::Result<void> remove_all(const std::string& path) override {
    return with([&](auto& files) { return files.remove_all(path); });
  }
  base::Result<void> create_directory(const std::string& path) override {
    return with([&](auto& files) { return files.create_directory(path); });
  }
  base::Result<void> sync_directory(const std::string& path) override {
    return with([&](auto& files) { return files.sync_directory(path); });
  }
  base::Result<std::vector<std::string>> list(const std::string& path) override {
    return with([&](auto& files) { return files.list(path); });
  }
  base::Result<bool> exists(const std::string& path) override {
    return with([&](auto& files) { return files.exists(path); });
  }
  base::Result<std::shared_ptr<void>> lock(const std::string& path) override {
    return with([&](auto& files) { return files.lock(path); });
  }
  base::Result<std::uint64_t> free_bytes(const std::string& path) override {
    return with([&](auto& files) { return files.free_bytes(path); });
  }
  base::Result<std::uint64_t> total_bytes(const std::string& path) override {
    return with([&](auto& files) { return files.total_bytes(path); });
  }

 private:
  std::mutex mutex_;
  storage_test::FaultFileSystem inner_;
};

// The next write to such a file finds no memory. Whether that has happened is told.
inline std::shared_ptr<std::atomic<bool>> throw_once(LockedFiles& files, const std::string& part) {
  const auto thrown = std::make_shared<std::atomic<bool>>(false);
  files.with([&](storage_test::FaultFileSystem& inner) {
    inner.fault = [thrown, part](storage_test::DiskCall call,
                                 const std::string& path) -> base::Error {
      const bool hit = call == storage_test::DiskCall::write &&
                       path.find(part) != std::string::npos && !thrown->exchange(true);
      if (hit) throw std::bad_alloc();
      return {};
    };
  });
  return thrown;
}

}  // namespace broker::test
