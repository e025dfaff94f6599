// The life of one mirrored partition, as a pure function: step(state, event) -> (state, actions).
//
// How a driver runs it
//   One coroutine per partition, on the partition's shard, holds the State. For each Step it
//   performs the actions IN ORDER and reports exactly ONE outcome event, with the ticket of that
//   step's state:
//     - the outcome named at the last action of the list, or Done where that action names none;
//     - Failed as soon as any action fails; the actions behind it are then NOT performed.
//   The next action begins only when the one before is finished, and a Persist is finished when it
//   is durable. A step without actions leaves the work under way alone and expects no further
//   outcome. Commands may come at any time. When a step brings a new ticket while older actions are
//   under way: actions not yet begun are dropped, a waiting Fetch or Align or retry timer is
//   cancelled, anything else under way (an append, a cut) is finished first. Outcomes of older
//   tickets may still be reported: the machine ignores them. Bytes of a Fetch are forgotten with
//   its ticket. While deadline(state) is not `none` the driver arms that timer for the ticket and
//   reports Timeout.
//
// What the machine relies on
//   A partition of a mirrored topic refuses writes until AllowWrites, and again after every
//   restart. Bytes stay with the driver: events carry offsets and epochs only. After anything
//   unclear the machine asks Inspect instead of trusting its memory: the log knows.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mirror/retry.h"
#include "mirror/states.h"
#include "protocol/base/ids.h"

namespace mirror {

using base::LeaderEpoch;
using base::Offset;
using Ticket = std::uint64_t;

// Where the history shared with the source ends: the epoch of the last shared batch and the offset
// behind it. No epoch: nothing is shared (or the batches are of a format without epochs).
struct Position {
  std::optional<LeaderEpoch> epoch = {};
  Offset offset = 0;
  bool operator==(const Position&) const = default;
};

// Offsets [from, to) that the source had deleted before we could copy them. Never silent: shown by
// describe until the mirror is started anew.
struct SkippedRange {
  Offset from = 0, to = 0;
  bool operator==(const SkippedRange&) const = default;
};

// What is persisted of a partition. Persist writes all of it, in one atomic durable write: the
// KIP's MirrorPartitionState and LastMirrorEpochs (position; absent: a tombstone; no epoch: epoch
// -1 with the offset 0 or more, which differs from absent). `skipped` has no field in the KIP: a
// tagged field.
struct Record {
  MirrorState state = MirrorState::unknown;
  MirrorState previous_state = MirrorState::unknown;  // before FAILED
  std::int32_t retry_attempt = 0;  // 0 never failed, 1.. failures so far, -1 not retried
  std::string error = {};          // of the last failure, one sentence; empty if none
  // Present: the log may hold batches that are not the source's, all of them at or behind this
  // position. Absent: the whole log was copied from the source.
  std::optional<Position> position = {};
  std::optional<SkippedRange> skipped = {};
  bool operator==(const Record&) const = default;
};

// The action whose outcome is awaited.
enum class Pending : std::uint8_t {
  nothing,
  inspect,
  align,
  truncate,
  restart,
  fetch,
  append,
  log_start,
  bump,
  markers,
  reset,
  settle,  // a list that ends with an action without an outcome of its own
  open,    // the list that ends STOPPING
  forget,
  retry,
};

struct State {
  MirrorState state = MirrorState::unknown;
  MirrorState previous_state = MirrorState::unknown;
  std::int32_t retry_attempt = 0;
  std::string error = {};
  std::optional<Position> position = Position{};
  std::optional<SkippedRange> skipped = {};

  bool leading = false;  // from Restore to LeadershipLost; else only Restore is heeded
  Ticket ticket = 0;
  Pending pending = Pending::nothing;

  // The log, as last reported.
  Offset log_start = 0;
  Offset log_end = 0;                          // next offset to copy
  std::optional<LeaderEpoch> last_epoch = {};  // of the last batch
  LeaderEpoch leader_epoch = 0;                // of this partition here

  // The source, as last reported.
  std::optional<LeaderEpoch> source_epoch = {};  // absent: the source names none
  Offset source_log_start = 0;

  bool in_touch = false;         // aligned since the last Inspect, so that fetching may go on
  std::int32_t refusals = 0;     // fetches refused since the last one that was not
  std::int32_t resets_seen = 0;  // answers in a row that look like a re-created topic
  std::int32_t failures = 0;     // in a row, for the delay
  std::optional<Failure> last_failure = {};  // since the last success
  bool barrier_written = false;              // failing over: nothing is left to do but to open
  bool forgetting = false;                   // STOPPED, and its record is to go
  std::int64_t discarded = 0;  // offsets cut away by alignment and recovery, for describe

