// A shard: one thread with its io_context, the partitions and connections that belong to it, and
// disk threads for what waits for the device. Only the shard's own thread touches what is in it.
#pragma once
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "broker/bounds.h"
#include "broker/byte_budget.h"
#include "broker/catalog.h"
#include "broker/wake_signal.h"
#include "protocol/base/clock.h"
#include "protocol/base/ids.h"

namespace broker {

class FetchSessions;
class FetchWaiter;
class Partition;

class Shard {
 public:
  using Executor = boost::asio::io_context::executor_type;

  Shard(std::size_t index, std::uint64_t request_bytes_max);
  ~Shard();

  // Starts all threads. stop() ends them: work still queued is dropped. Not from a shard's thread.
  void start();
  void stop();

  std::size_t index() const { return index_; }
  Executor executor() { return io_.get_executor(); }
  boost::asio::io_context& io() { return io_; }
  // Whether the caller runs on this shard's thread.
  bool is_current() const { return current() == this; }
  static Shard* current();

  // Shard's thread only:

  // nullptr: not here (another shard's, deleted, not yet open).
  std::shared_ptr<Partition> find(const base::TopicPartition& id) const;
  void add(std::shared_ptr<Partition> partition);
  void remove(const base::TopicPartition& id);
  const std::unordered_map<base::TopicPartition, std::shared_ptr<Partition>>& partitions() const {
    return partitions_;
  }
  const SnapshotPtr& catalog() const { return catalog_; }
  void set_catalog(SnapshotPtr snapshot) { catalog_ = std::move(snapshot); }
  // Bytes of requests that may be in memory at once.
  ByteBudget& budget() { return budget_; }
  ByteBudget& kept_buffers() { return kept_buffers_; }

  // The sessions that this shard's connections began.
  FetchSessions& fetch_sessions() { return *fetch_sessions_; }
  void set_fetch_sessions(std::unique_ptr<FetchSessions> sessions);

  // Long polls of this shard's connections. begin_stop() wakes them and every later one.
  void add_sleeper(std::shared_ptr<FetchWaiter> waiter);
  void remove_sleeper(const std::shared_ptr<FetchWaiter>& waiter);
  void begin_stop();
  bool stopping() const { return stopping_; }
  // Notified by begin_stop(): loops wait for it between their rounds.
  Signal& stop_signal() { return stop_signal_; }

  // A long poll of this shard found its records just now, by what runs.
  void note_reader() { reader_is_ready_ = true; }
  // Lets it answer before what else there is to do about these records.
  boost::asio::awaitable<void> readers_first();

  // Returns when everything that is ready on this shard, also what sockets have received, had its
  // turn.
  boost::asio::awaitable<void> others_first();

  // Runs `f` (blocking) on a disk thread, beside others, and answers its result, or throws what it
  // threw. The queue is bounded by its users: one sync a partition, one checkpoint, one deletion at
  // a time. One handler there and one here: a coroutine of its own would cost more changes of
  // thread than the work.
  template <class F>
  boost::asio::awaitable<std::invoke_result_t<F>> on_disk(F f) {
    using Result = std::invoke_result_t<F>;
    const auto start = [this](auto handler, F work) {
      const auto executor = boost::asio::get_associated_executor(handler, io_.get_executor());
      auto run = [home = executor, work = std::move(work), handler = std::move(handler)]() mutable {
        std::exception_ptr failure;
        Result result;
        try {
          result = work();
        } catch (...) {
          failure = std::current_exception();
        }
        boost::asio::post(
            home, [handler = std::move(handler), failure, result = std::move(result)]() mutable {
              std::move(handler)(failure, std::move(result));
            });
      };
      boost::asio::post(disk_.get_executor(), std::move(run));
    };
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>,
                                       void(std::exception_ptr, Result)>(
        start, boost::asio::use_awaitable, std::move(f));
  }

 private:
  std::size_t index_;
  ByteBudget budget_, kept_buffers_;
  SnapshotPtr catalog_ = std::make_shared<Snapshot>();
  std::unordered_map<base::TopicPartition, std::shared_ptr<Partition>> partitions_;
  std::unordered_set<std::shared_ptr<FetchWaiter>> sleepers_;
  std::unique_ptr<FetchSessions> fetch_sessions_;
  bool stopping_ = false;
  bool reader_is_ready_ = false;
  Signal stop_signal_;
  // Last, so that what still waits in them is destroyed before what it refers to.
  boost::asio::io_context io_{1};
  boost::asio::io_context disk_{disk_threads};
  boost::asio::executor_work_guard<Executor> io_work_;
  boost::asio::executor_work_guard<Executor> disk_work_;
  std::thread io_thread_;
  std::array<std::thread, disk_threads> disk_threads_;
};

// Runs `f`, a callable that gives an awaitable, on the shard that owns the data and resumes the
// caller on its own shard. Name `f` before the co_await expression (docs/decisions.md, compiler).
template <class F>
std::invoke_result_t<F> on(Shard& target, F f) {
  if (target.is_current()) co_return co_await f();
  co_return co_await boost::asio::co_spawn(target.executor(), std::move(f),
                                           boost::asio::use_awaitable);
}

template <class T>
struct Job {
  Shard* shard;
  std::function<boost::asio::awaitable<T>()> run;
};

// Runs every job on its shard, all at once, and answers their results in the order given. The
// caller must run on a shard. What a job throws is thrown here, after all have ended.
template <class T>
boost::asio::awaitable<std::vector<T>> on_each(std::vector<Job<T>> jobs) {
  std::vector<T> results;
  results.reserve(jobs.size());
  if (jobs.size() == 1) {
    results.push_back(co_await on(*jobs[0].shard, jobs[0].run));
    co_return results;
  }
  struct State {
    State(boost::asio::any_io_executor home, std::size_t count)
        : done(home, base::Clock::time_point::max()), results(count), left(count) {}
    base::Timer done;
    std::vector<std::optional<T>> results;
    std::size_t left;
    std::exception_ptr failure;
  };
  const auto home = co_await boost::asio::this_coro::executor;
  const auto state = std::make_shared<State>(home, jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto finished = [state, i](std::exception_ptr failure, T result) {
      if (failure) state->failure = failure;
      state->results[i] = std::move(result);
      if (--state->left == 0) state->done.cancel();
    };
    boost::asio::co_spawn(jobs[i].shard->executor(), jobs[i].run,
                          boost::asio::bind_executor(home, std::move(finished)));
  }
  while (state->left > 0)
    co_await state->done.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (state->failure) std::rethrow_exception(state->failure);
  for (auto& one : state->results) results.push_back(std::move(*one));
  co_return results;
}

}  // namespace broker
