// Checks what a source sent for one partition, before anything of it is believed.
#pragma once
#include <optional>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"

namespace mirror {

struct FetchedBatches {
  base::Bytes bytes;  // whole, valid batches that follow the fetch offset; a cut tail is left out
  base::Offset next_offset = 0;                 // behind the last batch
  std::optional<base::LeaderEpoch> last_epoch;  // of the last batch
  // Why none of it may be used; empty: all is well (also when there is no whole batch).
  std::string problem;
};

// Length, CRC, offsets that rise from `fetch_offset`, leader epochs that do not fall from
// `last_epoch`. Gaps are legal: compaction leaves them. The first batch may begin before
// `fetch_offset` only if it covers it and the log is empty: the source's log start lies inside it.
FetchedBatches check_fetched(base::Bytes records, base::Offset fetch_offset, bool log_is_empty,
                             std::optional<base::LeaderEpoch> last_epoch);

}  // namespace mirror
