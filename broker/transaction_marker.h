// The end of a producer's transaction, as it is written to each partition that took part (KIP-98,
// KIP-890).
#pragma once
#include <cstdint>

#include "protocol/base/ids.h"

namespace broker {

struct TransactionMarker {
  base::ProducerId producer_id = 0;
  base::ProducerEpoch producer_epoch = 0;
  bool committed = false;
  std::int32_t coordinator_epoch = 0;
  // Of our own coordinator, the only one that there is: it counts as no older than any that the
  // partition has heard of, whatever epoch a marker of a client's brought there.
  bool owed = false;
  // 2 and above: the epoch is one above that of the transaction's records.
  std::int16_t transaction_version = 0;
};

}  // namespace broker
