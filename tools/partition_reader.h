// Reads one partition batch by batch, in bounded memory, as a consumer that sees all records.
#pragma once
#include <string>

#include "protocol/batch.h"
#include "tools/cluster.h"

namespace tools {

class PartitionReader {
 public:
  // From the batch that holds `from` up to, not including, the first batch at or after `until`.
  PartitionReader(Cluster& cluster, std::string topic, std::int32_t partition, base::Offset from,
                  base::Offset until);

  // False at the end. Waits for batches that are not there yet, up to a limit: Failure(failed).
  // A broker that is away for a moment, or a leader that moved, is followed.
  bool next();
  const protocol::BatchInfo& info() const { return info_; }
  // As stored; lives until the next call of next().
  base::Bytes batch() const { return batch_; }

  static constexpr std::int32_t fetch_bytes = 4 << 20;

 private:
  bool take();
  void fetch();
  // Throws what cannot be helped by asking again.
  void fetch_once();

  Cluster& cluster_;
  std::string topic_;
  std::int32_t partition_;
  base::Offset next_;
  base::Offset until_;
  base::Buffer fetched_;
  std::size_t used_ = 0;
  protocol::BatchInfo info_;
  base::Bytes batch_;
};

}  // namespace tools
