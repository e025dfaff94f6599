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
  std::size_t epochs_from = 0;             // batches before this one no longer tell their epochs
  // The log was loaded from its files, which may no longer tell where in the gap before its first
  // batch an epoch began, nor that there was one without a batch above the log start.
  bool loaded = false;

  void add(base::Bytes bytes);
  void truncate_to(base::Offset offset);
  void restart_at(base::Offset offset);
  // What a restart and a truncation forget: an epoch begun without a batch, as Kafka does, and of a
  // log whose records were all deleted the last epoch, unless a batch is still in its file.
  void settle_epochs(bool holds_bytes);

  base::Buffer bytes_from(base::Offset from) const;
  struct Epoch {
    base::LeaderEpoch epoch = 0;
    base::Offset start = 0;
    base::Offset low = 0, high = 0;  // of the gap that it begins in
    bool has_batch = true;           // one that reaches above the log start
  };
  std::vector<Epoch> epochs() const;
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

// What was done last, for whoever looks into a failure.
class Trace {
 public:
  void note(const std::string& what, const LogModel& model);
  std::string text() const;

 private:
  std::vector<std::string> lines_;
};

// What `log` does not answer as `model` does; empty if there is nothing. `random` chooses what is
// asked.
std::string difference(const storage::Log& log, const LogModel& model, base::Random& random);

}  // namespace storage_test
