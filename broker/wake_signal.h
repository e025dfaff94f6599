// A condition that coroutines of one shard wait for. There is no lost wake-up: nothing else runs
// between the check of a condition and wait().
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>

#include "protocol/base/clock.h"

namespace broker {

class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Returns after the next notify_all(), or at `deadline`.
  boost::asio::awaitable<void> wait(
      base::Clock::time_point deadline = base::Clock::time_point::max()) {
    base::Timer timer(co_await boost::asio::this_coro::executor, deadline);
    const Entry entry(waiting_, timer);
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  void notify_all() {
    for (base::Timer* one : waiting_) one->cancel();
  }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Entry {
    Entry(std::list<base::Timer*>& all, base::Timer& timer)
        : list(all), at(all.insert(all.end(), &timer)) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { list.erase(at); }
    std::list<base::Timer*>& list;
    std::list<base::Timer*>::iterator at;
  };
  std::list<base::Timer*> waiting_;
};

}  // namespace broker
