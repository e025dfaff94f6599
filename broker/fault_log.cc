#include "broker/fault_log.h"

#include <utility>

#include "broker/bounds.h"
#include "protocol/base/log.h"

namespace broker {

void FaultLog::report(std::string_view peer, std::string_view what) {
  ++total_;
  const auto now = base::Clock::now();
  if (now < quiet_until_) {
    ++suppressed_;
    return;
  }
  quiet_until_ = now + fault_log_interval;
  auto& log = base::logger("connection");
  if (const auto more = std::exchange(suppressed_, 0); more > 0)
    log.warn("{}: {}; connection closed ({} more such lines left out)", peer, what, more);
  else
    log.warn("{}: {}; connection closed", peer, what);
}

}  // namespace broker
