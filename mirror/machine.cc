// Commands, failures, and what each state begins with. What the driver reports back is in
// outcomes.cc.
#include "mirror/machine.h"

#include <algorithm>
#include <type_traits>

#include "mirror/mutation.h"
#include "mirror/transition.h"
#include "protocol/base/check.h"

namespace mirror {

Record record_of(const State& state) {
  return {.state = state.state,
          .previous_state = state.previous_state,
          .retry_attempt = state.retry_attempt,
          .error = state.error,
          .position = state.position,
          .skipped = state.skipped};
}

// ---- What a list of actions ends with.

void Transition::await(Pending pending, Action action) {
  ++s_.ticket;
  s_.pending = pending;
  actions_.push_back(std::move(action));
}

void Transition::settle() {
  ++s_.ticket;
  s_.pending = Pending::settle;
}

void Transition::inspect() {
  s_.in_touch = false;
  await(Pending::inspect, Inspect{});
}

void Transition::align() {
  // While local batches may be in the log its last epoch says nothing about the source.
  if (s_.state == MirrorState::log_alignment)
    await(Pending::align, Align{.epoch = std::nullopt, .look_up_reverse = true});
  else
    await(Pending::align, Align{.epoch = s_.last_epoch, .look_up_reverse = false});
}

void Transition::fetch() {
  await(Pending::fetch,
        Fetch{.offset = s_.log_end, .last_epoch = s_.last_epoch, .source_epoch = s_.source_epoch});
}

void Transition::bump(LeaderEpoch at_least) {
  await(Pending::bump, BumpEpoch{at_least});
}

void Transition::open() {
  Record record = record_of(s_);
  record.state = MirrorState::stopped;
  ++s_.ticket;
  s_.pending = Pending::open;
  // Remembered first, opened second: after a crash in between, a writable log that still counts as
  // STOPPING would have its clients' transactions aborted.
  actions_.push_back(Persist{std::move(record)});
  actions_.push_back(AllowWrites{});
  if (mutated(Mutation::allow_before_persist)) std::swap(actions_[0], actions_[1]);
}

void Transition::forget() {
  await(Pending::forget, Forget{});
}

void Transition::schedule_retry(std::int64_t cap_ms) {
  await(Pending::retry, ScheduleRetry{retry_delay_ms(settings_.retry.initial_ms, cap_ms,
                                                     s_.failures, jitter_permille_)});
}

// ---- Entering states.

void Transition::enter(MirrorState to) {
  CHECK(legal_transition(s_.state, to));
  s_.state = to;
}

// In every list that may supersede the one of Start before it was begun: whatever comes next,
// clients of a partition that was writable are refused first.
void Transition::refuse_writes() {
  if (!mutated(Mutation::skip_refuse_writes)) actions_.push_back(RefuseWrites{});
}

void Transition::persist() {
  actions_.push_back(Persist{record_of(s_)});
}

// The new ticket has taken the fetch away; both records are written, so that whoever reads them
// sees the way the KIP describes.
void Transition::pause() {
  refuse_writes();
  persist();
  Record record = record_of(s_);
  record.state = MirrorState::paused;
  actions_.push_back(Persist{std::move(record)});
  settle();
}

// Also the way back in after a crash or a failure: nothing here may depend on how far it came
// before, and nothing here may ask the source.
void Transition::start_stopping() {
  refuse_writes();
  persist();
  inspect();
}

void Transition::try_again() {
  using enum MirrorState;
  switch (s_.previous_state) {
    case pausing:
    case paused:
      enter(pausing);
      pause();
      return;
    case stopping:  // not by this machine: it does not let a failover become FAILED
      enter(stopping);
      start_stopping();
      return;
    default:
      break;
  }
  // Never to the state it failed in as such: that edge may be illegal, and the log may have
  // changed. While local batches are in the log only LOG_ALIGNMENT may go on with it.
  const bool aligned = !s_.position && s_.previous_state != log_alignment &&
                       s_.previous_state != unknown && s_.previous_state != stopped;
  enter(aligned ? mirroring : log_alignment);
  refuse_writes();
  persist();
  inspect();
}

// ---- Failures.

void Transition::clear_failure() {
  s_.previous_state = MirrorState::unknown;
  s_.retry_attempt = 0;
  s_.error.clear();
  s_.failures = 0;
  s_.last_failure.reset();
}

bool Transition::will_retry() const {
  if (mutated(Mutation::retry_without_bound)) return s_.retry_attempt != -1;
  return s_.retry_attempt >= 0 && s_.retry_attempt < settings_.retry.max_attempts;
}

void Transition::fail(Failure failure, std::string text) {
  using enum MirrorState;
  ++s_.failures;
  // A failover must end, so it never becomes FAILED: it is tried again for as long as it takes. The
  // same holds where only our own record is still to be written.
  const bool must_end = s_.state == stopping || s_.state == pausing || s_.state == stopped;
  if (must_end && !mutated(Mutation::stop_can_fail)) {
    s_.error = std::move(text);
    schedule_retry(settings_.retry.stopping_cap_ms);
    return;
  }
  const bool local = failure == Failure::local_error;
  const std::int64_t cap_ms = local ? std::min(settings_.retry.cap_ms, settings_.retry.local_cap_ms)
                                    : settings_.retry.cap_ms;
  if (s_.state == failed && local) return schedule_retry(cap_ms);  // FAILED could not be written
  if (s_.state != failed) s_.previous_state = s_.state;
  s_.error = std::move(text);
  switch (retry_class(failure)) {
    case RetryClass::never:
      s_.retry_attempt = -1;
      break;
    case RetryClass::unbounded:
      // Stays below the limit, also for whoever reads the record after a restart.
      s_.retry_attempt =
          std::min(s_.retry_attempt + 1, std::max(1, settings_.retry.max_attempts - 1));
      break;
    case RetryClass::bounded:
      // An outage that is over must not have used up the attempts of what comes after it.
      if (s_.last_failure && retry_class(*s_.last_failure) == RetryClass::unbounded)
        s_.retry_attempt = 0;
      ++s_.retry_attempt;
      break;
  }
  s_.last_failure = failure;
  if (mutated(Mutation::forget_cut_on_failure)) s_.position.reset();
  enter(failed);
  refuse_writes();
  persist();
  if (will_retry())
    schedule_retry(cap_ms);
  else
    settle();
}

// ---- Commands.

void Transition::on(const Restore& e) {
  using enum MirrorState;
  const Ticket ticket = s_.ticket;
  s_ = State{};
  s_.ticket = ticket;  // what an earlier leadership left under way stays stale
  s_.leading = true;
  s_.leader_epoch = e.leader_epoch;
  if (e.record) {
    s_.state = e.record->state;
    s_.previous_state = e.record->previous_state;
    s_.retry_attempt = e.record->retry_attempt;
    s_.error = e.record->error;
    s_.position = e.record->position;
    s_.skipped = e.record->skipped;
  }
  // Opened, or never begun, without a word of what is shared: then nothing is known to be.
  if ((s_.state == stopped || s_.state == unknown) && !s_.position) s_.position = Position{};
  // Not by this machine: a copy goes on only when the local batches are gone.
  if ((s_.state == mirroring || s_.state == epoch_fencing || s_.state == ule_recovery) &&
      s_.position)
    s_.state = log_alignment;

  switch (s_.state) {
    case stopped:
      actions_.push_back(AllowWrites{});
      settle();
      return;
    case stopping:
      start_stopping();
      return;
    case pausing:
      pause();
      return;
    default:
      break;
  }
  actions_.push_back(RefuseWrites{});
  switch (s_.state) {
    case failed:
      if (!will_retry()) break;
      s_.failures = 1;  // the world may have changed since: begin with the short delays
      schedule_retry(settings_.retry.cap_ms);
      return;
    case log_alignment:
    case epoch_fencing:
    case ule_recovery:
    case mirroring:
      inspect();
      return;
    default:
      break;
  }
  // UNKNOWN never begins by itself: the record may be lost, and what was desired is not ours to
  // know.
  settle();
}

void Transition::on(const LeadershipLost&) {
  actions_.push_back(RefuseWrites{});
  s_.leading = false;
  settle();
}

void Transition::on(const Start& e) {
  using enum MirrorState;
  if (s_.state != unknown && s_.state != stopped && s_.state != failed) return;
  if (e.adopt && s_.state == unknown) s_.position.reset();
  if (e.from_scratch) s_.position = Position{};
  enter(log_alignment);
  clear_failure();
  s_.skipped.reset();
  s_.discarded = 0;
  s_.resets_seen = 0;
  s_.forgetting = false;
  // Writes are refused before anything is cut away, or a producer could be acknowledged and lost.
  refuse_writes();
  persist();
  inspect();
}

void Transition::on(const Pause&) {
  using enum MirrorState;
  if (s_.state != mirroring && s_.state != log_alignment && s_.state != epoch_fencing &&
      s_.state != ule_recovery && s_.state != failed)
    return;
  enter(pausing);
  clear_failure();
  pause();
}

void Transition::on(const Resume&) {
  if (s_.state != MirrorState::paused) return;
  enter(s_.position ? MirrorState::log_alignment : MirrorState::mirroring);
  persist();
  if (mutated(Mutation::skip_inspect_on_resume)) return align();
  inspect();  // an append may have finished unheard
}

void Transition::on(const Stop&) {
  if (s_.state == MirrorState::stopped || s_.state == MirrorState::stopping) return;
  if (mutated(Mutation::stop_waits_in_failed) && s_.state == MirrorState::failed) return;
  enter(MirrorState::stopping);
  clear_failure();
  s_.barrier_written = false;
  start_stopping();
}

void Transition::on(const Recover&) {
  if (s_.state != MirrorState::failed) return;
  const MirrorState previous = s_.previous_state;
  clear_failure();
  s_.previous_state = previous;
  s_.resets_seen = 0;
  try_again();
}

void Transition::on(const SourceReturned&) {
  const bool waited_for_it =
      s_.last_failure == Failure::source_unreachable || s_.last_failure == Failure::source_behind;
  if (s_.state == MirrorState::failed && s_.pending == Pending::retry && waited_for_it) try_again();
}

void Transition::on(const SourceEpochSeen& e) {
  // Never lowered: periodic metadata may be older than what was seen.
  if (e.epoch > source_epoch_max || !s_.source_epoch || e.epoch <= *s_.source_epoch) return;
  s_.source_epoch = e.epoch;
  // An idle partition's fetch may wait for long; anything else under way heeds it when it is done.
  if (s_.pending == Pending::fetch && bump_needed()) bump(bump_target());
}

void Transition::on(const MarkFailed& e) {
  using enum MirrorState;
  if (s_.state == unknown || s_.state == stopping || s_.state == stopped) return;
  if (s_.state == failed && s_.retry_attempt == -1) return;
  fail(e.failure, e.text);
}

void Transition::on(const DeleteMirror&) {
  if (s_.state != MirrorState::stopped) return;
  s_.forgetting = true;
  forget();
}

// ---- The step.

namespace {

template <class E>
constexpr bool is_outcome = requires(const E& e) { e.ticket; };

// A driver that reports what it was not asked for is broken.
template <class E>
void check_expected(const E&, Pending p) {
  if constexpr (std::is_same_v<E, LogIs>)
    CHECK(p == Pending::inspect || p == Pending::truncate || p == Pending::restart ||
          p == Pending::log_start);
  if constexpr (std::is_same_v<E, Aligned>) CHECK(p == Pending::align);
  if constexpr (std::is_same_v<E, Fetched> || std::is_same_v<E, NothingNew> ||
                std::is_same_v<E, FetchRefused>)
    CHECK(p == Pending::fetch);
  if constexpr (std::is_same_v<E, Appended>) CHECK(p == Pending::append);
  if constexpr (std::is_same_v<E, EpochBumped>) CHECK(p == Pending::bump);
  if constexpr (std::is_same_v<E, MarkersWritten>) CHECK(p == Pending::markers);
  if constexpr (std::is_same_v<E, ResetWritten>) CHECK(p == Pending::reset);
  if constexpr (std::is_same_v<E, Done>)
    CHECK(p == Pending::settle || p == Pending::open || p == Pending::forget);
  if constexpr (std::is_same_v<E, RetryDue>) CHECK(p == Pending::retry);
}

bool copies(MirrorState state) {
  using enum MirrorState;
  return state == epoch_fencing || state == ule_recovery || state == mirroring;
}

void check_state(const State& s, bool acted, Ticket ticket_before) {
  using enum MirrorState;
  CHECK(s.ticket == ticket_before + (acted ? 1 : 0));
  // Where something must happen, something is under way: no partition is forgotten.
  if (s.leading &&
      (copies(s.state) || s.state == log_alignment || s.state == pausing || s.state == stopping))
    CHECK(s.pending != Pending::nothing);
  if (s.leading && copies(s.state)) CHECK(!s.position);
  if (s.pending == Pending::fetch || s.pending == Pending::append)
    CHECK(s.state == mirroring && s.in_touch);
  if (s.state == stopped) CHECK(s.position.has_value());
}

}  // namespace

Step step(State state, const Event& event, const Settings& settings, std::int32_t jitter_permille) {
  const Ticket ticket = state.ticket;
  if (!state.leading && !std::holds_alternative<Restore>(event)) return {std::move(state), {}};
  return std::visit(
      [&](const auto& e) -> Step {
        if constexpr (is_outcome<std::decay_t<decltype(e)>>) {
          const bool stale = e.ticket != ticket || state.pending == Pending::nothing;
          if (stale && !mutated(Mutation::accept_stale_ticket)) return {std::move(state), {}};
          check_expected(e, state.pending);
        }
        Transition transition(std::move(state), settings, jitter_permille);
        transition.on(e);
        Step next = transition.finish();
        check_state(next.state, !next.actions.empty(), ticket);
        return next;
      },
      event);
}

Deadline deadline(const State& state) {
  switch (state.pending) {
    case Pending::nothing:
      return Deadline::none;
    case Pending::align:
    case Pending::fetch:
      return Deadline::source;
    default:
      return Deadline::local;
  }
}

}  // namespace mirror
