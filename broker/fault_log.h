// Peers' faults, at most one line in a while: a scanner on the port must not fill the disk.
#pragma once
#include <cstdint>
#include <string_view>

#include "protocol/base/clock.h"

namespace broker {

class FaultLog {
 public:
  void report(std::string_view peer, std::string_view what);
  std::uint64_t total() const { return total_; }

 private:
  base::Clock::time_point quiet_until_{};
  std::uint64_t suppressed_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace broker
