#include "broker/fetch_wait.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "broker/shard.h"

namespace broker {

FetchWaiter::FetchWaiter(Shard& home, std::int64_t missing_bytes)
    : home_(home), timer_(home.executor()), missing_bytes_(missing_bytes) {}

FetchWaiter::~FetchWaiter() = default;

void FetchWaiter::add_bytes(std::int64_t bytes) {
  if (missing_bytes_.fetch_sub(bytes, std::memory_order_relaxed) <= bytes) wake();
}

void FetchWaiter::wake() {
  if (done_.exchange(true, std::memory_order_acq_rel)) return;
  // The timer belongs to the home shard.
  if (home_.is_current()) {
    timer_.cancel();
    home_.note_reader();
    return;
  }
  boost::asio::post(home_.executor(), [self = shared_from_this()] { self->timer_.cancel(); });
}

boost::asio::awaitable<void> FetchWaiter::wait_until(base::Clock::time_point deadline) {
  const auto self = shared_from_this();
  if (!done()) {
    timer_.expires_at(deadline);
    home_.add_sleeper(self);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    home_.remove_sleeper(self);
  }
  done_.store(true, std::memory_order_release);
}

}  // namespace broker
