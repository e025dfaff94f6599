// The bounds of what peers can make the broker hold or wait for.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace broker {

using namespace std::chrono_literals;

// A request's bytes, or an answer's, must move at least at this rate on top of the grace.
constexpr std::chrono::seconds transfer_grace = 30s;
constexpr std::uint64_t transfer_bytes_per_second_min = 64 * 1024;

// The request buffer of a connection that has been quiet for so long is given back.
constexpr std::chrono::seconds buffer_idle_max = 5s;
// All of a shard that are kept so: a client that goes on need not wait for memory, and many that
// have sent something large once do not hold it. Never more than requests may take.
constexpr std::uint64_t buffers_kept_max = 64ull << 20;
constexpr std::chrono::seconds sweep_interval = 1s;

// A long poll ends at the latest after this, whatever the client asked for.
constexpr std::chrono::minutes fetch_wait_max = 10min;

// Partitions that all fetch sessions of the broker remember together; a session takes about 200
// bytes for each.
constexpr std::size_t fetch_session_partitions_max = 1'000'000;

// A connection that sends requests ahead of their answers is read ahead up to here. It stays within
// a core's cache.
constexpr std::size_t read_ahead_bytes_max = 256 << 10;
// Requests that are handled together.
constexpr std::size_t requests_together_max = 16;

// Produce requests of one connection that wait for the disk, those that were handled together
// counted as one. Kafka's idempotent producer sends at most five ahead, librdkafka's plain one as
// many as it likes.
constexpr std::size_t answers_owed_max = 256;

// Of each shard. Syncs of different files at the same time share one commit of the file system's
// journal.
constexpr std::size_t disk_threads = 2;

// At the end of the broker, of each shard: its logs are closed by so many.
constexpr std::size_t closing_threads = 16;

// An answer with regions of files is copied together and sent with one call up to this size.
constexpr std::size_t assembled_bytes_max = 64 * 1024;
// In larger ones, smaller regions are copied.
constexpr std::uint32_t sendfile_bytes_min = 16 * 1024;

// Requests in memory when queued.max.request.bytes is -1, in largest requests.
constexpr std::uint64_t queued_requests_default = 4;

// At shutdown: how long requests that are under way may take.
constexpr std::chrono::seconds drain_max = 5s;

// A peer's faults are logged at most so often on a shard; the rest is counted.
constexpr std::chrono::seconds fault_log_interval = 1s;
constexpr std::chrono::seconds connection_wait_log_interval = 10s;

constexpr std::chrono::seconds tick_interval = 1s;

// Of internal topics. A segment is the unit of compaction, which holds up its shard: small ones
// keep the part that cannot be compacted yet, and with it the work of one compaction, small.
constexpr std::uint32_t internal_segment_bytes = 1 << 20;
// A log is compacted from this share on of bytes that came after the last time.
constexpr double compaction_dirty_ratio_min = 0.5;
// Memory for the keys of one compaction; what does not fit waits for the next.
constexpr std::size_t compaction_key_bytes_max = 16 << 20;

// A coordinator's log is read in pieces of this size, and written in batches of about this one. A
// record that is larger than the last is not written at all: the topic's own limit is not far.
constexpr std::int32_t coordinator_read_bytes = 1 << 20;
constexpr std::size_t coordinator_batch_bytes = 256 << 10;
constexpr std::size_t coordinator_record_bytes_max = 700 << 10;
// After a failure to write or to load.
constexpr std::chrono::seconds coordinator_reload_interval = 1s;

// A marker that could not be written is tried again after the first of these, then after twice as
// long each time.
constexpr std::chrono::milliseconds marker_retry_min = 100ms;
constexpr std::chrono::milliseconds marker_retry_max = 10s;
// Markers of one request that are written at the same time.
constexpr std::size_t markers_at_once = 256;
// The end of a transaction is answered when its markers are written, or after so long.
constexpr std::chrono::milliseconds markers_wait_max = 500ms;

// Clients of a shard whose use is remembered; beyond, those that have used nothing are forgotten.
constexpr std::size_t quota_buckets_max = 10'000;
// A Fetch of a client over its quota is begun after so long at the latest: clients give up on an
// answer after 30 s, as a rule.
constexpr std::chrono::seconds fetch_delay_max = 20s;

}  // namespace broker
