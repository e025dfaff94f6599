// A partition's log as the simulator needs it: batches with offsets, epochs, producers, and an
// epoch cache that answers as Kafka's does.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "mirror/machine.h"

namespace sim {

using mirror::LeaderEpoch;
using mirror::Offset;

enum class Kind : std::uint8_t { data, transactional, commit, abort, producer_reset };

struct Batch {
  Offset base = 0, next = 0;
  LeaderEpoch epoch = 0;
  std::uint64_t id = 0;  // stands for the bytes
  Kind kind = Kind::data;
  std::int64_t producer = -1;
  bool mirrored = false;   // came from the source
  std::uint32_t life = 0;  // which creation of the source topic it belongs to
};

// What a broker knows of producers: derived from the log, as a recovery would derive it.
struct Producers {
  std::set<std::int64_t> known;       // with state from a mirrored batch
  std::set<std::int64_t> open;        // with an open transaction
  std::set<std::int64_t> unfinished;  // begun at the source and never ended by a marker
};

class Log {
 public:
  Offset start = 0;
  std::deque<Batch> batches;

  Offset end() const { return batches.empty() ? empty_end_ : batches.back().next; }
  bool empty() const { return batches.empty(); }
  std::optional<LeaderEpoch> last_epoch() const;
  std::optional<LeaderEpoch> newest_mirrored_epoch() const;
  // The end of the last batch whose epoch is not above `epoch`; the log start if there is none.
  Offset end_of_epoch(LeaderEpoch epoch) const;
  Producers producers() const;

  void append(Batch batch);
  // By whole batches; below the start the log is emptied and starts at `offset`.
  void truncate(Offset offset);
  void restart(Offset offset);
  // Whole batches below go; a start inside a batch keeps it.
  void raise_start(Offset offset);

  // As a leader: its epoch begins at the log's end.
  void begin_epoch(LeaderEpoch epoch);
  // OffsetForLeaderEpoch: absent is "undefined".
  std::optional<mirror::EpochEnd> end_offset_for(LeaderEpoch epoch) const;

 private:
  struct Entry {
    LeaderEpoch epoch;
    Offset start;
  };
  Offset empty_end_ = 0;
  std::vector<Entry> epochs_;
};

}  // namespace sim
