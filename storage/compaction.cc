#include "storage/compaction.h"

#include <algorithm>

#include "protocol/batch_builder.h"
#include "protocol/record.h"

namespace storage {
namespace {

// What an entry costs beyond its key, roughly.
constexpr std::size_t entry_overhead_bytes = 64;

protocol::BatchOptions options_like(const protocol::BatchInfo& info) {
  protocol::BatchOptions options;
  options.base_offset = info.base_offset;
  options.last_offset = info.last_offset;
  options.partition_leader_epoch = info.partition_leader_epoch;
  options.codec = info.codec();
  if (info.log_append_time()) options.log_append_time_ms = info.max_timestamp;
  options.producer_id = info.producer_id;
  options.producer_epoch = info.producer_epoch;
  options.base_sequence = info.base_sequence;
  options.transactional = info.transactional();
  if (info.has_delete_horizon()) options.delete_horizon_ms = info.base_timestamp;
  return options;
}

}  // namespace

bool KeyOffsets::add(std::string_view key, base::Offset offset) {
  auto [it, fresh] = offsets_.try_emplace(std::string(key), offset);
  if (!fresh) {
    it->second = std::max(it->second, offset);
    return true;
  }
  bytes_ += key.size() + entry_overhead_bytes;
  if (bytes_ <= bytes_max_) return true;
  offsets_.erase(it);
  return false;
}

base::Result<void> KeyOffsets::add_batch(base::Bytes batch, bool& full) {
  full = false;
  TRY(auto reader, protocol::RecordReader::open(batch));
  if (reader.info().control()) return {};
  protocol::Record record;
  while (!full && reader.next(record))
    full = record.key && !add(base::as_text(*record.key), record.offset);
  if (reader.error()) return reader.error();
  return {};
}

std::optional<base::Offset> KeyOffsets::last_of(std::string_view key) const {
  auto it = offsets_.find(std::string(key));
  if (it == offsets_.end()) return std::nullopt;
  return it->second;
}

base::Result<CleanedBatch> clean_batch(base::Bytes batch, const KeyOffsets& keys,
                                       const CleanRules& rules) {
  CleanedBatch result;
  TRY(auto reader, protocol::RecordReader::open(batch));
  const protocol::BatchInfo& info = reader.info();
  if (info.magic != 2 || info.control()) return result;
  protocol::BatchOptions options = options_like(info);
  // Two passes: the builder must know at its beginning whether a tombstone stays.
  const bool tombstones_expired = info.has_delete_horizon() && info.base_timestamp <= rules.now_ms;
  auto stays = [&](const protocol::Record& record) {
    if (!record.key) return false;
    if (!record.value && tombstones_expired) return false;
    return record.offset >= keys.last_of(base::as_text(*record.key)).value_or(record.offset);
  };
  std::uint32_t kept = 0;
  bool tombstone_stays = false;
  protocol::Record record;
  while (reader.next(record)) {
    if (!stays(record)) {
      ++result.records_dropped;
      continue;
    }
    ++kept;
    tombstone_stays = tombstone_stays || !record.value;
  }
  if (reader.error()) return reader.error();
  const bool stamp = tombstone_stays && !info.has_delete_horizon();
  if (kept == 0 && !rules.keep_batch) {
    result.what = CleanedBatch::What::dropped;
    return result;
  }
  if (result.records_dropped == 0 && !stamp) return result;
  if (stamp) options.delete_horizon_ms = rules.now_ms + rules.delete_retention_ms;
  if (kept == 0) {
    options.codec = protocol::Codec::none;
    options.max_timestamp_ms = info.max_timestamp;  // by it a producer's entry ages
  }

  TRY(auto again, protocol::RecordReader::open(batch));
  protocol::BatchBuilder builder(options);
  while (again.next(record))
    if (stays(record))
      builder.add_at(record.offset, record.timestamp, record.key, record.value, record.headers);
  if (again.error()) return again.error();
  result.what = CleanedBatch::What::rewritten;
  result.bytes = std::move(builder).build();
  return result;
}

base::Result<void> finish_swaps(FileSystem& files, const std::string& directory) {
  constexpr std::string_view swap = ".log.swap";
  TRY(auto names, files.list(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(swap)) continue;
    const std::string stem = directory + "/" + name.substr(0, name.size() - swap.size());
    // The old indexes know other positions.
    for (const char* suffix : {".index", ".timeindex"}) {
      auto removed = files.remove(stem + suffix);
      if (removed.has_error() && removed.error() != boost::system::errc::no_such_file_or_directory)
        return removed.error();
    }
    TRY_VOID(files.sync_directory(directory));
    TRY_VOID(files.rename(directory + "/" + name, stem + ".log"));
    TRY_VOID(files.sync_directory(directory));
  }
  return {};
}

}  // namespace storage
