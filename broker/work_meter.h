// Measures the thread time that a coroutine takes, whatever else runs on its shard in between: it
// is run by an executor that looks at the thread's clock around each of its steps.
#pragma once
#include <time.h>

#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <cstdint>
#include <memory>
#include <utility>

namespace broker {

inline std::int64_t thread_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Steps of other shards, where the coroutine has work done, are not counted.
struct WorkMeter {
  std::int64_t nanoseconds = 0;
  bool running = false;
};

template <class Inner>
class MeteredExecutor {
  // A step inside one that is being measured counts with that.
  struct Step {
    explicit Step(WorkMeter& of)
        : meter(of), outermost(!std::exchange(of.running, true)), began(thread_time_ns()) {}
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
      if (!outermost) return;
      meter.running = false;
      meter.nanoseconds += thread_time_ns() - began;
    }
    WorkMeter& meter;
    bool outermost;
    std::int64_t began;
  };

 public:
  MeteredExecutor(Inner inner, std::shared_ptr<WorkMeter> meter)
      : inner_(std::move(inner)), meter_(std::move(meter)) {}

  template <class Function>
  void execute(Function&& function) const {
    auto step = [meter = meter_, work = std::forward<Function>(function)]() mutable {
      const Step measured(*meter);
      std::move(work)();
    };
    inner_.execute(std::move(step));
  }

  template <class Property>
  auto query(const Property& property) const
      -> decltype(boost::asio::query(std::declval<const Inner&>(), property)) {
    return boost::asio::query(inner_, property);
  }
  template <class Property>
  auto require(const Property& property) const
      -> MeteredExecutor<decltype(boost::asio::require(std::declval<const Inner&>(), property))> {
    return {boost::asio::require(inner_, property), meter_};
  }
  template <class Property>
  auto prefer(const Property& property) const
      -> MeteredExecutor<decltype(boost::asio::prefer(std::declval<const Inner&>(), property))> {
    return {boost::asio::prefer(inner_, property), meter_};
  }
  friend bool operator==(const MeteredExecutor& a, const MeteredExecutor& b) noexcept {
    return a.inner_ == b.inner_ && a.meter_ == b.meter_;
  }

 private:
  Inner inner_;
  std::shared_ptr<WorkMeter> meter_;
};

}  // namespace broker
