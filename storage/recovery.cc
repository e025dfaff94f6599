// Loading a log. After a clean shutdown only the end of the active segment is read. Otherwise the
// segments from the recovery point on are read whole: the log ends before the first batch that is
// damaged, out of order, or behind a hole. What is below the recovery point was durable; damage
// there is not the work of a crash, so its checksums are left to readers. Indexes, epochs and
// producer state are caches of the batches and are brought to what these say.

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/batch_scanner.h"
#include "storage/compaction.h"
#include "storage/error.h"
#include "storage/segmented_log.h"

namespace storage {
namespace {

constexpr Offset none = std::numeric_limits<Offset>::max();
constexpr std::size_t name_digits = 20;

// The base offset in `00000000000000000123.log`.
std::optional<Offset> base_of(const std::string& name) {
  if (name.size() <= name_digits || name[name_digits] != '.') return std::nullopt;
  Offset base = 0;
  for (char c : std::string_view(name).substr(0, name_digits)) {
    if (c < '0' || c > '9' || base > (none - 9) / 10) return std::nullopt;
    base = base * 10 + (c - '0');
  }
  if (base > log_end_limit) return std::nullopt;
  return base;
}

bool missing(base::Error error) {
  return error == boost::system::errc::no_such_file_or_directory;
}

}  // namespace

base::Result<SegmentedLog::Listing> SegmentedLog::list_directory() {
  TRY(auto names, files_.list(directory_));
  Listing listing;
  for (const std::string& name : names)
    if (auto base = base_of(name); base && name.substr(name_digits) == ".log")
      listing.segments.push_back(*base);
  for (const std::string& name : names) {
    auto base = base_of(name);
    const std::string suffix = base ? name.substr(name_digits) : std::string();
    const bool owned =
        base && std::binary_search(listing.segments.begin(), listing.segments.end(), *base);
    if (suffix == ".snapshot") {
      listing.snapshots.push_back(*base);
    } else if (suffix == ".txnindex" && owned) {
      listing.txn_indexes.push_back(*base);
    } else if (suffix == ".index" || suffix == ".timeindex" || suffix == ".txnindex") {
      if (!owned) listing.removable.push_back(name);
    } else if (name.ends_with(".tmp") || name.ends_with(".deleted") || name.ends_with(".cleaned")) {
      listing.removable.push_back(name);
    }
  }
  return listing;
}

base::Result<void> SegmentedLog::prepare_directory() {
  TRY(bool there, files_.exists(directory_));
  if (there) return {};
  TRY_VOID(files_.create_directory(directory_));
  return files_.sync_directory(parent_directory(directory_));
}

base::Result<void> SegmentedLog::load_state(const OpenOptions& options) {
  state_.reset();
  gaps_until_ = 0;
  auto content = files_.read_whole(path(log_state_file));
  if (content) {
    auto state = LogState::parse(base::as_text(*content));
    if (state) {
      state_ = *state;
    } else {
      // It is replaced as a whole, so this is no crash's work. Distrust everything else.
      base::logger("storage").error("{} is damaged; the whole log is verified",
                                    path(log_state_file));
      state_.emplace();
      state_->log_start = options.log_start.value_or(0);
      state_dirty_ = true;
      gaps_until_ = options.recovery_point;
    }
  } else if (!missing(content.error())) {
    return content.error();
  }
  log_start_ = state_ ? state_->log_start : options.log_start.value_or(0);
  if (log_start_ < 0 || log_start_ > log_end_limit) return StorageErrc::corrupt_file;
  return {};
}

base::Result<void> SegmentedLog::load(const OpenOptions& options) {
  now_ms_ = options.now_ms;
  dirty_files_.clear();
  front_durable_ = false;
  changed_ = !options.clean_shutdown;
  active_dirty_ = directory_dirty_ = epochs_dirty_ = state_dirty_ = false;
  TRY_VOID(prepare_directory());
  TRY_VOID(load_state(options));
  if (state_ && state_->restart_at) {
    TRY_VOID(perform_restart(*state_->restart_at));
    state_->restart_at.reset();
    return persist_state();
  }
  TRY_VOID(finish_swaps(files_, directory_));
  TRY(auto listing, list_directory());
  for (const std::string& name : listing.removable) TRY_VOID(files_.remove(path(name.c_str())));
  if (listing.segments.empty()) {
    TRY_VOID(begin_empty());
    if (state_ && state_->truncate_to) {
      state_->truncate_to.reset();  // nothing is left to cut, and what comes must not be
      TRY_VOID(persist_state());
    }
    return lower_recovery_point(options.recovery_point);
  }
  TRY_VOID(open_segments(listing));
  TRY_VOID(load_segments(options));
  TRY_VOID(load_producers(rebuild_txns_from_));
  TRY_VOID(drop_below_start());
  // What was removed must not come back after the log has grown again: a snapshot of another
  // history would be believed.
  if (directory_dirty_) TRY_VOID(files_.sync_directory(directory_));
  directory_dirty_ = false;
  if (state_ && state_->truncate_to) {
    TRY_VOID(perform_truncation(std::max(*state_->truncate_to, segments_.front()->base())));
    state_->truncate_to.reset();
    TRY_VOID(persist_state());
  }
  if (log_end_ < log_start_) {
    base::logger("storage").warn("log {} ends at {}, below its start {}, and begins anew there",
                                 directory_, log_end_, log_start_);
    const Offset start = log_start_;
    offline_.reset();
    return restart_at(start);
  }
  log_start_ = std::max(log_start_, segments_.front()->base());
  TRY_VOID(settle_epochs());
  // Before anybody hears that all is durable: below the recovery point nothing is read again.
  if (epochs_dirty_ && epochs_.entries() != epochs_read_) {
    const std::string text = epochs_.to_text();
    std::lock_guard lock(turn_->mutex);
    TRY_VOID(files_.write_whole(path(epoch_file), base::as_bytes(text)));
  }
  epochs_dirty_ = false;
  epochs_read_ = {};
  TRY_VOID(lower_recovery_point(options.recovery_point));
  durable_end_ = log_end_;
  active().release();
  return {};
}

// After loading and cutting epochs speak of batches that are there: one that was begun without a
// batch is forgotten, as by Kafka. Of a log whose records were all deleted the last batch may still
// be in the file.
base::Result<void> SegmentedLog::settle_epochs() {
  if (epochs_.truncate_to(log_end_)) epochs_dirty_ = true;
  if (log_start_ < log_end_) {
    advance_epochs_start();
    return {};
  }
  TRY(auto tail, active().load_tail());
  EpochCache settled;
  if (tail.last_epoch) settled.assign(*tail.last_epoch, log_end_);
  if (settled.entries() == epochs_.entries()) return {};
  epochs_ = std::move(settled);
  epochs_dirty_ = true;
  return {};
}

// A new log. It becomes durable with its first sync: one that a crash takes back is made again.
base::Result<void> SegmentedLog::begin_empty() {
  segments_.clear();
  epochs_.clear();
  producers_.clear();
  TRY(auto segment, Segment::create(place(now_ms_), log_start_));
  segments_.push_back(std::move(segment));
  log_end_ = durable_end_ = log_start_;
  active_dirty_ = directory_dirty_ = true;
  return {};
}

base::Result<void> SegmentedLog::open_segments(const Listing& listing) {
  segments_.clear();
  rebuild_txns_from_ = none;
  for (Offset base : listing.segments) {
    TRY(auto segment, Segment::open(place(now_ms_), base));
    if (std::binary_search(listing.txn_indexes.begin(), listing.txn_indexes.end(), base)) {
      auto opened = segment->txn_index().open();
      if (opened.has_error()) rebuild_txns_from_ = std::min(rebuild_txns_from_, base);
    }
    segments_.push_back(std::move(segment));
  }
  return {};
}

base::Result<void> SegmentedLog::load_segments(const OpenOptions& options) {
  TRY_VOID(load_epochs());
  // The log's own file is always true; the directory's checkpoint may speak of what was cut off.
  Offset recovery_point = state_ ? state_->recovery_point : options.recovery_point;
  gaps_until_ = std::max(gaps_until_, recovery_point);
  bool recovered = !options.clean_shutdown;
  if (recovered) TRY_VOID(finish_deletion(std::min(log_start_, recovery_point)));
  if (options.clean_shutdown) {
    auto tail = active().load_tail();
    if (tail) {
      log_end_ = tail->end;
    } else if (tail.error().category() == boost::system::system_category()) {
      return tail.error();
    } else {
      base::logger("storage").error("log {} was closed well, yet its end is damaged", directory_);
      recovered = true;
      recovery_point = active().base();
    }
  }
  if (recovered) return recover(recovery_point);
  return {};
}

// A recovery point above the log end would vouch for what is still to be written there.
base::Result<void> SegmentedLog::lower_recovery_point(Offset told) {
  if ((state_ ? state_->recovery_point : told) <= log_end_) return {};
  if (!state_) state_.emplace();
  state_->recovery_point = log_end_;
  state_->log_start = log_start_;
  return persist_state();
}

base::Result<void> SegmentedLog::recover(Offset recovery_point) {
  const std::size_t first = segment_index(recovery_point);
  // Just after a roll the recovery point vouches for the records of the segment before, but not yet
  // for its indexes.
  if (first > 0 && segments_[first]->base() == recovery_point) {
    rebuild_txns_from_ = std::min(rebuild_txns_from_, segments_[first - 1]->base());
    TRY_VOID(segments_[first - 1]->rebuild_indexes());
    segments_[first - 1]->release();
  }
  TRY_VOID(recover_from(first, recovery_point));
  if (log_end_ < recovery_point && first > 0) {
    // Then the recovery point does not speak of this log, and says nothing about what is below.
    base::logger("storage").warn("log {} ends at {}, below its recovery point {}; all is verified",
                                 directory_, log_end_, recovery_point);
    TRY_VOID(recover_from(0, 0));
  }
  return {};
}

base::Result<void> SegmentedLog::recover_from(std::size_t first, Offset recovery_point) {
  rebuild_txns_from_ = std::min(rebuild_txns_from_, segments_[first]->base());
  if (epochs_.truncate_to(segments_[first]->base())) epochs_dirty_ = true;
  std::size_t keep = first;
  std::uint64_t cut_bytes = 0;
  log_end_ = segments_[first]->base();
  while (cut_bytes == 0 && keep < segments_.size()) {
    Segment& segment = *segments_[keep];
    // Otherwise something is missing in between.
    const bool follows =
        segment.base() == log_end_ || (segment.base() > log_end_ && segment.base() <= gaps_until_);
    if (!follows) break;
    log_end_ = segment.base();
    ++keep;
    TRY(cut_bytes, recover_segment(segment, recovery_point));
    if (cut_bytes > 0 || log_end_ > recovery_point) {
      TRY(auto file, segment.file());
      TRY_VOID(file->sync());
      directory_dirty_ = true;  // its name may not be durable either
    }
    if (keep == segments_.size()) break;
    // From now on nobody looks whether the indexes of a sealed segment are whole.
    TRY_VOID(segment.sync_indexes());
    segment.release();
  }
  for (std::size_t i = segments_.size(); i > keep; --i) {
    base::logger("storage").warn("log {} ends at {}: the segment at {} lies behind that",
                                 directory_, log_end_, segments_[i - 1]->base());
    TRY_VOID(segments_[i - 1]->remove_files());
    segments_.pop_back();
    directory_dirty_ = true;
  }
  return {};
}

// Reads a segment, leaves log_end_ at its end, and cuts off what is no batch: so many bytes.
base::Result<std::uint64_t> SegmentedLog::recover_segment(Segment& segment, Offset recovery_point) {
  TRY(auto file, segment.file());
  TRY_VOID(segment.begin_rebuild());
  CheckedScanner scanner(*file, 0, segment.size_bytes());
  std::uint64_t good = 0;
  base::Error why;
  while (scanner.next(recovery_point)) {
    const protocol::BatchInfo& info = scanner.info();
    auto added = segment.rebuild_add(info, scanner.position());
    if (added.has_error()) {
      why = added.error();
      break;
    }
    good = scanner.next_position();
    log_end_ = info.next_offset();
    if (info.magic < 2) {
      if (epochs_.clear()) epochs_dirty_ = true;
    } else if (info.partition_leader_epoch &&
               epochs_.assign(*info.partition_leader_epoch, info.base_offset)) {
      epochs_dirty_ = true;
    }
  }
  if (scanner.error()) why = scanner.error();
  if (why.category() == boost::system::system_category() && why) return why;
  const std::uint64_t rest = segment.size_bytes() - good;
  TRY_VOID(segment.end_rebuild(good));
  if (rest == 0) return rest;
  base::logger("storage").warn("{} ends at offset {}: {} bytes behind are cut off ({})",
                               segment.path(".log"), log_end_, rest, why.message());
  TRY_VOID(segment.drop_rest());
  return rest;
}

base::Result<void> SegmentedLog::load_epochs() {
  epochs_.clear();
  epochs_read_ = {};
  auto content = files_.read_whole(path(epoch_file));
  if (content) {
    auto parsed = EpochCache::parse(base::as_text(*content));
    if (parsed) {
      epochs_ = std::move(*parsed);
      epochs_read_ = epochs_.entries();
      return {};
    }
  } else if (!missing(content.error())) {
    return content.error();
  }
  // Missing or damaged: the batches know.
  epochs_dirty_ = true;
  for (auto& segment : segments_) {
    TRY(auto file, segment->file());
    HeaderScanner scanner(*file, 0, segment->size_bytes());
    while (scanner.next()) {
      if (scanner.info().magic < 2)
        epochs_.clear();
      else if (scanner.info().partition_leader_epoch)
        epochs_.assign(*scanner.info().partition_leader_epoch, scanner.info().base_offset);
    }
    if (scanner.error() && scanner.error().category() != protocol::batch_category())
      return scanner.error();
    segment->release();
  }
  return {};
}

// Finds the newest snapshot that can be used and gives its offset, 0 for none. Those that cannot,
// and those that no segment needs, are removed.
base::Result<Offset> SegmentedLog::load_snapshot(Offset at_most) {
  TRY(auto listing, list_directory());
  Offset from = 0;
  bool found = false;
  producers_.clear();
  for (auto it = listing.snapshots.rbegin(); it != listing.snapshots.rend(); ++it) {
    const std::string name = segment_path(directory_, *it, ".snapshot");
    const bool wanted = *it == log_end_ ||
                        std::binary_search(listing.segments.begin(), listing.segments.end(), *it);
    if (*it > log_end_) {
      TRY_VOID(files_.remove(name));
      directory_dirty_ = true;
      continue;
    }
    if (!found && *it <= at_most) {
      TRY(auto content, files_.read_whole(name));
      auto state = ProducerState::decode_snapshot(content);
      if (state) {
        producers_ = std::move(*state);
        from = *it;
        found = true;
        continue;
      }
      base::logger("storage").warn("{} is damaged and not used", name);
      TRY_VOID(files_.remove(name));
    } else if (!wanted) {
      TRY_VOID(files_.remove(name));
    }
  }
  return from;
}

// Producer state at the log end. `rebuild_txns_from`: the .txnindex files of segments from there on
// are made anew.
base::Result<void> SegmentedLog::load_producers(Offset rebuild_txns_from) {
  TRY(Offset from, load_snapshot(std::min(log_end_, rebuild_txns_from)));
  // Those that are read from batches have until the next look, as in Kafka: their records may be
  // older than the writing of them.
  producers_.expire(now_ms_, config_.producer_expiration_ms);
  producers_checked_ms_ = now_ms_;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = *segments_[i];
    const bool sealed = i + 1 < segments_.size();
    const bool rebuild = segment.base() >= rebuild_txns_from;
    if (rebuild) {
      directory_dirty_ = directory_dirty_ || segment.txn_index().exists();
      TRY_VOID(segment.txn_index().remove());
    }
    const bool needed = !sealed || segments_[i + 1]->base() > from;
    if (needed && i > 0 && segment.base() > from) TRY_VOID(renew_snapshot(segment.base()));
    if (!needed || segment.size_bytes() == 0 || from >= log_end_) continue;
    TRY_VOID(replay_producers(segment, from, rebuild));
    if (!sealed) continue;
    if (rebuild && !segment.txn_index().empty()) {
      TRY(auto transactions, segment.txn_index().entries().file());
      TRY_VOID(transactions->sync());
      directory_dirty_ = true;
    }
    segment.release();
  }
  return {};
}

