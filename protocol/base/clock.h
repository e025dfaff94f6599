// The clocks, one of the seams that simulation replaces at link time: the product links
// real_clock.cc, a simulation its own body.
#pragma once
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>
#include <chrono>
#include <cstdint>

namespace base {

// Monotonic. All timers and deadlines use it, never the wall clock.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static time_point now();
  // How long the reactor may really sleep for a wait of `d`; a simulation answers zero.
  static duration wait_for(duration d);
};

// Milliseconds since the Unix epoch: for timestamps in records and files only.
std::int64_t wall_clock_ms();

}  // namespace base

template <>
struct boost::asio::wait_traits<base::Clock> {
  static base::Clock::duration to_wait_duration(const base::Clock::duration& d) {
    return base::Clock::wait_for(d);
  }
  static base::Clock::duration to_wait_duration(const base::Clock::time_point& t) {
    return base::Clock::wait_for(t - base::Clock::now());
  }
};

namespace base {
using Timer = boost::asio::basic_waitable_timer<Clock>;
}
