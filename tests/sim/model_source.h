// The source cluster: one partition's log under leaders that come and go, cleanly and uncleanly,
// with retention, transactions, a topic that may be deleted and created anew, and a habit of being
// away.
#pragma once
#include <map>

#include "protocol/base/random.h"
#include "tests/sim/model_log.h"

namespace sim {

class SourceModel {
 public:
  SourceModel(base::Random& random, bool has_topic_ids)
      : random_(random), has_ids(has_topic_ids), names_epochs(has_topic_ids || random.chance(60)) {}

  void act();     // one random thing happens
  void settle();  // transient lies end: metadata fresh, everything committed, reachable
  void die() { dead = true; }

  bool reachable() const { return !away && !dead; }
  // Up to `count` committed batches from the one that covers `offset`.
  std::vector<Batch> read(Offset offset, std::size_t count) const;

 private:
  base::Random& random_;

 public:
  Log log;
  LeaderEpoch epoch = 0;
  LeaderEpoch metadata_epoch = 0;  // what brokers say, which may be behind
  Offset high_watermark = 0;
  Offset reported_end = 0;  // ListOffsets: may fall behind for a moment after an election
  std::uint32_t life = 0;
  bool has_ids = true;
  bool names_epochs = true;  // in its metadata
  bool away = false, dead = false;
  bool ever_unclean = false, ever_recreated = false;

 private:
  void write(Kind kind, std::int64_t producer);
  void lose_tail();

  std::uint64_t next_id_ = 1;
  std::set<std::int64_t> open_;
  std::map<LeaderEpoch, Offset> ends_;  // how far each epoch was ever written
};

}  // namespace sim
