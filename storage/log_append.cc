// The two doors of a log.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/batch_scanner.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {
namespace {

constexpr std::int64_t space_asked_ms_max = 100;
constexpr std::uint64_t space_asked_bytes_max = std::uint64_t{16} << 20;

// Between appends this thread's lists keep at most so much room.
constexpr std::size_t kept_batches_max = 4096;

ParsedBatches& scratch() {
  thread_local ParsedBatches parsed;
  if (parsed.infos.capacity() > kept_batches_max) parsed.infos = {};
  parsed.infos.clear();
  parsed.controls.clear();
  return parsed;
}

}  // namespace

base::Result<void> SegmentedLog::ensure_writable(std::size_t bytes, std::int64_t now_ms) {
  CHECK(!closed_);
  now_ms_ = now_ms;
  if (offline_) return StorageErrc::offline;
  if (reserve_bytes_ == 0) return {};
  const bool stale = !asked_ms_ || std::abs(now_ms - *asked_ms_) >= space_asked_ms_max ||
                     appended_since_asked_ + bytes >= space_asked_bytes_max;
  auto short_of_space = [&] {
    return free_bytes_ < reserve_bytes_ + appended_since_asked_ + bytes;
  };
  // What was asked a moment ago is good enough to go on, but not to refuse.
  if (stale || short_of_space()) {
    TRY(free_bytes_, files_.free_bytes(directory_));
    asked_ms_ = now_ms;
    appended_since_asked_ = 0;
    if (short_of_space()) return StorageErrc::no_space;
  }
  appended_since_asked_ += bytes;
  return {};
}

// Where a batch to be copied may begin: at or after the log end. The first batch of an empty log
// may also cover the log start.
base::Result<void> SegmentedLog::accept_order(const protocol::BatchInfo& info, base::Bytes batch,
                                              Offset expected, bool first) const {
  Offset base = info.base_offset;
  // A compressed entry of magic 0 or 1 tells its last offset only. Later ones lie in the source's
  // log behind the first, so they are not opened to look.
  if (first && !info.base_offset_known()) {
    auto inside = protocol::first_offset(batch);
    if (inside.has_error()) return StorageErrc::corrupt_batch;
    base = *inside;
  }
  if (base >= expected) return {};
  if (first && empty() && info.last_offset >= log_start_) return {};
  return StorageErrc::out_of_order_offset;
}

base::Result<ParsedBatches*> SegmentedLog::parse_verbatim(base::Bytes batches,
                                                          LeaderEpoch leader_epoch) const {
  ParsedBatches& parsed = scratch();
  protocol::BatchIterator it(batches, protocol::CrcCheck::yes, batch_bytes_limit);
  Offset expected = log_end_;
  std::optional<LeaderEpoch> epoch = epochs_.latest();
  while (it.next()) {
    const protocol::BatchInfo& info = it.info();
    TRY_VOID(accept_order(info, it.batch(), expected, parsed.infos.empty()));
    if (info.last_offset >= log_end_limit) return StorageErrc::corrupt_batch;
    if (info.partition_leader_epoch) {
      if (*info.partition_leader_epoch > leader_epoch) return StorageErrc::epoch_above_leader;
      if (epoch && *info.partition_leader_epoch < *epoch) return StorageErrc::epoch_goes_back;
      epoch = info.partition_leader_epoch;
    }
    if (info.control()) {
      auto control = protocol::read_control(it.batch());
      if (control.has_error()) return StorageErrc::corrupt_batch;
      if (*control) parsed.controls.emplace_back(parsed.infos.size(), **control);
    }
    expected = info.next_offset();
    parsed.infos.push_back(info);
  }
  if (it.stopped()) {
    base::logger("storage").warn("{}: refused bytes that are no whole batch: {}", directory_,
                                 it.stopped().message());
    return StorageErrc::corrupt_batch;
  }
  return &parsed;
}

base::Result<AppendInfo> SegmentedLog::append_verbatim(base::Bytes batches,
                                                       LeaderEpoch leader_epoch,
                                                       std::int64_t now_ms) {
  TRY_VOID(ensure_writable(batches.size(), now_ms));
  TRY(auto* parsed, parse_verbatim(batches, leader_epoch));
  AppendInfo result;
  result.first_offset = log_end_;
  result.last_offset = log_end_ - 1;
  if (parsed->infos.empty()) return result;
  const protocol::BatchInfo& first = parsed->infos.front();
  if (empty()) {
    Offset base = first.base_offset;
    if (!first.base_offset_known()) {
      TRY(base, protocol::first_offset(batches.first(first.size_bytes)));
    }
    if (base < active().base()) {
      auto replaced = replace_empty(base, now_ms);
      if (replaced.has_error()) return go_offline(replaced.error());
    }
  }
  TRY_VOID(write_batches(batches, *parsed, now_ms));
  result.first_offset = first.base_offset;
  result.last_offset = parsed->infos.back().last_offset;
  result.last_epoch = parsed->infos.back().partition_leader_epoch;
  return result;
}

// A value: everything was appended before. Nothing: go on.
base::Result<std::optional<AppendInfo>> SegmentedLog::check_as_leader(const ParsedBatches& parsed,
                                                                      std::size_t bytes,
                                                                      AppendOrigin origin) const {
  std::optional<AppendInfo> done;
  if (origin == AppendOrigin::client) {
    if (parsed.infos.size() != 1 || parsed.infos.front().control())
      return StorageErrc::corrupt_batch;
    if (bytes > config_.max_message_bytes) return StorageErrc::batch_too_large;
    TRY(auto repeated, producers_.check(parsed.infos.front()));
    if (!repeated) return done;
    done.emplace();
    done->first_offset = repeated->first_offset();
    done->last_offset = repeated->last_offset;
    done->log_append_time_ms = repeated->timestamp_ms;
    done->last_epoch = epochs_.epoch_of(repeated->last_offset);
    done->duplicate = true;
    return done;
  }
  for (const auto& [index, control] : parsed.controls)
    if (control.coordinator_epoch) TRY_VOID(producers_.check_marker(parsed.infos[index], control));
  return done;
}

