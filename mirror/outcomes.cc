// What the driver reports, and what follows from it.
#include <algorithm>

#include "mirror/machine.h"
#include "mirror/mutation.h"
#include "mirror/transition.h"
#include "protocol/base/check.h"

namespace mirror {
namespace {

// Of two places where the shared history may end: whoever opened its log later saw more of it.
bool later(const Position& a, const Position& b) {
  return std::pair(a.epoch.value_or(-1), a.offset) > std::pair(b.epoch.value_or(-1), b.offset);
}

// As far as it can be raised: the driver of a hostile source must not make it wrap.
LeaderEpoch raised(LeaderEpoch epoch, LeaderEpoch by) {
  return epoch > INT32_MAX - by ? INT32_MAX : epoch + by;
}

}  // namespace

void Transition::take(const LogIs& e) {
  s_.log_start = e.log_start;
  s_.log_end = e.log_end;
  s_.last_epoch = e.last_epoch;
  s_.leader_epoch = e.leader_epoch;
}

void Transition::on(const LogIs& e) {
  using enum MirrorState;
  const Pending what = s_.pending;
  const Offset end_before = s_.log_end;
  take(e);
  if (what == Pending::truncate) s_.discarded += std::max<Offset>(0, end_before - s_.log_end);
  switch (s_.state) {
    case log_alignment:
      if (what != Pending::truncate) return align();
      s_.position.reset();  // the cut is confirmed: all that is left came from the source
      return proceed();
    case epoch_fencing:  // entered again after a restart: find out anew whether a bump is needed
      enter(mirroring);
      persist();
      return align();
    case ule_recovery:
      if (what == Pending::truncate && s_.log_end >= end_before)
        return fail(Failure::source_error, "the log could not be cut to where the source diverged");
      if (what == Pending::restart) return proceed();
      return align();  // the source may have more to say about an older epoch
    case mirroring:
      if (what == Pending::inspect) return align();
      return go_on();
    case stopping:
      return capture_position();
    default:
      CHECK(false && "no other state looks at the log");
  }
}

// ---- Aligning with the source.

void Transition::on(const Aligned& e) {
  s_.source_epoch = e.source_epoch;
  s_.source_log_start = e.source_log_start;
  if (e.source_epoch.value_or(0) > source_epoch_max)
    return fail(Failure::epoch_exhausted,
                "the source's leader epoch " + std::to_string(*e.source_epoch) + " is too large");
  if (s_.state == MirrorState::log_alignment)
    align_log(e);
  else
    compare_logs(e);
}

// Decides where the shared history ends and cuts the rest. Until the cut is confirmed the position
// stays in the state and in the record: a failure in between must not take the local tail for a
// copy.
void Transition::align_log(const Aligned& e) {
  if (e.reverse == Reverse::loop)
    return fail(Failure::mirror_loop,
                "Detected mirror loop for mirror: the source mirrors this topic from this cluster; "
                "stop one of the two mirrors, then recover this one");
  if (e.reverse == Reverse::not_stopped)
    return fail(Failure::reverse_running,
                "the source's own mirror of this topic from this cluster is not STOPPED yet");
  if (!s_.position) return proceed();
  if (e.reverse == Reverse::stopped && e.reverse_position &&
      later(*e.reverse_position, *s_.position))
    s_.position = e.reverse_position;
  persist();
  await(Pending::truncate, Truncate{.offset = s_.position->offset, .epoch = s_.position->epoch});
}

// All of the log came from the source. Does the source still have it?
void Transition::compare_logs(const Aligned& e) {
  const bool empty = s_.log_start == s_.log_end;
  if (!s_.last_epoch && e.source_log_start < s_.log_end && e.source_log_end < s_.log_end) {
    if (empty && e.same_topic_id)  // nothing to compare and nothing to lose
      return await(Pending::restart, RestartAt{e.source_log_start});
    return fail(Failure::source_error, "the source's log ends at " +
                                           std::to_string(e.source_log_end) +
                                           ", before the copy does, and has no leader epochs to "
                                           "compare");
  }
  if (s_.last_epoch && looks_recreated(e)) return suspect_recreated(e);
  s_.resets_seen = 0;
  if (s_.last_epoch && !e.epoch_end && e.source_log_start < s_.log_end)
    return follow_unclean_election(e.source_log_start, std::nullopt);
  if (s_.last_epoch && e.epoch_end) {
    if (e.epoch_end->epoch > *s_.last_epoch)
      return fail(Failure::source_error, "the source answered for a newer epoch than was asked");
    if (e.epoch_end->epoch < *s_.last_epoch || e.epoch_end->end_offset < s_.log_end)
      return follow_unclean_election(e.epoch_end->end_offset, e.epoch_end->epoch);
  }
  if (e.source_log_start > s_.log_end) return skip_trimmed();
  s_.in_touch = true;
  proceed();
}

// Leader epochs of a topic only rise, and a leader's log does not shrink within its epoch. Where
// they did, the topic began anew. A source that names no epochs is not trusted to have had an
// election.
bool Transition::looks_recreated(const Aligned& e) const {
  if (mutated(Mutation::ignore_reset_source)) return false;
  const LeaderEpoch source = e.source_epoch.value_or(-1);
  if (!e.epoch_end) return source < *s_.last_epoch;
  return e.epoch_end->epoch == *s_.last_epoch && e.epoch_end->end_offset < s_.log_end &&
         source <= *s_.last_epoch;
}

void Transition::suspect_recreated(const Aligned& e) {
  // A broker that is behind can look like this for a moment, so look more than once. Nothing is
  // fetched in between. With the same topic id it can be nothing else.
  constexpr std::int32_t sightings = 3;
  ++s_.resets_seen;
  const std::string text =
      "the source's leader epoch or log end is below what was copied of epoch " +
      std::to_string(*s_.last_epoch);
  if (e.same_topic_id || s_.resets_seen < sightings) return fail(Failure::source_error, text);
  fail(
      Failure::topic_recreated,
      text + ": the topic was deleted and created anew. Start it from scratch to copy the new one");
}

void Transition::follow_unclean_election(Offset offset, std::optional<LeaderEpoch> epoch) {
  if (!settings_.support_unclean_leader_election && !mutated(Mutation::follow_unclean_always))
    return fail(Failure::log_diverged,
                "the source lost records from offset " + std::to_string(offset) +
                    " on, which the copy holds (an unclean leader election); stop and delete the "
                    "mirror, and create it with support.unclean.leader.election=true, to copy the "
                    "topic anew without them");
  if (s_.state != MirrorState::ule_recovery) {
    enter(MirrorState::ule_recovery);
    persist();
  }
  if (mutated(Mutation::cut_to_source_end_only)) epoch.reset();
  await(Pending::truncate, Truncate{.offset = offset, .epoch = epoch});
}

// The source deleted records before they were copied. Never silent: the range is remembered before
// the log is restarted behind it.
void Transition::skip_trimmed() {
  const Offset to = s_.source_log_start;
  const std::string range = "[" + std::to_string(s_.log_end) + ", " + std::to_string(to) + ")";
  if (settings_.on_source_trimmed == TrimPolicy::fail)
    return fail(Failure::source_trimmed,
                "the source deleted offsets " + range + " before they were copied");
  const bool empty = s_.log_start == s_.log_end;
  // An empty log at offset 0 was never begun: then the source's log start is simply where to begin.
  if (s_.log_end > 0 && !mutated(Mutation::ignore_trim)) {
    const bool continued =
        s_.skipped && (s_.skipped->from == s_.log_end || (empty && s_.skipped->to == s_.log_end));
    s_.skipped = SkippedRange{continued ? s_.skipped->from : s_.log_end, to};
    persist();
  }
  await(Pending::restart, RestartAt{to});
}

// ---- Fencing.

LeaderEpoch Transition::bump_target() const {
  return raised(std::max(s_.source_epoch.value_or(-1), s_.last_epoch.value_or(-1)),
                epoch_bump_increment);
}

bool Transition::bump_needed() const {
  const LeaderEpoch source = std::max(s_.source_epoch.value_or(-1), s_.last_epoch.value_or(-1));
  return source > s_.leader_epoch - epoch_bump_threshold;
}

// Both logs agree, or will after the first look from MIRRORING.
void Transition::proceed() {
  if (bump_needed()) {  // a reader with the source's epoch must never meet a lower one here
    enter(MirrorState::epoch_fencing);
    persist();
    return bump(bump_target());
  }
  if (s_.state != MirrorState::mirroring) {
    enter(MirrorState::mirroring);
    persist();
  }
  go_on();
}

void Transition::go_on() {
  if (!s_.in_touch) return align();
  if (bump_needed()) return bump(bump_target());  // ahead of need: fetching goes on afterwards
  fetch();
}

void Transition::on(const EpochBumped& e) {
  s_.leader_epoch = e.epoch;
  if (s_.state == MirrorState::stopping) {
    if (mutated(Mutation::markers_before_bump))
      return await(Pending::reset, WriteProducerIdReset{});
    return write_markers();
  }
  if (bump_needed())
    return fail(Failure::local_error, "the leader epoch was not raised as far as asked");
  if (s_.state == MirrorState::epoch_fencing) {
    enter(MirrorState::mirroring);
    persist();
  }
  go_on();
}

// ---- Copying.

void Transition::on(const Fetched& e) {
  s_.source_log_start = std::max(s_.source_log_start, e.source_log_start);
  if (e.next_offset <= s_.log_end)
    return fail(Failure::source_error, "the source sent records that the copy already has");
  if (e.last_epoch.value_or(-1) > source_epoch_max)
    return fail(Failure::epoch_exhausted,
                "a batch's leader epoch " + std::to_string(*e.last_epoch) + " is too large");
  // Old brokers raise the epoch before their metadata show it. Never append blindly: ask first.
  if (s_.source_epoch && e.last_epoch.value_or(-1) > *s_.source_epoch)
    return look_again(Failure::source_behind,
                      "a batch's leader epoch " + std::to_string(*e.last_epoch) +
                          " is above the source's own " + std::to_string(*s_.source_epoch));
  if (e.last_epoch.value_or(-1) > s_.leader_epoch &&
      !mutated(Mutation::append_above_leader_epoch)) {
    enter(MirrorState::epoch_fencing);  // the bytes are fetched again behind the bump
    persist();
    return bump(raised(*e.last_epoch, epoch_bump_increment));
  }
  await(Pending::append, Append{});
}

void Transition::on(const NothingNew& e) {
  s_.source_log_start = std::max(s_.source_log_start, e.source_log_start);
  fetched_something();
}

void Transition::on(const Appended& e) {
  s_.log_end = e.log_end;
  s_.last_epoch = e.last_epoch;
  fetched_something();
}

void Transition::fetched_something() {
  s_.refusals = 0;
  s_.failures = 0;
  if (s_.retry_attempt != 0 || !s_.error.empty()) {  // once, not with every fetch
    clear_failure();
    persist();
  }
  const Offset start = std::min(s_.source_log_start, s_.log_end);
  if (start > s_.log_start) return await(Pending::log_start, AdvanceLogStart{start});
  go_on();
}

void Transition::on(const FetchRefused& e) {
  look_again(Failure::source_error, "the source refused the fetch: " + e.text);
}

// The first time ask the source afresh, at once: a moved leader needs no more. The second time
// without a fetch in between it is a failure with a delay, or this would be a busy loop.
void Transition::look_again(Failure failure, std::string text) {
  s_.in_touch = false;
  if (++s_.refusals == 1) return align();
  fail(failure, std::move(text));
}

// ---- Failing over. Nothing of ours was written yet when the position is captured, and it is
// durable before anything is: it says for ever where the source's history ends.

void Transition::capture_position() {
  if (!s_.position || mutated(Mutation::position_not_frozen)) {
    // Before the position is durable, so that after a crash in between it is done again.
    if (!mutated(Mutation::skip_settle_groups)) actions_.push_back(SettleGroups{});
    s_.position = Position{.epoch = s_.last_epoch, .offset = s_.log_end};
    if (!mutated(Mutation::position_not_persisted)) persist();
  }
  if (mutated(Mutation::skip_bump_at_stop)) return write_markers();
  if (mutated(Mutation::markers_before_bump)) return write_markers();
  bump_for_writing();
}

// Above every epoch that is in the log, that the source is known to have used, and our own so far.
void Transition::bump_for_writing() {
  LeaderEpoch newest = std::max(s_.leader_epoch, s_.last_epoch.value_or(-1));
  newest = std::max({newest, s_.source_epoch.value_or(-1), s_.position->epoch.value_or(-1)});
  bump(raised(newest, 1));
}

void Transition::write_markers() {
  if (mutated(Mutation::skip_abort_markers)) return await(Pending::reset, WriteProducerIdReset{});
  await(Pending::markers, WriteAbortMarkers{});
}

void Transition::on(const MarkersWritten&) {
  if (mutated(Mutation::markers_before_bump)) return bump_for_writing();
  if (mutated(Mutation::skip_producer_reset)) return open();
  await(Pending::reset, WriteProducerIdReset{});
}

void Transition::on(const ResetWritten&) {
  // If opening is reported as failed, clients may be writing all the same: from here on only the
  // opening is repeated, or their transactions would be aborted.
  s_.barrier_written = true;
  open();
}

// ---- The rest.

void Transition::on(const Done&) {
  using enum MirrorState;
  const Pending what = s_.pending;
  s_.pending = Pending::nothing;
  if (s_.state == pausing) enter(paused);
  if (what == Pending::open) enter(stopped);
  if (s_.state == stopped) clear_failure();
  if (what == Pending::forget) {
    enter(unknown);
    s_.position = Position{};
    s_.skipped.reset();
  }
}

void Transition::on(const RetryDue&) {
  using enum MirrorState;
  switch (s_.state) {
    case stopping:
      return s_.barrier_written ? open() : start_stopping();
    case pausing:
      return pause();
    case stopped:
      if (s_.forgetting) return forget();
      actions_.push_back(AllowWrites{});  // after a restart it could not be opened
      return settle();
    case failed:
      if (will_retry()) return try_again();
      persist();  // a final failure whose record could not be written
      return settle();
    default:
      CHECK(false && "no other state waits");
  }
}

void Transition::on(const Failed& e) {
  fail(e.failure, e.text);
}

void Transition::on(const Timeout&) {
  const bool source = s_.pending == Pending::align || s_.pending == Pending::fetch;
  fail(source ? Failure::source_unreachable : Failure::local_error,
       source ? "the source did not answer in time" : "a local action did not end in time");
}

}  // namespace mirror
