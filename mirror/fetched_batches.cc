#include "mirror/fetched_batches.h"

#include <fmt/format.h>

#include "protocol/batch.h"

namespace mirror {
namespace {

std::string order_problem(const protocol::BatchInfo& batch, base::Offset expected,
                          bool may_straddle, std::optional<base::LeaderEpoch> epoch) {
  if (batch.last_offset < expected)
    return fmt::format("a batch ends at offset {}, expected was {} or later", batch.last_offset,
                       expected);
  if (batch.base_offset < expected && batch.base_offset_known() && !may_straddle)
    return fmt::format("a batch begins at offset {}, expected was {} or later", batch.base_offset,
                       expected);
  if (epoch && batch.partition_leader_epoch && *batch.partition_leader_epoch < *epoch)
    return fmt::format("the batch at offset {} has leader epoch {}, one before it has {}",
                       batch.base_offset, *batch.partition_leader_epoch, *epoch);
  return {};
}

}  // namespace

FetchedBatches check_fetched(base::Bytes records, base::Offset fetch_offset, bool log_is_empty,
                             std::optional<base::LeaderEpoch> last_epoch) {
  FetchedBatches out{
      .bytes = {}, .next_offset = fetch_offset, .last_epoch = last_epoch, .problem = {}};
  protocol::BatchIterator batches(records, protocol::CrcCheck::yes);
  bool first = true;
  while (batches.next()) {
    const protocol::BatchInfo& batch = batches.info();
    out.problem = order_problem(batch, out.next_offset, first && log_is_empty, out.last_epoch);
    if (!out.problem.empty()) return out;
    first = false;
    out.next_offset = batch.next_offset();
    if (batch.partition_leader_epoch) out.last_epoch = batch.partition_leader_epoch;
  }
  if (batches.stopped() && batches.stopped() != protocol::BatchErrc::incomplete) {
    out.problem = fmt::format("the batch behind offset {} is damaged: {}", out.next_offset - 1,
                              batches.stopped().message());
    return out;
  }
  out.bytes = records.first(batches.valid_bytes());
  return out;
}

}  // namespace mirror