base::Result<AppendInfo> SegmentedLog::append_as_leader(base::MutableBytes batch,
                                                        LeaderEpoch leader_epoch,
                                                        std::int64_t now_ms, AppendOrigin origin) {
  TRY_VOID(ensure_writable(batch.size(), now_ms));
  if (epochs_.latest() && leader_epoch < *epochs_.latest()) return StorageErrc::epoch_goes_back;
  ParsedBatches& parsed = scratch();
  protocol::BatchIterator it(batch, protocol::CrcCheck::no, batch_bytes_limit);
  while (it.next()) {
    if (it.info().magic != 2) return StorageErrc::corrupt_batch;
    if (it.info().control()) {
      auto control = protocol::read_control(it.batch());
      if (control.has_error()) return StorageErrc::corrupt_batch;
      if (*control) parsed.controls.emplace_back(parsed.infos.size(), **control);
    }
    parsed.infos.push_back(it.info());
  }
  if (it.stopped() || parsed.infos.empty()) return StorageErrc::corrupt_batch;
  TRY(auto done, check_as_leader(parsed, batch.size(), origin));
  if (done) return *done;

  AppendInfo result;
  result.first_offset = log_end_;
  result.last_epoch = leader_epoch;
  if (config_.log_append_time) result.log_append_time_ms = now_ms;
  Offset next = log_end_;
  std::size_t position = 0;
  for (protocol::BatchInfo& info : parsed.infos) {
    base::MutableBytes one = batch.subspan(position, info.size_bytes);
    position += info.size_bytes;
    protocol::set_base_offset(one, next);
    protocol::set_partition_leader_epoch(one, leader_epoch);
    if (config_.log_append_time && !(info.log_append_time() && info.max_timestamp == now_ms))
      protocol::set_log_append_time(one, now_ms);
    TRY(info, protocol::parse_batch(one));
    next = info.next_offset();
  }
  TRY_VOID(write_batches(batch, parsed, now_ms));
  result.last_offset = next - 1;
  return result;
}

// One write per segment that the bytes touch; a full segment is left between two batches.
base::Result<void> SegmentedLog::write_batches(base::Bytes bytes, const ParsedBatches& parsed,
                                               std::int64_t now_ms) {
  std::size_t first = 0;
  std::uint64_t pending = 0;
  for (std::size_t i = 0; i < parsed.infos.size(); ++i) {
    const protocol::BatchInfo& info = parsed.infos[i];
    auto first_timestamp = active().rolling_timestamp_ms();
    if (first_timestamp.has_error()) return go_offline(first_timestamp.error());
    if (i > first && active().size_bytes() == 0)
      *first_timestamp = parsed.infos[first].max_timestamp;
    if (should_roll(info, pending, i - first, *first_timestamp, now_ms)) {
      if (i > first) {
        TRY_VOID(write_group(bytes.first(pending), parsed, first, i));
        bytes = bytes.subspan(pending);
        first = i;
        pending = 0;
      }
      auto rolled = roll(&info, now_ms);
      if (rolled.has_error()) return go_offline(rolled.error());
    }
    pending += info.size_bytes;
  }
  return write_group(bytes, parsed, first, parsed.infos.size());
}

base::Result<void> SegmentedLog::write_group(base::Bytes bytes, const ParsedBatches& parsed,
                                             std::size_t first, std::size_t last) {
  auto infos = std::span(parsed.infos).subspan(first, last - first);
  auto written = active().append(bytes, infos);
  if (written.has_error()) {
    // A full disk leaves the log whole if the torn rest can be cut off again.
    if (is_no_space(written.error()) && active().drop_rest()) return StorageErrc::no_space;
    return go_offline(written.error());
  }
  active_dirty_ = true;
  auto next_control = parsed.controls.begin();
  for (std::size_t i = first; i < last; ++i) {
    std::optional<protocol::ControlRecord> control;
    while (next_control != parsed.controls.end() && next_control->first < i) ++next_control;
    if (next_control != parsed.controls.end() && next_control->first == i)
      control = next_control->second;
    auto noted = note_batch(parsed.infos[i], control);
    // The batch is in the log; what cannot be written beside it stops the next append.
    if (noted.has_error()) go_offline(noted.error());
  }
  auto flushed = active().flush_indexes(false);
  if (flushed.has_error()) go_offline(flushed.error());
  return {};
}

// Takes a batch that was just written into what the log knows.
base::Result<void> SegmentedLog::note_batch(const protocol::BatchInfo& info,
                                            const std::optional<protocol::ControlRecord>& control) {
  log_end_ = info.next_offset();
  if (info.magic >= 2) {
    if (info.partition_leader_epoch &&
        epochs_.assign(*info.partition_leader_epoch, info.base_offset))
      epochs_dirty_ = true;
  } else if (epochs_.clear()) {
    epochs_dirty_ = true;  // entries of magic 0 and 1 carry no epoch: nothing is known from here on
  }
  auto completed = producers_.apply(info, control, now_ms_);
  if (!completed || !completed->aborted) return {};
  if (!active().txn_index().exists()) directory_dirty_ = true;  // for the name of the new file
  return active().txn_index().append(*completed);
}

}  // namespace storage
