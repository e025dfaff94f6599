#include "storage/epoch_cache.h"

#include <algorithm>
#include <limits>

#include "storage/checkpoint.h"
#include "storage/error.h"

namespace storage {

bool EpochCache::assign(base::LeaderEpoch epoch, base::Offset start) {
  if (epoch < 0) return false;
  if (!entries_.empty() && entries_.back().epoch == epoch && entries_.back().start <= start)
    return false;
  while (!entries_.empty() && (entries_.back().epoch >= epoch || entries_.back().start >= start))
    entries_.pop_back();
  entries_.push_back({epoch, start});
  return true;
}

bool EpochCache::truncate_to(base::Offset end) {
  const std::size_t before = entries_.size();
  while (!entries_.empty() && entries_.back().start >= end) entries_.pop_back();
  return entries_.size() != before;
}

bool EpochCache::advance_start(base::Offset start) {
  auto keep = std::find_if(entries_.begin(), entries_.end(),
                           [&](const Entry& e) { return e.start > start; });
  if (keep == entries_.begin()) return false;
  --keep;  // the last one that begins at or below `start` covers it
  const bool changed = keep != entries_.begin() || keep->start != start;
  keep->start = start;
  entries_.erase(entries_.begin(), keep);
  return changed;
}

bool EpochCache::clear() {
  const bool changed = !entries_.empty();
  entries_.clear();
  return changed;
}

std::optional<EpochCache::End> EpochCache::end_of(base::LeaderEpoch epoch,
                                                  base::Offset log_end) const {
  if (entries_.empty() || epoch == -1 || epoch > entries_.back().epoch) return std::nullopt;
  if (epoch == entries_.back().epoch) return End{epoch, log_end};
  auto higher = std::find_if(entries_.begin(), entries_.end(),
                             [&](const Entry& e) { return e.epoch > epoch; });
  if (higher == entries_.begin()) return End{epoch, higher->start};
  return End{std::prev(higher)->epoch, higher->start};
}

std::optional<base::LeaderEpoch> EpochCache::latest() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.back().epoch;
}

std::optional<base::LeaderEpoch> EpochCache::epoch_of(base::Offset offset) const {
  std::optional<base::LeaderEpoch> found;
  for (const Entry& e : entries_) {
    if (e.start > offset) break;
    found = e.epoch;
  }
  return found;
}

std::string EpochCache::to_text() const {
  std::string text = "0\n" + std::to_string(entries_.size()) + "\n";
  for (const Entry& e : entries_)
    text += std::to_string(e.epoch) + " " + std::to_string(e.start) + "\n";
  return text;
}

base::Result<EpochCache> EpochCache::parse(std::string_view text) {
  TRY(auto lines, parse_checkpoint_lines(text));
  EpochCache cache;
  for (const auto& fields : lines) {
    if (fields.size() != 2) return StorageErrc::corrupt_file;
    TRY(auto epoch, parse_number(fields[0]));
    TRY(auto start, parse_number(fields[1]));
    if (epoch < 0 || epoch > std::numeric_limits<base::LeaderEpoch>::max() || start < 0)
      return StorageErrc::corrupt_file;
    // An old release's file may be out of order; as in a live log the later line wins.
    cache.assign(static_cast<base::LeaderEpoch>(epoch), start);
  }
  return cache;
}

}  // namespace storage
