// The metadata store on RocksDB. Keys are `d<key>`, values 8 bytes of revision and then the value;
// `r` holds the revision counter and is written in the batch that it counts.
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <map>

#include "protocol/base/log.h"
#include "protocol/big_endian.h"
#include "storage/error.h"
#include "storage/metadata/store.h"

namespace storage {
namespace {

constexpr const char* revision_key = "r";
constexpr char data_prefix = 'd';
constexpr std::size_t revision_bytes = 8;

// RocksDB's own diary is of no use to an operator; errors come back as a Status and are logged.
class NoLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

base::Error to_error(const rocksdb::Status& status, const std::string& path) {
  base::logger("storage").error("metadata store {}: {}", path, status.ToString());
  if (status.IsCorruption()) return StorageErrc::corrupt_file;
  if (status.IsNoSpace()) return StorageErrc::no_space;
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos)
    return StorageErrc::locked;
  return boost::system::errc::make_error_code(boost::system::errc::io_error);
}

// A few hundred small values: memory matters more than speed.
rocksdb::Options make_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 20;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 << 20;
  options.max_open_files = 16;
  options.max_background_jobs = 1;
  options.max_file_opening_threads = 1;
  options.compression = rocksdb::kNoCompression;
  options.keep_log_file_num = 1;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.arena_block_size = 16 << 10;
  options.info_log = std::make_shared<NoLogger>();
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::string data_key(std::string_view key) {
  return data_prefix + std::string(key);
}

std::string with_revision(std::uint64_t revision, const std::string& value) {
  std::byte bytes[revision_bytes];
  protocol::store_be(bytes, revision);
  return std::string(reinterpret_cast<const char*>(bytes), revision_bytes) + value;
}

base::Result<Entry> split(std::string_view key, std::string_view stored) {
  if (stored.size() < revision_bytes) return StorageErrc::corrupt_file;
  Entry entry;
  entry.key = key;
  entry.value = stored.substr(revision_bytes);
  entry.revision =
      protocol::load_be<std::uint64_t>(reinterpret_cast<const std::byte*>(stored.data()));
  return entry;
}

class RocksdbStore final : public MetadataStore {
 public:
  explicit RocksdbStore(std::string path) : path_(std::move(path)) {}

  base::Result<void> open() {
    rocksdb::DB* db = nullptr;
    rocksdb::Status status = rocksdb::DB::Open(make_options(), path_, &db);
    if (!status.ok()) return to_error(status, path_);
    db_.reset(db);
    std::string counter;
    status = db_->Get({}, revision_key, &counter);
    if (status.IsNotFound()) return {};
    if (!status.ok()) return to_error(status, path_);
    TRY(auto entry, split(revision_key, counter));
    revision_ = entry.revision;
    return {};
  }

  base::Result<std::optional<Entry>> get(std::string_view key) override {
    std::string stored;
    std::optional<Entry> found;
    rocksdb::Status status = db_->Get({}, data_key(key), &stored);
    if (status.IsNotFound()) return found;
    if (!status.ok()) return to_error(status, path_);
    TRY(found, split(key, stored));
    return found;
  }

  base::Result<std::vector<Entry>> range(std::string_view prefix) override {
    const std::string from = data_key(prefix);
    std::vector<Entry> entries;
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
    for (it->Seek(from); it->Valid() && it->key().starts_with(from); it->Next()) {
      const std::string_view key = it->key().ToStringView().substr(1);
      TRY(auto entry, split(key, it->value().ToStringView()));
      entries.push_back(std::move(entry));
    }
    if (!it->status().ok()) return to_error(it->status(), path_);
    return entries;
  }

  base::Result<std::uint64_t> txn(const std::vector<Compare>& compares,
                                  const std::vector<Write>& writes) override {
    for (const Compare& one : compares) {
      TRY(auto entry, get(one.key));
      if ((entry ? entry->revision : 0) != one.revision) return StorageErrc::conflict;
    }
    if (writes.empty()) return revision_;
    const std::uint64_t next = revision_ + 1;
    rocksdb::WriteBatch batch;
    batch.Put(revision_key, with_revision(next, {}));
    for (const Write& one : writes) {
      if (one.value)
        batch.Put(data_key(one.key), with_revision(next, *one.value));
      else
        batch.Delete(data_key(one.key));
    }
    rocksdb::WriteOptions durable;
    durable.sync = true;
    rocksdb::Status status = db_->Write(durable, &batch);
    if (!status.ok()) return to_error(status, path_);
    revision_ = next;
    tell(writes, next);
    return next;
  }

  std::uint64_t watch(std::string prefix,
                      std::function<void(const Write&, std::uint64_t)> changed) override {
    watchers_[++last_watcher_] = {std::move(prefix), std::move(changed)};
    return last_watcher_;
  }
  void unwatch(std::uint64_t number) override { watchers_.erase(number); }
  std::uint64_t revision() const override { return revision_; }

 private:
  struct Watcher {
    std::string prefix;
    std::function<void(const Write&, std::uint64_t)> changed;
  };

  void tell(const std::vector<Write>& writes, std::uint64_t revision) {
    // A watcher may add and remove watchers, itself too.
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, watcher] : watchers_) numbers.push_back(number);
    for (const Write& one : writes)
      for (std::uint64_t number : numbers) {
        auto it = watchers_.find(number);
        if (it == watchers_.end() || !one.key.starts_with(it->second.prefix)) continue;
        auto changed = it->second.changed;
        changed(one, revision);
      }
  }

  std::string path_;
  std::unique_ptr<rocksdb::DB> db_;
  std::uint64_t revision_ = 0;
  std::map<std::uint64_t, Watcher> watchers_;
  std::uint64_t last_watcher_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<MetadataStore>> open_rocksdb_store(const std::string& path) {
  auto store = std::make_unique<RocksdbStore>(path);
  TRY_VOID(store->open());
  return std::unique_ptr<MetadataStore>(std::move(store));
}

}  // namespace storage
