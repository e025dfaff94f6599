// Where the batches lie that were appended last: whoever reads at the end of a log, which most do,
// is answered without looking into an index and at headers on disk. Not thread-safe.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "protocol/base/ids.h"

namespace storage {

class RecentBatches {
 public:
  struct Place {
    base::Offset base_offset = 0, last_offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t position = 0;  // in the segment's file
  };

  // Of one segment, in the order of their offsets.
  void add(const Place& place) {
    places_[next_] = place;
    next_ = (next_ + 1) % places_.size();
    if (count_ < places_.size()) ++count_;
  }
  void clear() { count_ = 0; }

  // The first batch that reaches `target`; nothing if that may be one that is not remembered.
  std::optional<Place> find(base::Offset target) const {
    const std::size_t oldest = next_ + places_.size() - count_;
    for (std::size_t i = 0; i < count_; ++i) {
      const Place& one = places_[(oldest + i) % places_.size()];
      if (i == 0 && target < one.base_offset) return std::nullopt;
      if (target <= one.last_offset) return one;
    }
    return std::nullopt;
  }

 private:
  std::array<Place, 8> places_;
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace storage
