#include "storage/index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "storage/error.h"

namespace storage {
namespace {

constexpr std::size_t offset_entry_bytes = 8;
constexpr std::size_t time_entry_bytes = 12;
// Searching narrows down to so many entries by single reads and takes these at once.
constexpr std::size_t block_entries = 256;
constexpr std::size_t pending_bytes_max = 1024;

base::Offset relative(const std::byte* entry) {
  return protocol::load_be<std::int32_t>(entry);
}

}  // namespace

IndexFile::IndexFile(FileSystem& files, std::string path, std::size_t entry_bytes)
    : files_(files), path_(std::move(path)), entry_bytes_(entry_bytes) {}

base::Result<void> IndexFile::open() {
  aside_ = false;
  TRY(file_, files_.open(path_, OpenMode::read_write));
  TRY(auto bytes, file_->size());
  if (bytes % entry_bytes_ != 0) return StorageErrc::corrupt_file;
  written_ = bytes / entry_bytes_;
  pending_.clear();
  return {};
}

base::Result<void> IndexFile::create() {
  aside_ = false;
  TRY(file_, files_.open(path_, OpenMode::create));
  written_ = 0;
  pending_.clear();
  return {};
}

base::Result<void> IndexFile::create_aside() {
  aside_ = true;
  TRY(file_, files_.open(path_now(), OpenMode::create));
  written_ = 0;
  pending_.clear();
  return {};
}

base::Result<void> IndexFile::commit() {
  TRY_VOID(flush());
  TRY(auto fresh, file());
  TRY_VOID(fresh->sync());
  TRY_VOID(files_.rename(path_now(), path_));
  aside_ = false;
  return {};
}

base::Result<std::shared_ptr<File>> IndexFile::file() const {
  if (!file_) {
    TRY(file_, files_.open(path_now(), OpenMode::read_write));
  }
  return file_;
}

void IndexFile::append(base::Bytes entry) {
  CHECK(entry.size() == entry_bytes_);
  pending_.insert(pending_.end(), entry.begin(), entry.end());
}

bool IndexFile::wants_flush() const {
  return pending_.size() >= pending_bytes_max;
}

base::Result<void> IndexFile::flush() {
  if (pending_.empty()) return {};
  TRY(auto target, file());
  TRY_VOID(target->pwrite(pending_, written_ * entry_bytes_));
  written_ += pending_.size() / entry_bytes_;
  pending_.clear();
  pending_.shrink_to_fit();
  return {};
}

base::Result<void> IndexFile::truncate(std::size_t count) {
  if (count >= this->count()) return {};
  if (count > written_) {
    pending_.resize((count - written_) * entry_bytes_);
    return {};
  }
  TRY(auto target, file());
  TRY_VOID(target->truncate(count * entry_bytes_));
  written_ = count;
  pending_.clear();
  return {};
}

base::Result<void> IndexFile::read(std::size_t first, base::MutableBytes into) const {
  const std::size_t entries = into.size() / entry_bytes_;
  CHECK(first + entries <= count());
  const std::size_t on_disk = first < written_ ? std::min(entries, written_ - first) : 0;
  if (on_disk > 0) {
    TRY(auto source, file());
    TRY_VOID(source->pread(into.first(on_disk * entry_bytes_), first * entry_bytes_));
  }
  if (on_disk < entries) {
    const std::size_t from = (first + on_disk - written_) * entry_bytes_;
    std::copy_n(pending_.data() + from, (entries - on_disk) * entry_bytes_,
                into.data() + on_disk * entry_bytes_);
  }
  return {};
}

template <class F>
base::Result<std::size_t> IndexFile::count_while(F holds) const {
  std::array<std::byte, block_entries * time_entry_bytes> buffer;
  std::size_t low = 0, high = count();  // true below low, false from high on
  // The tail is asked for most, and it is in memory.
  if (!pending_.empty()) {
    if (holds(pending_.data()))
      low = written_ + 1;
    else
      high = written_;
  }
  while (high - low > block_entries) {
    const std::size_t middle = low + (high - low) / 2;
    TRY_VOID(read(middle, base::MutableBytes(buffer).first(entry_bytes_)));
    if (holds(buffer.data()))
      low = middle + 1;
    else
      high = middle;
  }
  TRY_VOID(read(low, base::MutableBytes(buffer).first((high - low) * entry_bytes_)));
  std::size_t first = 0, last = high - low;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (holds(buffer.data() + middle * entry_bytes_))
      first = middle + 1;
    else
      last = middle;
  }
  return low + first;
}

OffsetIndex::OffsetIndex(FileSystem& files, std::string path, base::Offset base)
    : entries_(files, std::move(path), offset_entry_bytes), base_(base) {}

base::Result<void> OffsetIndex::create(bool aside) {
  last_.reset();
  return aside ? entries_.create_aside() : entries_.create();
}

base::Result<void> OffsetIndex::open(std::uint64_t log_bytes) {
  TRY_VOID(entries_.open());
  TRY_VOID(load_last());
  if (last_ && (last_->offset <= base_ || last_->position >= log_bytes))
    return StorageErrc::corrupt_file;
  return {};
}