  bool operator==(const State&) const = default;
};

// ---- Commands. Safe at any time and in any state; one that makes no sense there changes nothing,
// and reconcile asks again for as long as desired and actual state differ.

// After a restart or on becoming leader, first of all: what was persisted, if anything. Transient
// states are entered again from their beginning. `leader_epoch` must already be this leadership's
// own.
struct Restore {
  std::optional<Record> record = {};
  LeaderEpoch leader_epoch = 0;
};
struct LeadershipLost {};  // also before the partition is dropped from this broker
// From UNKNOWN, STOPPED, FAILED. `adopt`: the local log is a copy made by other means, and is
// compared instead of cut. `from_scratch`: forget what is here and copy everything.
struct Start {
  bool adopt = false, from_scratch = false;
};
struct Pause {};
struct Resume {};
// Fail over: make the partition writable here. Accepted in every state, needs no source.
struct Stop {};
// From FAILED: forget the count and try now.
struct Recover {};
// The source is reachable again, or its metadata have followed its data: partitions that failed for
// want of that do not wait for their delay.
struct SourceReturned {};
// The source's leader epoch as periodic metadata show it, for the bump ahead of need.
struct SourceEpochSeen {
  LeaderEpoch epoch = 0;
};
// By reconcile: what it sees of the topic as a whole.
struct MarkFailed {
  Failure failure = Failure::unsupported;
  std::string text = {};
};
struct DeleteMirror {};  // STOPPED only: the record goes, the partition is an ordinary one

// ---- Outcomes.

// After Inspect, Truncate, RestartAt and AdvanceLogStart: the log as it is now.
struct LogIs {
  Ticket ticket = 0;
  Offset log_start = 0, log_end = 0;
  std::optional<LeaderEpoch> last_epoch =
      {};  // of the last batch; absent: empty, or without epochs
  LeaderEpoch leader_epoch = 0;
};

struct EpochEnd {
  LeaderEpoch epoch = 0;
  Offset end_offset = 0;
  bool operator==(const EpochEnd&) const = default;
};
// What the source says of mirrors that it has from our cluster (by our cluster id), for this
// partition.
enum class Reverse : std::uint8_t {
  unsupported,  // an old source, or any without cluster mirrors: such a mirror cannot be
  none,
  loop,         // such a mirror is MIRRORING or PAUSED
  not_stopped,  // in another state than STOPPED
  stopped,      // it was failed over; reverse_position says where
};
struct Aligned {
  Ticket ticket = 0;
  bool same_topic_id = false;                    // the source has topic ids, and it is ours
  std::optional<LeaderEpoch> source_epoch = {};  // from its newest metadata
  Offset source_log_start = 0;
  Offset source_log_end = 0;               // its high watermark
  std::optional<EpochEnd> epoch_end = {};  // for Align::epoch; absent: not asked, or undefined (-1)
  Reverse reverse = Reverse::unsupported;  // only when asked
  std::optional<Position> reverse_position = {};  // largest over such mirrors
};

// A response with whole, checked batches that follow log_end: length, CRC, offsets rising from
// Fetch::offset, epochs not falling. The first may begin before Fetch::offset if it covers it and
// the log is empty (a log start inside a batch). What fails a check is Failed{corrupt_batch}.
struct Fetched {
  Ticket ticket = 0;
  Offset next_offset = 0;                      // behind the last batch
  std::optional<LeaderEpoch> last_epoch = {};  // of the last batch
  Offset source_log_start = 0;
};
struct NothingNew {
  Ticket ticket = 0;
  Offset source_log_start = 0;
};
// The source does not accept the position or our knowledge of it: OFFSET_OUT_OF_RANGE, a diverging
// epoch, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER. Nothing of such a response counts,
// neither its high watermark nor its log start.
struct FetchRefused {
  Ticket ticket = 0;
  std::string text = {};
};
struct Appended {
  Ticket ticket = 0;
  Offset log_end = 0;
  std::optional<LeaderEpoch> last_epoch = {};
};
struct EpochBumped {
  Ticket ticket = 0;
  LeaderEpoch epoch = 0;
};
struct MarkersWritten {
  Ticket ticket = 0;
};
struct ResetWritten {
  Ticket ticket = 0;
};
// The list ended with an action that names no outcome of its own.
struct Done {
  Ticket ticket = 0;
};
// ScheduleRetry's delay is over.
struct RetryDue {
  Ticket ticket = 0;
};
struct Failed {
  Ticket ticket = 0;
  Failure failure = Failure::local_error;
  std::string text = {};
};
// deadline(state) has passed.
struct Timeout {
  Ticket ticket = 0;
};

using Event = std::variant<Restore, LeadershipLost, Start, Pause, Resume, Stop, Recover,
                           SourceReturned, SourceEpochSeen, MarkFailed, DeleteMirror, LogIs,
                           Aligned, Fetched, NothingNew, FetchRefused, Appended, EpochBumped,
                           MarkersWritten, ResetWritten, Done, RetryDue, Failed, Timeout>;

// ---- Actions. Behind "->" the outcome to report.

// From now on clients' appends are refused; those under way are finished first.
struct RefuseWrites {};
// Clients may append, with the current leader epoch.
struct AllowWrites {};
// Durable before the next action.
struct Persist {
  Record record;
};
// Tombstones for both records, the state's first. Durable before the next action.
struct Forget {};
// -> LogIs. Flushes the log first: a position derived from it must not outlive its data.
struct Inspect {};
// -> Aligned. With fresh metadata of the source. Before anything else the driver checks the cluster
// id it is connected to and the topic's id against the remembered ones, here and at every reconnect
// (-> Failed{cluster_changed | topic_recreated}). `epoch`: ask OffsetForLeaderEpoch for it.
// Questions of many partitions go in one request. `look_up_reverse`: ask for mirrors from our
// cluster as well, once per mirror and not per partition; an API that the source lacks is
// Reverse::unsupported.
struct Align {
  std::optional<LeaderEpoch> epoch = {};
  bool look_up_reverse = false;
};
// -> LogIs. Cuts to the lesser of `offset` and, with `epoch`, the local end of that epoch (the end
// of the last batch whose epoch is not above it; the log start if there is none), by whole batches:
// one that straddles the point goes. A point below the log start empties the log, which then starts
// there. Finished when durable, here and on every local replica.
struct Truncate {
  Offset offset = 0;
  std::optional<LeaderEpoch> epoch = {};
};
// -> LogIs. Drops everything, the log then starts and ends there. Durable.
struct RestartAt {
  Offset offset = 0;
};
// -> Fetched | NothingNew | FetchRefused. A consumer's fetch (replica id -1, READ_UNCOMMITTED),
// with last_epoch as LastFetchedEpoch and source_epoch as CurrentLeaderEpoch where the source knows
// these. An answer without data comes after the source's long poll, or after the driver's own wait:
// no busy loop.
struct Fetch {
  Offset offset = 0;
  std::optional<LeaderEpoch> last_epoch = {}, source_epoch = {};
};
struct Append {};  // -> Appended. The bytes of the last Fetched, verbatim, at the end of the log
// -> LogIs. Raises the log start, at most to the high watermark; the rest comes with a later fetch.
struct AdvanceLogStart {
  Offset offset = 0;
};
// -> EpochBumped. Raises our leader epoch to `at_least` or more, durably, never lowers it.
struct BumpEpoch {
  LeaderEpoch at_least = 0;
};
// Once per failover, while all that the log holds is the source's and nothing is fetched any more:
// the source's committed group offsets are taken over for the last time, no further than the log
// goes. Never fails, and never waits long: a source that does not answer is passed over.
struct SettleGroups {};
// -> MarkersWritten. One ABORT marker for each transaction still open here, with the current leader
// epoch; durable. None open: nothing to write.
struct WriteAbortMarkers {};
struct WriteProducerIdReset {};  // -> ResetWritten. The MIRROR_PID_RESET control record; durable
// -> RetryDue. Jitter is already in it.
struct ScheduleRetry {
  std::int64_t delay_ms = 0;
};

using Action = std::variant<RefuseWrites, AllowWrites, Persist, Forget, Inspect, Align, Truncate,
                            RestartAt, Fetch, Append, AdvanceLogStart, BumpEpoch, SettleGroups,
                            WriteAbortMarkers, WriteProducerIdReset, ScheduleRetry>;

enum class TrimPolicy : std::uint8_t { fast_forward, fail };

// Read anew for every step, so that a changed setting holds from the next event on.
struct Settings {
  RetrySettings retry;
  bool support_unclean_leader_election = false;  // mirror.support.unclean.leader.election
  // The source deleted records before we had them: go on at its log start and say so, or stop.
  TrimPolicy on_source_trimmed = TrimPolicy::fast_forward;
};

struct Step {
  State state;
  std::vector<Action> actions;
};
// `jitter_permille`: drawn by the driver, uniform in [-200, 200].
Step step(State state, const Event& event, const Settings& settings,
          std::int32_t jitter_permille = 0);

// Which of the driver's timers to arm for the ticket; it covers the whole list of actions, up to
// the moment at which ScheduleRetry begins to wait. `source`: the request timeout plus the long
// poll; `local`: disk and metadata store (some ten seconds).
enum class Deadline : std::uint8_t { none, source, local };
Deadline deadline(const State& state);

// The record that Persist would write for this state.
Record record_of(const State& state);

// KIP-1279: our epoch is raised by this much when the source's comes this near.
constexpr LeaderEpoch epoch_bump_increment = 10;
constexpr LeaderEpoch epoch_bump_threshold = 3;
// Above this the source's epochs are refused, so that ours can always be raised beyond.
constexpr LeaderEpoch source_epoch_max = INT32_MAX - 1024;

}  // namespace mirror
