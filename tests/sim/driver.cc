// What the driver does for each action, and what must hold when it does.
#include <algorithm>
#include <cstdio>

#include "tests/sim/world.h"

namespace sim {

using enum mirror::MirrorState;
using mirror::Failure;

namespace {

template <class T>
bool is(const mirror::Action& action) {
  return std::holds_alternative<T>(action);
}

bool asks_source(const mirror::Action& a) {
  return is<mirror::Align>(a) || is<mirror::Fetch>(a);
}

}  // namespace

void World::perform() {
  if (todo_.empty()) return;
  const mirror::Action action = todo_.front();
  if (fails_before(action)) return todo_.clear();
  const std::size_t outcomes = inbox_.size();
  const bool fails_after = rare(3) && !is<mirror::RefuseWrites>(action) &&
                           !is<mirror::AllowWrites>(action) && !is<mirror::SettleGroups>(action) &&
                           !is<mirror::ScheduleRetry>(action);
  const mirror::Ticket ticket = state_.ticket;
  todo_.pop_front();
  std::visit([&](const auto& a) { do_action(a); }, action);
  if (fails_after) {  // the work is done, its outcome is lost
    inbox_.resize(outcomes);
    todo_.clear();
    if (random_.chance(30))
      report(mirror::Timeout{ticket});
    else
      report(mirror::Failed{
          ticket, asks_source(action) ? Failure::source_error : Failure::local_error, "lost"});
    return;
  }
  const bool own_outcome = inbox_.size() > outcomes || is<mirror::ScheduleRetry>(action);
  if (todo_.empty() && !own_outcome) report(mirror::Done{ticket});
}

bool World::fails_before(const mirror::Action& action) {
  const mirror::Ticket ticket = state_.ticket;
  if (asks_source(action)) {
    if (!source_.reachable()) {
      report(mirror::Failed{ticket, Failure::source_unreachable, "no connection"});
      return true;
    }
    if (source_.has_ids && source_.life != known_life_) {
      report(mirror::Failed{ticket, Failure::topic_recreated, "another topic id"});
      return true;
    }
    if (!rare(4)) return false;
    const Failure kinds[] = {Failure::source_unreachable, Failure::source_error,
                             Failure::corrupt_batch};
    report(mirror::Failed{ticket, kinds[random_.below(3)], "the source fails"});
    return true;
  }
  // Memory does not fail, and the groups are passed over where they cannot be settled.
  if (is<mirror::RefuseWrites>(action) || is<mirror::ScheduleRetry>(action) ||
      is<mirror::SettleGroups>(action))
    return false;
  if (!rare(4) && !(local_fails_ && random_.chance(20))) return false;
  report(mirror::Failed{ticket, Failure::local_error, "the disk fails"});
  return true;
}

// ---- Clients, and what is remembered.

void World::write_local(Kind kind, std::int64_t producer) {
  const auto mirrored = log_.newest_mirrored_epoch();
  check(!mirrored || leader_epoch_ > *mirrored, "a local record has an epoch that is the source's");
  const bool first = mirrored && !log_.batches.empty() && log_.batches.back().mirrored;
  if (first)
    check(record_ && record_->position && record_->position->offset == log_.end(),
          "a local record before the end of the copy was remembered");
  if (first) check(groups_settled_, "taken over without a last look at the source's groups");
  const Offset base = log_.end();
  log_.append({.base = base,
               .next = base + 1,
               .epoch = leader_epoch_,
               .id = next_id_++,
               .kind = kind,
               .producer = producer,
               .mirrored = false,
               .life = 0});
  if (random_.chance(70)) synced_ = log_.batches.size();
}

void World::do_action(const mirror::RefuseWrites&) {
  writable_ = false;
}

void World::do_action(const mirror::AllowWrites&) {
  check(record_ && record_->state == stopped, "opened before STOPPED was remembered");
  check(record_->position.has_value(), "opened without remembering where the copy ends");
  const auto mirrored = log_.newest_mirrored_epoch();
  check(!mirrored || leader_epoch_ > *mirrored, "opened with an epoch that is the source's");
  bool local = false;
  for (const Batch& b : log_.batches) {
    check(!b.mirrored || !local, "a copied batch behind a local one");
    if (!b.mirrored && !local) {
      // Of a log that holds no copy nothing may be claimed to be one.
      check(mirrored ? record_->position->offset == b.base : record_->position->offset <= b.base,
            "the copy was remembered to end elsewhere");
      local = true;
    }
  }
  const Producers producers = log_.producers();
  check(producers.unfinished.empty(), "opened with a transaction of the source open");
  check(producers.known.empty(), "opened with the source's producers known");
  writable_ = true;
}

void World::do_action(const mirror::Persist& a) {
  record_ = a.record;
  // From here on the copy that was there before counts as one.
  if (adopt_ && !a.record.position) {
    adopt_ = false;
    for (Batch& b : log_.batches) b.mirrored = true;
  }
}

void World::do_action(const mirror::Forget&) {
  record_.reset();
}

// ---- Looking at the log and cutting it.

void World::do_action(const mirror::Inspect&) {
  synced_ = log_.batches.size();
  report(log_is());
}

void World::do_action(const mirror::Truncate& a) {
  check(!writable_, "a log was cut that clients write to");
  Offset to = a.offset;
  if (a.epoch) to = std::min(to, log_.end_of_epoch(*a.epoch));
  const bool takes_copied =
      std::ranges::any_of(log_.batches, [&](const Batch& b) { return b.mirrored && b.next > to; });
  if (takes_copied && state_.state != log_alignment)
    check(settings_.support_unclean_leader_election, "copied records were dropped unasked");
  for (const Batch& b : log_.batches)
    check(!b.mirrored || b.next <= to || state_.state == log_alignment || b.life == source_.life,
          "the copy of a topic was dropped for another of the same name");
  log_.truncate(to);
  synced_ = log_.batches.size();
  rounds_ = 0;
  report(log_is());
}

void World::do_action(const mirror::RestartAt& a) {
  check(!writable_, "a log was dropped that clients write to");
  if (log_.end() > 0 && a.offset > log_.end())
    check(record_ && record_->skipped && record_->skipped->from <= log_.end() &&
              record_->skipped->to >= a.offset,
          "offsets were skipped without a word");
  log_.restart(a.offset);
  synced_ = 0;
  rounds_ = 0;
  report(log_is());
}

void World::do_action(const mirror::AdvanceLogStart& a) {
  check(a.offset <= log_.end(), "the log start was raised beyond the log end");
  const std::size_t before = log_.batches.size();
  log_.raise_start(a.offset);
  synced_ -= std::min(synced_, before - log_.batches.size());
  report(log_is());
}

// ---- The source.

void World::do_action(const mirror::Align& a) {
  check(++rounds_ < 12, "the source was asked again and again without a pause");
  mirror::Aligned out;
  out.ticket = state_.ticket;
  out.same_topic_id = source_.has_ids;
  if (source_.names_epochs) out.source_epoch = source_.metadata_epoch;
  out.source_log_start = source_.log.start;
  out.source_log_end = source_.reported_end;
  if (a.epoch) out.epoch_end = source_.log.end_offset_for(*a.epoch);
  if (a.look_up_reverse) {
    out.reverse = random_.chance(50) ? mirror::Reverse::none : mirror::Reverse::unsupported;
    if (rare(3)) out.reverse = mirror::Reverse::not_stopped;
    if (rare(1)) {
      out.reverse = mirror::Reverse::loop;
      looped_ = true;
    }
  }
  report(out);
}

void World::do_action(const mirror::Fetch& a) {
  check(state_.state == mirroring, "fetched in another state than MIRRORING");
  check(++rounds_ < 12, "the source was asked again and again without a pause");
  check(a.offset == log_.end(), "fetched from elsewhere than the end of the log");
  const mirror::Ticket ticket = state_.ticket;
  // An offset the leader does not have, or one whose epoch does not match what it has there.
  const auto end = a.last_epoch ? source_.log.end_offset_for(*a.last_epoch) : std::nullopt;
  const bool diverges =
      a.last_epoch && (!end || end->epoch < *a.last_epoch || end->end_offset < a.offset);
  if (a.offset < source_.log.start || a.offset > source_.log.end() || diverges || rare(2))
    return report(mirror::FetchRefused{ticket, "OFFSET_OUT_OF_RANGE"});
  held_ = source_.read(a.offset, 1 + random_.below(3));
  if (!held_.empty() && !log_.empty() && held_.front().base < log_.end()) {
    // After an unclean election and a trim into the middle of a batch no epoch tells of it.
    overlapped_ = true;
    return report(
        mirror::Failed{ticket, Failure::corrupt_batch, "a batch overlaps the copy's end"});
  }
  if (held_.empty()) {
    rounds_ = 0;
    return report(mirror::NothingNew{ticket, source_.log.start});
  }
  report(mirror::Fetched{ticket, held_.back().next, held_.back().epoch, source_.log.start});
}

void World::do_action(const mirror::Append&) {
  check(!writable_, "copied bytes entered a writable log");
  for (const Batch& fetched : held_) {
    const bool covers = log_.empty() && fetched.base <= log_.end() && fetched.next > log_.end();
    check(fetched.base >= log_.end() || covers, "an append below the end of the log");
    check(fetched.epoch <= leader_epoch_, "a batch's epoch is above the leader epoch");
    check(!log_.last_epoch() || fetched.epoch >= *log_.last_epoch(), "the epochs went back");
    for (const Batch& b : log_.batches) check(b.mirrored, "a copied batch behind a local one");
    if (!log_.empty()) check(log_.batches.back().life == fetched.life, "two topics in one log");
    Batch copy = fetched;
    copy.mirrored = true;
    log_.append(copy);
    groups_settled_ = false;
  }
  held_.clear();
  rounds_ = 0;
  report(mirror::Appended{state_.ticket, log_.end(), log_.last_epoch()});
}

// ---- Taking over.

void World::do_action(const mirror::BumpEpoch& a) {
  leader_epoch_ = std::max(leader_epoch_, a.at_least);
  rounds_ = 0;
  report(mirror::EpochBumped{state_.ticket, leader_epoch_});
}

void World::do_action(const mirror::SettleGroups&) {
  check(!writable_, "groups were settled in a log that clients write to");
  for (const Batch& b : log_.batches)
    check(b.mirrored, "groups were settled although the log holds records of ours");
  check(synced_ == log_.batches.size(), "groups were settled by records that a power cut may take");
  groups_settled_ = true;
}

void World::do_action(const mirror::WriteAbortMarkers&) {
  const Producers producers = log_.producers();
  for (std::int64_t producer : producers.open) write_local(Kind::abort, producer);
  synced_ = log_.batches.size();
  report(mirror::MarkersWritten{state_.ticket});
}

void World::do_action(const mirror::WriteProducerIdReset&) {
  write_local(Kind::producer_reset, -1);
  synced_ = log_.batches.size();
  report(mirror::ResetWritten{state_.ticket});
}

void World::do_action(const mirror::ScheduleRetry&) {
  retry_due_ = state_.ticket;
}

}  // namespace sim