base::Result<void> OffsetIndex::load_last() {
  last_.reset();
  if (entries_.count() == 0) return {};
  std::array<std::byte, offset_entry_bytes> entry;
  TRY_VOID(entries_.read(entries_.count() - 1, entry));
  last_ = Entry{base_ + relative(entry.data()), protocol::load_be<std::uint32_t>(entry.data() + 4)};
  return {};
}

base::Result<std::uint32_t> OffsetIndex::lookup(base::Offset target) const {
  if (!last_) return std::uint32_t{0};
  if (last_->offset <= target) return last_->position;
  TRY(std::size_t n, entries_.count_while([&](const std::byte* entry) {
    return base_ + relative(entry) <= target;
  }));
  if (n == 0) return std::uint32_t{0};
  std::array<std::byte, offset_entry_bytes> entry;
  TRY_VOID(entries_.read(n - 1, entry));
  return protocol::load_be<std::uint32_t>(entry.data() + 4);
}

base::Result<std::optional<base::Offset>> OffsetIndex::offset_at(std::uint64_t position) const {
  std::optional<base::Offset> found;
  if (!last_ || last_->position < position) return found;
  TRY(std::size_t n, entries_.count_while([&](const std::byte* entry) {
    return protocol::load_be<std::uint32_t>(entry + 4) < position;
  }));
  if (n == entries_.count()) return found;
  std::array<std::byte, offset_entry_bytes> entry;
  TRY_VOID(entries_.read(n, entry));
  found = base_ + relative(entry.data());
  return found;
}

void OffsetIndex::append(base::Offset last_offset, std::uint32_t position) {
  const base::Offset delta = last_offset - base_;
  CHECK(delta > 0 && delta <= std::numeric_limits<std::int32_t>::max());
  CHECK(!last_ || (last_->offset < last_offset && last_->position < position));
  std::array<std::byte, offset_entry_bytes> entry;
  protocol::store_be(entry.data(), static_cast<std::int32_t>(delta));
  protocol::store_be(entry.data() + 4, position);
  entries_.append(entry);
  last_ = Entry{last_offset, position};
}

base::Result<void> OffsetIndex::truncate_to(base::Offset offset) {
  TRY(std::size_t n, entries_.count_while(
                         [&](const std::byte* entry) { return base_ + relative(entry) < offset; }));
  TRY_VOID(entries_.truncate(n));
  return load_last();
}

TimeIndex::TimeIndex(FileSystem& files, std::string path, base::Offset base)
    : entries_(files, std::move(path), time_entry_bytes), base_(base) {}

base::Result<void> TimeIndex::create(bool aside) {
  last_.reset();
  return aside ? entries_.create_aside() : entries_.create();
}

base::Result<void> TimeIndex::open() {
  TRY_VOID(entries_.open());
  TRY_VOID(load_last());
  if (!last_) return {};
  std::array<std::byte, time_entry_bytes> first;
  TRY_VOID(entries_.read(0, first));
  if (last_->offset < base_ || last_->timestamp_ms < protocol::load_be<std::int64_t>(first.data()))
    return StorageErrc::corrupt_file;
  return {};
}

base::Result<void> TimeIndex::load_last() {
  last_.reset();
  if (entries_.count() == 0) return {};
  std::array<std::byte, time_entry_bytes> entry;
  TRY_VOID(entries_.read(entries_.count() - 1, entry));
  last_ = Entry{protocol::load_be<std::int64_t>(entry.data()), base_ + relative(entry.data() + 8)};
  return {};
}

base::Result<std::optional<TimeIndex::Entry>> TimeIndex::lookup(std::int64_t timestamp_ms) const {
  std::optional<Entry> found;
  TRY(std::size_t n, entries_.count_while([&](const std::byte* entry) {
    return protocol::load_be<std::int64_t>(entry) <= timestamp_ms;
  }));
  if (n == 0) return found;
  std::array<std::byte, time_entry_bytes> entry;
  TRY_VOID(entries_.read(n - 1, entry));
  found = Entry{protocol::load_be<std::int64_t>(entry.data()), base_ + relative(entry.data() + 8)};
  return found;
}

void TimeIndex::maybe_append(Entry entry) {
  if (entry.timestamp_ms < 0 || (last_ && entry.timestamp_ms <= last_->timestamp_ms)) return;
  const base::Offset delta = entry.offset - base_;
  CHECK(delta >= 0 && delta <= std::numeric_limits<std::int32_t>::max());
  std::array<std::byte, time_entry_bytes> bytes;
  protocol::store_be(bytes.data(), entry.timestamp_ms);
  protocol::store_be(bytes.data() + 8, static_cast<std::int32_t>(delta));
  entries_.append(bytes);
  last_ = entry;
}

base::Result<void> TimeIndex::truncate_to(base::Offset offset) {
  TRY(std::size_t n, entries_.count_while([&](const std::byte* entry) {
    return base_ + relative(entry + 8) < offset;
  }));
  TRY_VOID(entries_.truncate(n));
  return load_last();
}

}  // namespace storage
