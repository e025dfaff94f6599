// The course of a world: the storm, then either peace, in which the copy must become equal, or a
// dead source, from which we must take over.
#include "tests/sim/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "mirror/machine_text.h"

namespace sim {

using enum mirror::MirrorState;
using mirror::MirrorState;
using mirror::Pending;

World::World(std::uint64_t seed, bool verbose)
    : random_(seed), verbose_(verbose), source_(random_, random_.chance(60)) {
  settings_.support_unclean_leader_election = random_.chance(50);
  settings_.retry.max_attempts = static_cast<std::int32_t>(2 + random_.below(19));
  if (random_.chance(10)) settings_.on_source_trimmed = mirror::TrimPolicy::fail;
  source_.log.begin_epoch(0);
  if (random_.chance(20)) {  // a topic that was here before, or a copy made by other means
    for (std::uint64_t n = random_.below(6); n > 0; --n) source_.act();
    source_.settle();
    adopt_ = random_.chance(50);
    if (adopt_) {
      for (const Batch& b : source_.read(source_.log.start, 3)) {
        if (log_.empty()) log_.restart(b.base);
        log_.append(b);
      }
    } else {
      for (std::uint64_t n = random_.below(4); n > 0; --n) write_local(Kind::data, -1);
    }
    if (!log_.empty()) leader_epoch_ = std::max(leader_epoch_, *log_.last_epoch());
    synced_ = log_.batches.size();
  }
  feed(mirror::Restore{.record = record_, .leader_epoch = leader_epoch_});
}

void World::check(bool held, const char* what) const {
  if (!held) throw Violation{what};
}

void World::run() {
  storm();
  if (random_.chance(30)) finish_by_stopping();
  finish_by_mirroring();
}

void World::storm() {
  const std::uint64_t length = 100 + random_.below(400);
  for (std::uint64_t i = 0; i < length; ++i) {
    const std::uint64_t dice = random_.below(100);
    if (dice < 25)
      source_.act();
    else if (dice < 58)
      perform();
    else if (dice < 90)
      feed_one();
    else if (dice < 94)
      client_writes();
    else if (dice < 98)
      command();
    else if (random_.chance(40))
      crash();
    else if (retry_due_)
      feed(mirror::RetryDue{*std::exchange(retry_due_, std::nullopt)});
    if (todo_.empty() && inbox_.empty() && retry_due_ && random_.chance(30))
      feed(mirror::RetryDue{*std::exchange(retry_due_, std::nullopt)});
  }
}

void World::command() {
  switch (random_.below(16)) {
    case 0:
    case 1:
      return feed(mirror::Pause{});
    case 2:
    case 3:
      return feed(mirror::Resume{});
    case 4:
      return feed(mirror::Stop{});
    case 5:
      return feed(mirror::Recover{});
    case 6:
      return feed(mirror::SourceReturned{});
    case 7:
      return feed(mirror::SourceEpochSeen{source_.metadata_epoch});
    case 8:
      if (random_.chance(5)) {
        marked_failed_ = true;
        feed(mirror::MarkFailed{mirror::Failure::topic_deleted, "The source topic is deleted"});
      }
      return;
    case 9:
      if (random_.chance(10)) feed(mirror::DeleteMirror{});
      return;
    case 10:
      feed(mirror::LeadershipLost{});
      if (random_.chance(50)) feed(mirror::Stop{});  // must not be heeded
      ++leader_epoch_;
      return feed(mirror::Restore{.record = record_, .leader_epoch = leader_epoch_});
    default:
      return feed(mirror::Start{.adopt = adopt_ && state_.state == unknown && !record_});
  }
}

// Everything in memory is gone, and of the log what was not flushed may be, in part.
void World::crash() {
  if (verbose_) std::printf("        crash\n");
  const std::size_t unsynced = log_.batches.size() - std::min(synced_, log_.batches.size());
  for (std::uint64_t n = random_.below(unsynced + 1); n > 0; --n)
    log_.truncate(std::max(log_.start, log_.batches.back().base));
  synced_ = log_.batches.size();
  writable_ = false;
  state_ = mirror::State{};
  todo_.clear();
  inbox_.clear();
  held_.clear();
  retry_due_.reset();
  ++leader_epoch_;
  feed(mirror::Restore{.record = record_, .leader_epoch = leader_epoch_});
}

void World::client_writes() {
  if (!writable_) return;
  const auto producer = static_cast<std::int64_t>(1 + random_.below(4));
  switch (random_.below(4)) {
    case 0:
      return write_local(Kind::data, -1);
    case 1:
      return write_local(Kind::data, producer);
    case 2:
      return write_local(Kind::transactional, producer);
    default:
      break;
  }
  const Producers producers = log_.producers();
  if (!producers.open.empty()) write_local(Kind::commit, *producers.open.begin());
}

// One step of a quiet world; false if nothing is left to do.
bool World::advance() {
  if (!todo_.empty()) return perform(), true;
  if (!inbox_.empty()) return feed_one(), true;
  if (retry_due_) return feed(mirror::RetryDue{*std::exchange(retry_due_, std::nullopt)}), true;
  return false;
}

void World::run_until(MirrorState state, int limit, const char* what) {
  for (int i = 0; i < limit; ++i)
    if (state_.state == state || !advance()) break;
  if (state_.state != state && verbose_)
    std::printf("stuck in %s: %s\n", std::string(name(state_.state)).c_str(), state_.error.c_str());
  check(state_.state == state, what);
}

// The source is dead and stays so, our disk fails now and then. Nobody helps.
void World::finish_by_stopping() {
  source_.die();
  calm_ = true;
  local_fails_ = random_.chance(50);
  feed(mirror::Stop{});
  run_until(stopped, local_fails_ ? 3000 : 60, "a failover did not end");
  // After a restart it may be STOPPED already and be opened only now.
  for (int i = 0; i < 3000 && !writable_ && advance(); ++i) {
  }
  check(writable_, "stopped, but not writable");
  local_fails_ = false;
  for (int i = 0; i < 3; ++i) client_writes();
  if (random_.chance(30)) {
    crash();
    for (int i = 0; i < 20 && advance(); ++i) {
    }
    check(writable_ || !record_, "not writable again after a restart");
    client_writes();
  }
}

// As an operator would who wants the mirror back, whatever it takes. A topic that was created anew
// needs his word; an outage that is over does not.
void World::start_again() {
  for (int attempts = 0; attempts < 4 && state_.state != mirroring; ++attempts) {
    const bool anew =
        source_.ever_recreated || overlapped_ || (source_.ever_unclean && !source_.names_epochs);
    const bool by_itself = state_.state == failed &&
                           state_.last_failure == mirror::Failure::source_unreachable &&
                           state_.retry_attempt < settings_.retry.max_attempts;
    if (state_.state == paused) {
      anew ? feed(mirror::Stop{}) : feed(mirror::Resume{});
    } else if (state_.state == unknown || state_.state == stopped ||
               (state_.state == failed && anew)) {
      if (anew) known_life_ = source_.life;  // the copy is made under the new topic id
      feed(mirror::Start{.from_scratch = anew});
    } else if (state_.state == failed && !by_itself) {
      feed(mirror::Recover{});
    }
    for (int i = 0; i < 400 && state_.state != failed && advance(); ++i) {
    }
    if (by_itself) break;
  }
}

void World::finish_by_mirroring() {
  calm_ = true;
  source_.settle();
  for (int i = 0; i < 200 && (state_.state == stopping || state_.state == pausing); ++i) advance();
  if (source_.ever_recreated) {  // had the copy of the old topic been taken for the new one?
    for (int i = 0; i < 400; ++i) advance();
    if (state_.state == mirroring) check_equal();
  } else if (!source_.ever_unclean && !marked_failed_ && !looped_) {
    // Nothing happened that needs an operator, but for what is bounded by intent.
    for (int i = 0; i < 400; ++i) advance();
    if (state_.state == failed && state_.retry_attempt == -1)
      check(settings_.on_source_trimmed == mirror::TrimPolicy::fail,
            "given up although nothing final happened");
  }
  for (int i = 0; i < 400 && advance(); ++i) {  // what the storm left under way
  }
  settings_.support_unclean_leader_election = true;
  settings_.on_source_trimmed = mirror::TrimPolicy::fast_forward;
  start_again();
  for (int i = 0; i < 4000; ++i)
    if (!advance()) break;
  check(state_.state == mirroring, "not mirroring after the storm");
  check_equal();
}

void World::check_equal() {
  check(log_.end() == source_.log.end(), "the logs do not end alike");
  const Offset from = std::max(log_.start, source_.log.start);
  check(log_.start >= source_.log.start || log_.empty(), "the copy holds what the source deleted");
  auto ids = [&](const Log& log) {
    std::vector<std::uint64_t> out;
    for (const Batch& b : log.batches)
      if (b.next > from) out.push_back(b.id);
    return out;
  };
  check(ids(log_) == ids(source_.log), "the logs differ");
}

// ---- Between driver and machine.

mirror::LogIs World::log_is() const {
  return {.ticket = state_.ticket,
          .log_start = log_.start,
          .log_end = log_.end(),
          .last_epoch = log_.last_epoch(),
          .leader_epoch = leader_epoch_};
}

void World::report(mirror::Event event) {
  inbox_.push_back(std::move(event));
}

void World::feed_one() {
  if (inbox_.empty()) return;
  const mirror::Event event = inbox_.front();
  if (!rare(3)) inbox_.pop_front();  // else it will be reported a second time
  feed(event);
}

void World::feed(const mirror::Event& event) {
  const mirror::State before = state_;
  const auto jitter = static_cast<std::int32_t>(random_.below(401)) - 200;
  mirror::Step step = mirror::step(state_, event, settings_, jitter);
  if (verbose_) {
    std::printf("%-15s %-13s [%lld..%lld) e%d |", std::string(event_name(event)).c_str(),
                std::string(name(step.state.state)).c_str(), static_cast<long long>(log_.start),
                static_cast<long long>(log_.end()), leader_epoch_);
    for (const mirror::Action& a : step.actions) std::printf(" %s", to_string(a).c_str());
    if (!step.state.error.empty() && step.state.error != before.error)
      std::printf("  \"%s\"", step.state.error.c_str());
    std::printf("\n");
  }
  check_step(before, event, step);
  state_ = std::move(step.state);
  if (state_.state == unknown)  // nobody knows any more where they came from
    for (Batch& b : log_.batches) b.mirrored = false;
  if (step.actions.empty()) return;
  // A new ticket: what was not begun is dropped, what waits is cancelled.
  todo_.assign(step.actions.begin(), step.actions.end());
  retry_due_.reset();
  if (event.index() < mirror::Event(mirror::LogIs{}).index()) rounds_ = 0;  // a command
}

void World::check_step(const mirror::State& before, const mirror::Event& event,
                       const mirror::Step& step) {
  const mirror::State& after = step.state;
  check(std::holds_alternative<mirror::Restore>(event) ||
            legal_transition(before.state, after.state) ||
            (before.state == mirroring && after.state == ule_recovery),
        "an illegal transition");
  check(after.retry_attempt <= settings_.retry.max_attempts, "retried more often than allowed");
  const auto* failed_event = std::get_if<mirror::Failed>(&event);
  const bool unreachable = failed_event != nullptr && failed_event->ticket == before.ticket &&
                           failed_event->failure == mirror::Failure::source_unreachable;
  if (unreachable && after.state == failed && before.state != failed)
    check(after.pending == Pending::retry, "an outage of the source was taken for final");
  if (std::holds_alternative<mirror::Stop>(event) && before.leading)
    check(after.state == stopping || after.state == stopped, "a failover was refused");
  if (before.state == stopping && !std::holds_alternative<mirror::Restore>(event))
    check(after.state != failed, "a failover became FAILED");
  for (const mirror::Action& a : step.actions)
    if (const auto* retry = std::get_if<mirror::ScheduleRetry>(&a)) {
      rounds_ = 0;
      check(retry->delay_ms >= 80 && retry->delay_ms <= 360'000, "a delay out of its bounds");
    }
}

}  // namespace sim
