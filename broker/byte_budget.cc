#include "broker/byte_budget.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "protocol/base/check.h"

namespace broker {

namespace asio = boost::asio;

asio::awaitable<ByteBudget::Share> ByteBudget::take(std::uint64_t bytes) {
  const std::uint64_t wanted = std::min(bytes, total_);
  if (waiting_.empty() && wanted <= free_) {
    free_ -= wanted;
    co_return Share(this, wanted);
  }
  Waiter waiter(co_await asio::this_coro::executor, wanted);
  const auto at = waiting_.insert(waiting_.end(), &waiter);
  // The coroutine may be destroyed while it waits.
  struct Leave {
    ByteBudget* budget;
    std::list<Waiter*>::iterator place;
    Waiter* waiter;
    bool over = false;
    ~Leave() {
      if (over) return;
      if (waiter->done)
        budget->give_back(waiter->bytes);
      else
        budget->waiting_.erase(place);
    }
  } leave{this, at, &waiter};
  while (!waiter.done) co_await waiter.granted.async_wait(asio::as_tuple(asio::use_awaitable));
  leave.over = true;
  co_return Share(this, wanted);
}

ByteBudget::Share ByteBudget::try_take(std::uint64_t bytes) {
  if (!waiting_.empty() || bytes > free_) return {};
  free_ -= bytes;
  return Share(this, bytes);
}

void ByteBudget::give_back(std::uint64_t bytes) {
  free_ += bytes;
  CHECK(free_ <= total_);
  while (!waiting_.empty() && waiting_.front()->bytes <= free_) {
    Waiter* const first = waiting_.front();
    waiting_.pop_front();
    free_ -= first->bytes;
    first->done = true;
    first->granted.cancel();
  }
}

}  // namespace broker
