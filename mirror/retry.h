// Which failures of a mirrored partition are tried again, and when. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mirror {

// What went wrong, as the driver tells the machine. The classes are in retry_class().
enum class Failure : std::uint8_t {
  source_unreachable,  // no connection, no answer in time, no leader: nothing was said
  source_behind,       // its data are newer than its metadata: a batch's epoch is above its own
  source_error,        // the source answered with an error that may pass
  corrupt_batch,       // bytes that fail their checks: length, CRC, order, offsets
  local_error,         // our disk or our metadata store; also a full disk
  reverse_running,     // the source still mirrors this topic from us and is not STOPPED
  mirror_loop,         // the source mirrors this topic from us, and we it
  cluster_changed,     // the bootstrap servers lead to another cluster than the remembered one
  topic_recreated,     // same name, another topic: id changed, or log and epochs began anew
  topic_deleted,       // gone at the source in two consecutive complete listings
  log_diverged,        // the source lost records we hold, and we may not follow it there
  source_trimmed,      // the source deleted records before we had them, and the policy says stop
  epoch_exhausted,     // a leader epoch so large that ours could not be raised above it
  unsupported,         // this source or this topic cannot be mirrored (say, tiered here)
};
std::string_view name(Failure failure);

enum class RetryClass : std::uint8_t {
  // Tried for ever at the longest delay. A source that is down for a night must find its mirrors
  // running again without an operator; giving up would turn an outage there into one here. It costs
  // one connection attempt per broker and delay, since partitions share connections. The same holds
  // for metadata that are behind, and for our own disk: it is full and then not any more, or it is
  // repaired and the broker started again, and nobody should have to say so to each mirror.
  unbounded,
  // Given up after max_attempts: trying again is a guess, and an operator should know that it
  // fails.
  bounded,
  // Trying again could only do harm, or never succeeds: waits for Recover, Start or Stop.
  never,
};
RetryClass retry_class(Failure failure);

// What is said of Failure::cluster_changed, wherever it is found.
std::string cluster_changed_text(std::string_view remembered, std::string_view found);

struct RetrySettings {
  std::int64_t initial_ms = 100;
  std::int64_t cap_ms = 300'000;
  // While failing over: nobody waits minutes for that, and what fails is local.
  std::int64_t stopping_cap_ms = 5'000;
  // After a local failure: to look costs little, and the source may be trimmed meanwhile.
  std::int64_t local_cap_ms = 30'000;
  // The KIP's mirror.failed.retry.max.attempts. The failure with this number is final, so 0 and 1
  // both mean: no automatic retry at all.
  std::int32_t max_attempts = 20;
};

constexpr std::int32_t jitter_permille_max = 200;

// The wait after the n-th failure in a row (n >= 1): initial * 2^(n-1), at most `cap_ms`, shifted
// by the jitter in [-200, 200] per mille, so that partitions that failed together do not return
// together.
std::int64_t retry_delay_ms(std::int64_t initial_ms, std::int64_t cap_ms,
                            std::int32_t failures_in_a_row, std::int32_t jitter_permille);

}  // namespace mirror
