#include "mirror/retry.h"

#include <algorithm>

#include "mirror/mutation.h"
#include "protocol/base/check.h"

namespace mirror {

std::string_view name(Failure failure) {
  switch (failure) {
    case Failure::source_unreachable:
      return "source_unreachable";
    case Failure::source_behind:
      return "source_behind";
    case Failure::source_error:
      return "source_error";
    case Failure::corrupt_batch:
      return "corrupt_batch";
    case Failure::local_error:
      return "local_error";
    case Failure::reverse_running:
      return "reverse_running";
    case Failure::mirror_loop:
      return "mirror_loop";
    case Failure::cluster_changed:
      return "cluster_changed";
    case Failure::topic_recreated:
      return "topic_recreated";
    case Failure::topic_deleted:
      return "topic_deleted";
    case Failure::log_diverged:
      return "log_diverged";
    case Failure::source_trimmed:
      return "source_trimmed";
    case Failure::epoch_exhausted:
      return "epoch_exhausted";
    case Failure::unsupported:
      return "unsupported";
  }
  return "unknown";
}

RetryClass retry_class(Failure failure) {
  switch (failure) {
    case Failure::source_unreachable:
      return mutated(Mutation::give_up_unreachable) ? RetryClass::bounded : RetryClass::unbounded;
    case Failure::source_behind:
    case Failure::local_error:
      return RetryClass::unbounded;
    case Failure::source_error:
    case Failure::corrupt_batch:
    case Failure::reverse_running:
      return RetryClass::bounded;
    case Failure::mirror_loop:
    case Failure::cluster_changed:
    case Failure::topic_recreated:
    case Failure::topic_deleted:
    case Failure::log_diverged:
    case Failure::source_trimmed:
    case Failure::epoch_exhausted:
    case Failure::unsupported:
      return RetryClass::never;
  }
  return RetryClass::never;
}

std::string cluster_changed_text(std::string_view remembered, std::string_view found) {
  return "the address leads to cluster " + std::string(found) + ", the copy is of " +
         std::string(remembered) + ": give the mirror back its source, or stop it";
}

std::int64_t retry_delay_ms(std::int64_t initial_ms, std::int64_t cap_ms,
                            std::int32_t failures_in_a_row, std::int32_t jitter_permille) {
  CHECK(failures_in_a_row >= 1);
  CHECK(jitter_permille >= -jitter_permille_max && jitter_permille <= jitter_permille_max);
  std::int64_t delay = std::clamp<std::int64_t>(initial_ms, 1, std::max<std::int64_t>(cap_ms, 1));
  for (std::int32_t n = 1; n < failures_in_a_row && delay < cap_ms; ++n)
    delay = delay > cap_ms / 2 ? cap_ms : delay * 2;
  // Divided first: cap_ms is an operator's number and may be as large as it likes.
  return delay + delay / 1000 * jitter_permille + delay % 1000 * jitter_permille / 1000;
}

}  // namespace mirror
