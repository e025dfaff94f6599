// Compacts the logs of the internal topics that one shard owns: without it __mirror_state would
// grow with every change of a state, and be read as a whole at every start.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <unordered_set>

#include "protocol/base/ids.h"

namespace broker {

class Partition;
class Shard;

// Lives on its shard and is used there only.
class Compactor {
 public:
  // `interval`: between two looks at the shard's logs.
  Compactor(Shard& shard, std::chrono::milliseconds interval)
      : shard_(shard), interval_(interval) {}

  // Until the shard stops. One log at most with each look, the one with the most to gain: the work
  // is done on the shard's thread, and whatever else that has to do waits meanwhile.
  boost::asio::awaitable<void> run();

 private:
  std::shared_ptr<Partition> dirtiest() const;
  boost::asio::awaitable<void> compact(std::shared_ptr<Partition> partition);

  Shard& shard_;
  std::chrono::milliseconds interval_;
  // Could not be compacted: left alone until a restart, or the others would never have their turn.
  std::unordered_set<base::TopicPartition> failed_;
};

}  // namespace broker
