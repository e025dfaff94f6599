#include "storage/segment.h"

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/record.h"
#include "storage/batch_scanner.h"
#include "storage/error.h"

namespace storage {
namespace {

// Disk blocks are taken ahead once a segment shows that it grows; small ones cost what they hold.
constexpr std::uint64_t reserve_from_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t reserve_ahead_bytes = std::uint64_t{16} << 20;

// What the formats complain of is damage to those who read a log.
base::Error as_storage_error(base::Error error) {
  const bool ours = error.category() == boost::system::system_category() ||
                    error.category() == storage_category();
  return ours ? error : make_error_code(StorageErrc::corrupt_batch);
}

// Not a disk that fails, and not the log itself: then a fresh index helps.
bool index_at_fault(base::Error error) {
  return error == StorageErrc::corrupt_file || error == StorageErrc::short_read;
}

}  // namespace

std::string segment_path(const std::string& directory, base::Offset base, const char* suffix) {
  std::string digits = std::to_string(base);
  return directory + "/" + std::string(20 - std::min<std::size_t>(20, digits.size()), '0') +
         digits + suffix;
}

Segment::Segment(const Place& place, base::Offset base)
    : files_(place.files),
      directory_(place.directory),
      base_(base),
      created_ms_(place.now_ms),
      index_interval_bytes_(place.index_interval_bytes),
      offset_index_(place.files, segment_path(place.directory, base, ".index"), base),
      time_index_(place.files, segment_path(place.directory, base, ".timeindex"), base),
      txn_index_(place.files, segment_path(place.directory, base, ".txnindex")) {}

std::string Segment::path(const char* suffix) const {
  return segment_path(directory_, base_, suffix);
}

base::Result<std::unique_ptr<Segment>> Segment::create(const Place& place, base::Offset base) {
  std::unique_ptr<Segment> segment(new Segment(place, base));
  TRY_VOID(segment->txn_index_.open());
  TRY_VOID(segment->txn_index_.remove());
  TRY(segment->file_, place.files.open(segment->path(".log"), OpenMode::create));
  TRY_VOID(segment->offset_index_.create());
  TRY_VOID(segment->time_index_.create());
  segment->offset_index_.entries().release();
  segment->time_index_.entries().release();
  segment->indexes_ready_ = segment->tail_loaded_ = true;
  return segment;
}

base::Result<std::unique_ptr<Segment>> Segment::open(const Place& place, base::Offset base) {
  std::unique_ptr<Segment> segment(new Segment(place, base));
  TRY(auto file, segment->file());
  TRY(segment->size_bytes_, file->size());
  if (segment->size_bytes_ > segment_bytes_limit) return StorageErrc::corrupt_file;
  segment->release();
  return segment;
}

base::Result<std::shared_ptr<File>> Segment::file() {
  if (!file_) {
    TRY(file_, files_.open(path(".log"), OpenMode::read_write));
  }
  return file_;
}

void Segment::release() {
  file_.reset();
  offset_index_.entries().release();
  time_index_.entries().release();
  txn_index_.entries().release();
}

base::Result<void> Segment::ensure_indexes() {
  if (indexes_ready_) return {};
  if (!rebuild_due_) {
    auto opened = offset_index_.open(size_bytes_);
    if (opened) opened = time_index_.open();
    if (opened) {
      indexes_ready_ = true;
      return {};
    }
    if (!index_at_fault(opened.error()) &&
        opened.error() != boost::system::errc::no_such_file_or_directory)
      return opened.error();
    base::logger("storage").warn("indexes of {} are missing or wrong and are rebuilt",
                                 path(".log"));
  }
  return rebuild_indexes();
}

// Offsets grow, and an index can express them.
bool Segment::in_order(const protocol::BatchInfo& info, base::Offset end) const {
  return info.base_offset >= end &&
         info.last_offset - base_ <= std::numeric_limits<std::int32_t>::max();
}

base::Result<Segment::Tail> Segment::load_tail() {
  TRY_VOID(ensure_indexes());
  auto tail = try_load_tail();
  if (tail || indexes_rebuilt_ || tail.error().category() == boost::system::system_category())
    return tail;
  TRY_VOID(rebuild_indexes());
  return try_load_tail();
}

base::Result<Segment::Tail> Segment::try_load_tail() {
  tail_loaded_ = false;
  const auto indexed = offset_index_.last();
  if (time_index_.last()) TRY_VOID(verify(*time_index_.last()));
  max_timestamp_ = time_index_.last().value_or(TimeIndex::Entry{-1, base_});
  bytes_since_index_ = 0;
  Tail tail;
  tail.end = base_;
  TRY(auto log, file());
  HeaderScanner scanner(*log, indexed ? indexed->position : 0, size_bytes_);
  for (bool first = true; scanner.next(); first = false) {
    if (!in_order(scanner.info(), tail.end)) return StorageErrc::corrupt_batch;
    if (first && indexed && scanner.info().last_offset > indexed->offset)
      return StorageErrc::corrupt_file;
    tail.end = scanner.info().next_offset();
    tail.last_epoch = scanner.info().partition_leader_epoch;
    bytes_since_index_ += scanner.info().size_bytes;
    if (scanner.info().max_timestamp > max_timestamp_.timestamp_ms)
      max_timestamp_ = {scanner.info().max_timestamp, scanner.info().last_offset};
  }
  if (scanner.error()) return as_storage_error(scanner.error());
  // The last entry speaks of a batch that is there; those to come will lie behind it.
  if (indexed && indexed->offset >= tail.end) return StorageErrc::corrupt_file;
  tail.max_timestamp_ms = max_timestamp_.timestamp_ms;
  tail_loaded_ = true;
  return tail;
}

void Segment::reserve_for(std::uint64_t bytes) {
  const std::uint64_t end = size_bytes_ + bytes;
  if (end < reserve_from_bytes || end <= reserved_to_) return;
  file_->reserve(size_bytes_, bytes + reserve_ahead_bytes);
  reserved_to_ = end + reserve_ahead_bytes;
}

base::Result<void> Segment::append(base::Bytes bytes, std::span<const protocol::BatchInfo> infos) {
  CHECK(size_bytes_ + bytes.size() <= segment_bytes_limit);
  if (!tail_loaded_) TRY_VOID(load_tail());
  TRY(auto log, file());
  reserve_for(bytes.size());
  TRY_VOID(log->pwrite(bytes, size_bytes_));
  if (size_bytes_ == 0) rolling_timestamp_ms_ = infos.front().max_timestamp;
  for (const protocol::BatchInfo& info : infos) {
    index_batch(info, size_bytes_);
    recent_.add({info.base_offset, info.last_offset, info.size_bytes,
                 static_cast<std::uint32_t>(size_bytes_)});
    size_bytes_ += info.size_bytes;
  }
  return {};
}

void Segment::index_batch(const protocol::BatchInfo& info, std::uint64_t position) {
  if (info.max_timestamp > max_timestamp_.timestamp_ms)
    max_timestamp_ = {info.max_timestamp, info.last_offset};
  if (bytes_since_index_ > index_interval_bytes_) {
    offset_index_.append(info.last_offset, static_cast<std::uint32_t>(position));
    time_index_.maybe_append(max_timestamp_);
    bytes_since_index_ = 0;
  }
  bytes_since_index_ += info.size_bytes;
}

base::Result<void> Segment::drop_rest() {
  TRY(auto log, file());
  reserved_to_ = 0;
  return log->truncate(size_bytes_);
}

base::Result<std::optional<Segment::Found>> Segment::find(base::Offset target) {
  if (const auto known = recent_.find(target)) return known;
  return find_in_file(target);
}

base::Result<std::optional<Segment::Found>> Segment::find_in_file(base::Offset target) {
  TRY_VOID(ensure_indexes());
  const auto scan = [&]() -> base::Result<std::optional<Found>> {
    TRY(auto position, offset_index_.lookup(target));
    TRY(auto scanned, find_from(target, position, position != 0));
    if (!scanned) return std::optional<Found>();
    const protocol::BatchInfo& info = scanned->info;
    return std::optional<Found>({info.base_offset, info.last_offset, info.size_bytes,
                                 static_cast<std::uint32_t>(scanned->position)});
  };
  auto found = scan();
  if (found || indexes_rebuilt_ || !index_at_fault(found.error())) return found;
  base::logger("storage").warn("index of {} leads astray and is rebuilt", path(".log"));
  TRY_VOID(rebuild_indexes());
  return scan();
}

base::Result<std::optional<Segment::Scanned>> Segment::find_from(base::Offset target,
                                                                 std::uint32_t position,
                                                                 bool from_index) {
  std::optional<Scanned> found;
  TRY(auto log, file());
  HeaderScanner scanner(*log, position, size_bytes_);
  bool first = from_index;
  for (; scanner.next(); first = false) {
    const protocol::BatchInfo& info = scanner.info();
    // An index entry promises a batch that ends at or below what was looked for.
    if (first && info.last_offset > target) return StorageErrc::corrupt_file;
    if (info.last_offset >= target) {
      found = Scanned{info, scanner.position()};
      return found;
    }
  }
  // ... and one that is there at all.
  if (first && (!scanner.error() || scanner.error().category() == protocol::batch_category()))
    return StorageErrc::corrupt_file;
  if (!scanner.error()) return found;
  base::logger("storage").error("{} at {}: {}", path(".log"), scanner.next_position(),
                                scanner.error().message());
  return as_storage_error(scanner.error());
}

// A time index entry must be true of the batch that it names; corrupt_file if not.
base::Result<void> Segment::verify(const TimeIndex::Entry& entry) {
  TRY(auto position, offset_index_.lookup(entry.offset));
  TRY(auto found, find_from(entry.offset, position, position != 0));
  const bool holds = found && found->info.base_offset <= entry.offset &&
                     found->info.max_timestamp == entry.timestamp_ms;
  if (!holds) return StorageErrc::corrupt_file;
  return {};
}

// Up to the batch of the entry that this gives nothing is newer than `timestamp_ms`.
base::Result<std::optional<TimeIndex::Entry>> Segment::time_entry(std::int64_t timestamp_ms) {
  TRY_VOID(ensure_indexes());
  for (;;) {
    TRY(auto entry, time_index_.lookup(timestamp_ms));
    if (!entry) return entry;
    const auto verified = verify(*entry);
    if (verified && entry->timestamp_ms <= timestamp_ms) return entry;
    if (verified.has_error() && verified.error().category() == boost::system::system_category())
      return verified.error();
    if (indexes_rebuilt_) return std::optional<TimeIndex::Entry>();  // look from the beginning
    base::logger("storage").warn("time index of {} leads astray and is rebuilt", path(".log"));
    TRY_VOID(rebuild_indexes());
  }
}

base::Result<std::optional<Segment::Hit>> Segment::find_timestamp(std::int64_t timestamp_ms,
                                                                  base::Offset from) {
  std::optional<Hit> hit;
  TRY(auto entry, time_entry(timestamp_ms));
  TRY(auto start, find(entry ? std::max(from, entry->offset) : from));
  if (!start) return hit;
  TRY(auto log, file());
  HeaderScanner scanner(*log, start->position, size_bytes_);
  while (scanner.next()) {
    if (scanner.info().max_timestamp < timestamp_ms) continue;
    TRY(auto batch, read_batch(*log, scanner.position(), scanner.info()));
    auto opened = protocol::RecordReader::open(batch);
    if (opened.has_error()) return as_storage_error(opened.error());
    protocol::RecordReader& records = *opened;
    protocol::Record record;
    while (records.next(record)) {
      if (record.offset < from || record.timestamp < timestamp_ms) continue;
      hit = Hit{record.timestamp, record.offset, scanner.info().partition_leader_epoch};
      return hit;
    }
    if (records.error()) return as_storage_error(records.error());
  }
  if (scanner.error()) return as_storage_error(scanner.error());
  return hit;
}

base::Result<std::int64_t> Segment::max_timestamp_ms() {
  if (!tail_loaded_) {
    TRY_VOID(load_tail());
  }
  return max_timestamp_.timestamp_ms;
}

base::Result<std::int64_t> Segment::max_timestamp_from(base::Offset from) {
  std::int64_t newest = -1;
  TRY(auto start, find(from));
  if (!start) return newest;
  TRY(auto log, file());
  HeaderScanner scanner(*log, start->position, size_bytes_);
  while (scanner.next()) {
    if (scanner.info().base_offset >= from) {
      newest = std::max(newest, scanner.info().max_timestamp);
      continue;
    }
    TRY(auto batch, read_batch(*log, scanner.position(), scanner.info()));
    auto records = protocol::RecordReader::open(batch);
    if (records.has_error()) return as_storage_error(records.error());
    protocol::Record record;
    while (records->next(record))
      if (record.offset >= from) newest = std::max(newest, record.timestamp);
    if (records->error()) return as_storage_error(records->error());
  }
  if (scanner.error()) return as_storage_error(scanner.error());
  return newest;
}

base::Result<std::optional<std::int64_t>> Segment::rolling_timestamp_ms() {
  if (!rolling_timestamp_ms_ && size_bytes_ > 0) {
    TRY(auto log, file());
    HeaderScanner scanner(*log, 0, size_bytes_, protocol::batch_header_bytes);
    if (scanner.next()) rolling_timestamp_ms_ = scanner.info().max_timestamp;
    if (scanner.error()) return as_storage_error(scanner.error());
  }
  return rolling_timestamp_ms_;
}

bool Segment::index_full(std::uint32_t index_bytes_max, std::size_t more_entries) const {
  const std::size_t entries = offset_index_.count() + more_entries;
  return entries >= index_bytes_max / 8 ||
         time_index_.count() + more_entries + 1 >= index_bytes_max / 12;
}

base::Result<void> Segment::flush_indexes(bool all) {
  if (!indexes_ready_) return {};
  if (all || offset_index_.entries().wants_flush()) TRY_VOID(offset_index_.entries().flush());
  if (all || time_index_.entries().wants_flush()) TRY_VOID(time_index_.entries().flush());
  return {};
}

base::Result<void> Segment::seal(std::vector<std::shared_ptr<File>>& to_sync) {
  if (tail_loaded_ && size_bytes_ > 0) time_index_.maybe_append(max_timestamp_);
  TRY_VOID(flush_indexes(true));
  if (reserved_to_ > size_bytes_) TRY_VOID(drop_rest());
  if (indexes_ready_) {
    TRY(auto offsets, offset_index_.entries().file());
    TRY(auto times, time_index_.entries().file());
    to_sync.push_back(offsets);
    to_sync.push_back(times);
    if (txn_index_.exists()) {
      TRY(auto transactions, txn_index_.entries().file());
      to_sync.push_back(transactions);
    }
  }
  release();
  return {};
}

base::Result<Segment::Tail> Segment::truncate(std::uint64_t position, base::Offset offset) {
  TRY_VOID(ensure_indexes());
  TRY(auto log, file());
  recent_.clear();
  TRY_VOID(offset_index_.truncate_to(offset));
  TRY_VOID(time_index_.truncate_to(offset));
  TRY_VOID(txn_index_.truncate_to(offset));
  TRY_VOID(log->truncate(position));
  TRY_VOID(log->sync());
  size_bytes_ = position;
  reserved_to_ = 0;
  if (position == 0) rolling_timestamp_ms_.reset();
  return load_tail();
}

base::Result<void> Segment::rebuild_indexes() {
  TRY(auto log, file());
  TRY_VOID(begin_rebuild(true));
  HeaderScanner scanner(*log, 0, size_bytes_);
  while (scanner.next() && rebuild_add(scanner.info(), scanner.position())) {
  }
  // What lies behind damage is not reachable; reading there will say so.
  if (scanner.error() && scanner.error().category() != protocol::batch_category())
    return scanner.error();
  TRY_VOID(end_rebuild(size_bytes_));
  indexes_rebuilt_ = true;
  return {};
}

base::Result<void> Segment::begin_rebuild(bool aside) {
  indexes_ready_ = tail_loaded_ = false;
  recent_.clear();
  rebuild_due_ = true;
  rebuilds_aside_ = aside;
  TRY_VOID(offset_index_.create(aside));
  TRY_VOID(time_index_.create(aside));
  bytes_since_index_ = 0;
  max_timestamp_ = {-1, base_};
  rebuilt_end_ = base_;
  rolling_timestamp_ms_.reset();
  return {};
}

base::Result<void> Segment::rebuild_add(const protocol::BatchInfo& info, std::uint64_t position) {
  if (!in_order(info, rebuilt_end_)) return StorageErrc::corrupt_batch;
  rebuilt_end_ = info.next_offset();
  if (position == 0) rolling_timestamp_ms_ = info.max_timestamp;
  index_batch(info, position);
  if (offset_index_.entries().wants_flush()) {
    TRY_VOID(offset_index_.entries().flush());
    TRY_VOID(time_index_.entries().flush());
  }
  return {};
}

base::Result<void> Segment::end_rebuild(std::uint64_t size_bytes) {
  size_bytes_ = size_bytes;
  for (IndexFile* index : {&offset_index_.entries(), &time_index_.entries()}) {
    if (rebuilds_aside_)
      TRY_VOID(index->commit());
    else
      TRY_VOID(index->flush());
  }
  indexes_ready_ = tail_loaded_ = true;
  rebuild_due_ = false;
  return {};
}

base::Result<void> Segment::sync_indexes() {
  TRY(auto offsets, offset_index_.entries().file());
  TRY_VOID(offsets->sync());
  TRY(auto times, time_index_.entries().file());
  return times->sync();
}

base::Result<void> Segment::remove_files() {
  release();
  return remove_segment_files(files_, directory_, base_);
}

base::Result<void> Segment::mark_deleted() {
  release();
  for (const char* suffix : segment_suffixes) {
    auto renamed = files_.rename(path(suffix), path(suffix) + deleted_suffix);
    if (renamed.has_error() && renamed.error() != boost::system::errc::no_such_file_or_directory)
      return renamed.error();
  }
  return {};
}

base::Result<void> remove_segment_files(FileSystem& files, const std::string& directory,
                                        base::Offset base) {
  // The .log file first: an index without a log is removed at the next start, the other way round
  // it is rebuilt for nothing.
  for (const char* suffix : segment_suffixes) {
    auto removed = files.remove(segment_path(directory, base, suffix));
    if (removed.has_error() && removed.error() != boost::system::errc::no_such_file_or_directory)
      return removed.error();
  }
  return {};
}

}  // namespace storage
