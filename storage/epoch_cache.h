// Where each leader epoch begins in a log: the file `leader-epoch-checkpoint` and the answers of
// OffsetForLeaderEpoch. Pure; the log writes the file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace storage {

class EpochCache {
 public:
  struct Entry {
    base::LeaderEpoch epoch = 0;
    base::Offset start = 0;
    bool operator==(const Entry&) const = default;
  };
  struct End {
    base::LeaderEpoch epoch = 0;
    base::Offset offset = 0;
  };

  // Epochs and start offsets both grow. An assignment that contradicts later entries removes them:
  // the batch at hand is newer knowledge. True if anything changed.
  bool assign(base::LeaderEpoch epoch, base::Offset start);
  // Forgets entries that begin at or above `end`. True if anything changed.
  bool truncate_to(base::Offset end);
  // Records below `start` are gone: forgets epochs that ended there; the one that covers `start`
  // now begins there. True if anything changed.
  bool advance_start(base::Offset start);
  bool clear();

  // An epoch above all known ones, or an empty cache: nothing. A known one: itself and where the
  // next begins. One that is missing between: the largest smaller one and its end. One below all:
  // itself and where the first begins.
  std::optional<End> end_of(base::LeaderEpoch epoch, base::Offset log_end) const;
  std::optional<base::LeaderEpoch> latest() const;
  std::optional<base::LeaderEpoch> epoch_of(base::Offset offset) const;
  const std::vector<Entry>& entries() const { return entries_; }

  // The file's text: `0`, the count, then `epoch startOffset` a line.
  std::string to_text() const;
  static base::Result<EpochCache> parse(std::string_view text);

 private:
  std::vector<Entry> entries_;
};

}  // namespace storage
