// A long poll: a Fetch that did not find min_bytes waits here until the partitions that it asked
// for have received so many, or until its time is up.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>

#include "protocol/base/clock.h"

namespace broker {

class Shard;

// Made on the shard of the connection, which waits; told of appends from the shards of the
// partitions, hence the atomics: they are touched only while somebody waits.
class FetchWaiter : public std::enable_shared_from_this<FetchWaiter> {
 public:
  // Woken when `missing_bytes` have come in.
  FetchWaiter(Shard& home, std::int64_t missing_bytes);
  ~FetchWaiter();
  FetchWaiter(const FetchWaiter&) = delete;
  FetchWaiter& operator=(const FetchWaiter&) = delete;

  // Any thread.
  void add_bytes(std::int64_t bytes);
  void wake();
  // Nobody waits any more; it may be forgotten.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // On its home shard.
  boost::asio::awaitable<void> wait_until(base::Clock::time_point deadline);

 private:
  Shard& home_;
  base::Timer timer_;
  std::atomic<std::int64_t> missing_bytes_;
  std::atomic<bool> done_{false};
};

}  // namespace broker
