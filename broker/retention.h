// What takes old data away: retention by time, size and log start, and removing the files of what
// was deleted. Partitions that a mirror keeps begin where their source's do, and are left alone.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <memory>

#include "protocol/base/clock.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace broker {

class Broker;
class Partition;
class Shard;

// Records below `offset` are not served any more, durably, when this returns. On the partition's
// shard.
boost::asio::awaitable<base::Result<void>> advance_log_start(std::shared_ptr<Partition> partition,
                                                             base::Offset offset);

// The background work of one shard, on its thread: a partition at a time, and between two of them
// whatever else the shard has to do.
class Retention {
 public:
  Retention(Broker& broker, Shard& shard) : broker_(broker), shard_(shard) {}

  // Until the shard stops.
  boost::asio::awaitable<void> run();
  // One round over all partitions of the shard.
  boost::asio::awaitable<void> check_all();
  // Removes the files whose time on disk is over.
  boost::asio::awaitable<void> remove_expired();

 private:
  boost::asio::awaitable<void> check(std::shared_ptr<Partition> partition);

  Broker& broker_;
  Shard& shard_;
};

}  // namespace broker
