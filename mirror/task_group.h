// Coroutines that run beside each other on one thread, counted, so that their owner can wait for
// all of them to end before it goes.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <string>
#include <utility>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace mirror {

class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor)
      : executor_(std::move(executor)), ended_(executor_) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // `what` names it in the log should it end by an exception.
  void spawn(const char* what, boost::asio::awaitable<void> task) {
    ++running_;
    boost::asio::co_spawn(executor_, std::move(task), [this, what](std::exception_ptr failure) {
      if (failure) report(what, failure);
      if (--running_ == 0) ended_.cancel();
    });
  }
  std::size_t running() const { return running_; }
  boost::asio::awaitable<void> wait() {
    while (running_ > 0) {
      ended_.expires_at(base::Clock::time_point::max());
      co_await ended_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
  }

 private:
  static void report(const char* what, const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      base::logger("mirror").error("{} ended by an exception: {}", what, e.what());
    }
  }

  boost::asio::any_io_executor executor_;
  base::Timer ended_;
  std::size_t running_ = 0;
};

// Runs `f`, a callable that gives an awaitable, on another executor and resumes the caller on its
// own.
template <class F>
auto run_on(boost::asio::any_io_executor executor, F f) -> std::invoke_result_t<F> {
  co_return co_await boost::asio::co_spawn(std::move(executor), std::move(f),
                                           boost::asio::use_awaitable);
}

}  // namespace mirror