// A segment without a good snapshot would lose what the ones before tell, once they are deleted.
base::Result<void> SegmentedLog::renew_snapshot(Offset base) {
  auto content = files_.read_whole(segment_path(directory_, base, ".snapshot"));
  if (content && *content == producers_.encode_snapshot()) return {};
  if (content.has_error() && !missing(content.error())) return content.error();
  return write_snapshot(base, true);
}

base::Result<void> SegmentedLog::replay_producers(Segment& segment, Offset from, bool write_txns) {
  auto start = segment.find(from);
  if (start.has_error() && start.error() != StorageErrc::corrupt_batch) return start.error();
  if (start.has_error() || !*start) return {};
  TRY(auto file, segment.file());
  HeaderScanner scanner(*file, (*start)->position, segment.size_bytes());
  while (scanner.next()) {
    const protocol::BatchInfo& info = scanner.info();
    std::optional<protocol::ControlRecord> control;
    if (info.control()) {
      TRY(auto batch, read_batch(*file, scanner.position(), info));
      auto read = protocol::read_control(batch);
      if (read)
        control = *read;
      else
        base::logger("storage").warn("{}: control batch at {} cannot be read", directory_,
                                     info.base_offset);
    }
    auto completed = producers_.apply(info, control);
    if (completed && completed->aborted && write_txns)
      TRY_VOID(segment.txn_index().append(*completed));
  }
  if (!scanner.error()) return {};
  if (scanner.error().category() != protocol::batch_category()) return scanner.error();
  // Damage below the recovery point keeps nobody from the batches behind it.
  base::logger("storage").error("{} is damaged at byte {}", segment.path(".log"),
                                scanner.next_position());
  return {};
}

// A deletion that a crash stopped may have left some of what is to go, with holes in it and without
// snapshots. What a good snapshot stands for is not needed any more.
base::Result<void> SegmentedLog::finish_deletion(Offset below) {
  for (std::size_t i = segment_index(below); i > 0; --i) {
    auto content = files_.read_whole(segment_path(directory_, segments_[i]->base(), ".snapshot"));
    if (content.has_error() && !missing(content.error())) return content.error();
    if (!content || !ProducerState::decode_snapshot(*content)) continue;
    for (; i > 0; --i) TRY_VOID(drop_front());
    return {};
  }
  return {};
}

base::Result<void> SegmentedLog::drop_below_start() {
  while (segments_.size() > 1 && segments_[1]->base() <= log_start_) TRY_VOID(drop_front());
  return {};
}

base::Result<void> SegmentedLog::drop_front() {
  TRY_VOID(segments_.front()->remove_files());
  segments_.erase(segments_.begin());
  directory_dirty_ = true;
  return {};
}

}  // namespace storage
