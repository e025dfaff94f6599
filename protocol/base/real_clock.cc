#include "protocol/base/clock.h"

namespace base {

Clock::time_point Clock::now() {
  return time_point(
      std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

Clock::duration Clock::wait_for(duration d) {
  return d;
}

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace base
