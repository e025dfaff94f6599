// Hands out producer ids from blocks that are made durable before the first id of one is given
// away: an id is never given twice, though a restart wastes the rest of a block.
//
// Ids in mirrored batches are the source's and may be equal to ours. That is harmless: the record
// that ends a mirror's writing makes the partition forget all of the source's producers.
#pragma once
#include <boost/asio/awaitable.hpp>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace broker {

class Broker;

class ProducerIds {
 public:
  explicit ProducerIds(Broker& broker) : broker_(broker) {}

  // On any shard.
  boost::asio::awaitable<base::Result<base::ProducerId>> next();

 private:
  base::Result<base::ProducerId> take();

  Broker& broker_;
  base::ProducerId next_ = 0;  // both belong to shard 0
  base::ProducerId end_ = 0;
};

}  // namespace broker
