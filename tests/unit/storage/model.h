// A log as a vector of batches, and everything a log answers computed the slow way from them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "storage/log.h"
#include "tests/unit/storage/batches.h"

namespace storage_test {

struct ModelBatch {
  protocol::BatchInfo info;
  base::Buffer bytes;
};

struct LogModel {
  std::vector<ModelBatch> batches;
  base::Offset start = 0;                  // log start
  base::Offset end = 0;                    // log end, also when there is no batch
  std::optional<storage::EpochEnd> begun;  // an epoch begun at `end` without a batch

  void add(base::Bytes bytes);
  void truncate_to(base::Offset offset);
  void restart_at(base::Offset offset);
  // What a restart forgets.
  void reopen() { begun.reset(); }

  base::Buffer bytes_from(base::Offset from) const;
  std::vector<storage::EpochEnd> epochs() const;
  std::optional<storage::EpochEnd> end_offset_for(base::LeaderEpoch epoch) const;
  std::optional<storage::TimestampOffset> offset_for_timestamp(std::int64_t timestamp_ms) const;
  std::optional<storage::TimestampOffset> max_timestamp() const;
  struct Transactions {
    std::map<base::ProducerId, base::Offset> open;  // first offsets
    struct Aborted {
      base::ProducerId producer = 0;
      base::Offset first = 0, marker = 0;
    };
    std::vector<Aborted> aborted;
  };
  Transactions transactions() const;
};

// Makes batches such as a source may have: gaps, epochs, producers, transactions, resets.
class BatchMaker {
 public:
  explicit BatchMaker(base::Random& random) : random_(random) {}
  // A batch that begins at or shortly after the model's end.
  base::Buffer next(const LogModel& model, bool far_gaps);
  base::LeaderEpoch epoch = 0;

 private:
  base::Random& random_;
  std::map<base::ProducerId, std::int32_t> sequences_;
};

// Requires that `log` answers as `model` does. `random` chooses what is asked.
void compare(const storage::Log& log, const LogModel& model, base::Random& random);

}  // namespace storage_test
