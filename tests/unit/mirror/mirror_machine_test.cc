#include <catch2/catch.hpp>

#include "mirror/machine.h"

using namespace mirror;

namespace {

const Settings settings;

State after(State state, const Event& event) {
  return step(std::move(state), event, settings).state;
}

State restored(Record record, LeaderEpoch leader_epoch = 20) {
  return after(State{}, Restore{.record = std::move(record), .leader_epoch = leader_epoch});
}

Record in_state(MirrorState state) {
  Record record;
  record.state = state;
  if (state == MirrorState::stopped) record.position = Position{3, 40};
  return record;
}

constexpr MirrorState all_states[] = {MirrorState::unknown,       MirrorState::log_alignment,
                                      MirrorState::epoch_fencing, MirrorState::ule_recovery,
                                      MirrorState::mirroring,     MirrorState::pausing,
                                      MirrorState::paused,        MirrorState::stopping,
                                      MirrorState::stopped,       MirrorState::failed};

}  // namespace

TEST_CASE("a machine that leads nothing heeds nothing") {
  const State idle;
  for (const Event& event : {Event{Start{}}, Event{Stop{}}, Event{Recover{}}, Event{Done{}},
                             Event{RetryDue{}}, Event{LogIs{}}, Event{DeleteMirror{}}}) {
    const Step s = step(idle, event, settings);
    CHECK(s.actions.empty());
    CHECK(s.state == idle);
  }
}

TEST_CASE("a record survives restore and record_of unchanged in its steady states") {
  for (const MirrorState state : {MirrorState::paused, MirrorState::stopped, MirrorState::failed}) {
    Record record = in_state(state);
    record.previous_state = MirrorState::mirroring;
    record.retry_attempt = state == MirrorState::failed ? -1 : 0;
    record.error = "why";
    record.skipped = SkippedRange{10, 20};
    CHECK(record_of(restored(record)) == record);
  }
}

TEST_CASE("outcomes of older tickets change nothing, in any state") {
  for (const MirrorState state : all_states) {
    const State s = restored(in_state(state));
    const Ticket old = s.ticket - 1;
    for (const Event& event :
         {Event{LogIs{.ticket = old, .log_end = 99}}, Event{Fetched{old, 99, 1, 0}},
          Event{Appended{old, 99, 1}}, Event{EpochBumped{old, 99}}, Event{MarkersWritten{old}},
          Event{ResetWritten{old}}, Event{Done{old}}, Event{RetryDue{old}}, Event{Timeout{old}},
          Event{Failed{old, Failure::local_error, "late"}}, Event{Aligned{.ticket = old}}}) {
      const Step next = step(s, event, settings);
      CHECK(next.actions.empty());
      CHECK(next.state == s);
    }
  }
}

TEST_CASE("commands are safe in every state, and a step with actions brings a new ticket") {
  for (const MirrorState state : all_states)
    for (const Event& event :
         {Event{Start{}}, Event{Start{.from_scratch = true}}, Event{Pause{}}, Event{Resume{}},
          Event{Stop{}}, Event{Recover{}}, Event{SourceReturned{}}, Event{SourceEpochSeen{5}},
          Event{MarkFailed{Failure::topic_deleted, "gone"}}, Event{DeleteMirror{}},
          Event{LeadershipLost{}}}) {
      const State s = restored(in_state(state));
      const Step next = step(s, event, settings);
      CHECK(next.state.ticket == s.ticket + (next.actions.empty() ? 0 : 1));
      if (next.actions.empty()) CHECK(next.state.state == s.state);
    }
}

TEST_CASE("every state in which something is under way has a deadline") {
  for (const MirrorState state : all_states) {
    const State s = restored(in_state(state));
    CHECK(s.pending != Pending::nothing);  // the list that Restore gave must be reported
    CHECK(deadline(s) == Deadline::local);
  }
  State s = restored(in_state(MirrorState::mirroring));
  s = after(s, LogIs{.ticket = s.ticket, .leader_epoch = 20});
  CHECK(s.pending == Pending::align);
  CHECK(deadline(s) == Deadline::source);
  s = after(s, Aligned{.ticket = s.ticket, .source_epoch = 3, .source_log_end = 10});
  CHECK(s.pending == Pending::fetch);
  CHECK(deadline(s) == Deadline::source);
  s = restored(in_state(MirrorState::paused));
  s = after(s, Done{s.ticket});
  CHECK(deadline(s) == Deadline::none);
}

TEST_CASE("an epoch that would wrap saturates, and a failover still ends") {
  State s = restored(in_state(MirrorState::mirroring), INT32_MAX - 1);
  s = after(s, Stop{});
  Step next = step(
      s, LogIs{.ticket = s.ticket, .log_end = 10, .last_epoch = 7, .leader_epoch = INT32_MAX - 1},
      settings);
  REQUIRE(next.actions.size() == 3);
  CHECK(std::get<BumpEpoch>(next.actions[2]).at_least == INT32_MAX);
}

TEST_CASE("offsets cut away are counted") {
  State s = restored(in_state(MirrorState::stopped));
  s = after(s, Done{s.ticket});
  s = after(s, Start{});
  s = after(s, LogIs{.ticket = s.ticket, .log_end = 43, .last_epoch = 12, .leader_epoch = 20});
  s = after(s, Aligned{.ticket = s.ticket, .source_epoch = 3, .source_log_end = 60});
  s = after(s, LogIs{.ticket = s.ticket, .log_end = 40, .last_epoch = 3, .leader_epoch = 20});
  CHECK(s.discarded == 3);
  CHECK(s.state == MirrorState::mirroring);
}
