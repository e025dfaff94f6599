#include "mirror/partition_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mirror/fetched_batches.h"
#include "mirror/machine_text.h"
#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/error_code.h"

namespace mirror {
namespace {

using namespace std::chrono_literals;

constexpr auto local_deadline = 30s;
constexpr auto flush_interval = 5s;
constexpr double rate_smoothing = 0.3;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// The source does not accept our position, or is not the leader any more: ask it afresh.
bool is_refusal(std::int16_t error) {
  switch (static_cast<protocol::ErrorCode>(error)) {
    case protocol::ErrorCode::offset_out_of_range:
    case protocol::ErrorCode::unknown_topic_or_partition:
    case protocol::ErrorCode::not_leader_or_follower:
    case protocol::ErrorCode::replica_not_available:
    case protocol::ErrorCode::fenced_leader_epoch:
    case protocol::ErrorCode::unknown_leader_epoch:
    case protocol::ErrorCode::unknown_topic_id:
    case protocol::ErrorCode::inconsistent_topic_id:
      return true;
    default:
      return false;
  }
}

bool is_of_another_topic(Failure failure) {
  return failure == Failure::topic_recreated || failure == Failure::cluster_changed;
}

}  // namespace

PartitionDriver::PartitionDriver(DriverHost& host, std::shared_ptr<TargetPartition> target)
    : host_(host),
      target_(std::move(target)),
      since_(base::Clock::now()),
      ticket_at_(since_),
      retry_timer_(host.executor()),
      ticked_at_(since_),
      flushed_at_(since_) {}

PartitionDriver::~PartitionDriver() = default;

void PartitionDriver::restore(std::optional<Record> record) {
  handle(Restore{.record = std::move(record), .leader_epoch = target_->position().leader_epoch});
}

void PartitionDriver::close() {
  closed_ = true;
  todo_.clear();
  next_ = 0;
  leave_waiting();
}

void PartitionDriver::set_leader(SourceLeader leader, base::Uuid source_topic_id) {
  const bool moved = !leader_ || leader_->node != leader.node;
  leader_ = leader;
  source_topic_id_ = source_topic_id;
  // A fetch that waits at the old leader would wait for ever if that broker just goes on.
  if (moved && fetcher_ != nullptr && state_.pending == Pending::fetch && !pumping_) {
    Fetch again{.offset = state_.log_end,
                .last_epoch = state_.last_epoch,
                .source_epoch = state_.source_epoch};
    leave_waiting();
    finish(fetch(again), state_.ticket, true);
    pump();
  }
}

// ---- The machine's side.

void PartitionDriver::handle(const Event& event) {
  if (closed_) return;
  const State before = state_;
  Step next = step(std::move(state_), event, host_.settings(), host_.jitter_permille());
  state_ = std::move(next.state);
  if (state_.state != before.state || state_.skipped != before.skipped ||
      state_.error != before.error)
    note_transition(before, event);
  if (next.actions.empty()) return;
  take_up(std::move(next.actions));
  pump();
}

void PartitionDriver::take_up(std::vector<Action> actions) {
  leave_waiting();
  todo_ = std::move(actions);
  next_ = 0;
  ticket_at_ = base::Clock::now();
}

// A waiting fetch or retry is given up with its ticket; an alignment's answer is told by its
// ticket.
void PartitionDriver::leave_waiting() {
  if (fetcher_ != nullptr)
    std::exchange(fetcher_, nullptr)->drop(target_->topic(), target_->id().partition);
  retry_timer_.cancel();
}

void PartitionDriver::pump() {
  if (pumping_) return;
  pumping_ = true;
  while (!closed_ && !busy_ && next_ < todo_.size()) {
    const Action action = std::move(todo_[next_++]);
    const Ticket ticket = state_.ticket;
    const bool last = next_ == todo_.size();
    finish(perform(action, last), ticket, last);
  }
  pumping_ = false;
}

void PartitionDriver::finish(Performed performed, Ticket ticket, bool last) {
  if (!performed.finished || ticket != state_.ticket || closed_) return;
  if (performed.outcome && std::holds_alternative<Failed>(*performed.outcome)) {
    todo_.clear();
    next_ = 0;
    handle(*performed.outcome);
  } else if (last) {
    if (!performed.outcome) performed.outcome = Done{ticket};
    handle(*performed.outcome);
  }
}

PartitionDriver::Performed PartitionDriver::perform(const Action& action, bool last) {
  return std::visit(Overloaded{
                        [this](const RefuseWrites&) {
                          target_->refuse_writes(host_.mirror());
                          return Performed{};
                        },
                        [this](const Append&) { return append(); },
                        [this](const Fetch& what) { return fetch(what); },
                        [this](const ScheduleRetry& what) { return schedule(what); },
                        [this](const Align& what) {
                          host_.align(shared_from_this(), state_.ticket, what);
                          return Performed{.finished = false, .outcome = {}};
                        },
                        [this](const AdvanceLogStart& what) {
                          const auto moved = target_->advance_log_start(what.offset);
                          return Performed{
                              .finished = true,
                              .outcome = moved ? log_is(*moved) : failed(moved.error())};
                        },
                        [&](const auto&) { return begin_async(action, last); },
                    },
                    action);
}

PartitionDriver::Performed PartitionDriver::begin_async(const Action& action, bool last) {
  busy_ = true;
  host_.spawn(run_async(action, state_.ticket, last));
  return {.finished = false, .outcome = {}};
}

boost::asio::awaitable<void> PartitionDriver::run_async(Action action, Ticket ticket, bool last) {
  const auto alive = shared_from_this();
  Event outcome = co_await perform_async(action, ticket);
  busy_ = false;
  if (std::holds_alternative<Done>(outcome))
    finish({.finished = true, .outcome = {}}, ticket, last);
  else
    finish({.finished = true, .outcome = std::move(outcome)}, ticket, last);
  pump();
}

// Commands may change state_ meanwhile, so nothing is read from it after a suspension.
boost::asio::awaitable<Event> PartitionDriver::perform_async(const Action& action, Ticket ticket) {
  const auto give = [this, ticket](auto result, auto event_of) -> Event {
    if (!result) {
      const Event failure = failed(result.error());
      return Failed{ticket, std::get<Failed>(failure).failure, std::get<Failed>(failure).text};
    }
    return event_of(*result);
  };
  const auto log_event = [this, ticket](const LogPosition& p) -> Event {
    LogIs event = std::get<LogIs>(log_is(p));
    event.ticket = ticket;
    return event;
  };
  const auto give_void = [&](const base::Result<void>& result) -> Event {
    if (result) return Done{ticket};
    return Failed{ticket, Failure::local_error, result.error().message()};
  };
  if (const auto* persist = std::get_if<Persist>(&action)) {
    const auto done = co_await host_.persist(target_->id(), persist->record, state_.leader_epoch);
    co_return give_void(done);
  }
  if (std::holds_alternative<Forget>(action)) {
    const auto done = co_await host_.forget(target_->id());
    co_return give_void(done);
  }
  if (std::holds_alternative<AllowWrites>(action)) {
    const auto done = co_await target_->allow_writes();
    co_return give_void(done);
  }
  if (std::holds_alternative<Inspect>(action)) {
    const auto done = co_await target_->flush();
    co_return give(done, log_event);
  }
  if (const auto* cut = std::get_if<Truncate>(&action)) {
    const auto done = co_await truncate(*cut);
    co_return give(done, log_event);
  }
  if (const auto* restart = std::get_if<RestartAt>(&action)) {
    const auto done = co_await target_->restart_at(restart->offset);
    co_return give(done, log_event);
  }
  if (const auto* bump = std::get_if<BumpEpoch>(&action)) {
    const auto done = co_await target_->bump_epoch(bump->at_least);
    co_return give(done,
                   [ticket](LeaderEpoch epoch) -> Event { return EpochBumped{ticket, epoch}; });
  }
  if (std::holds_alternative<SettleGroups>(action)) {
    if (!source_is_foreign_) co_await host_.settle_groups(target_->topic(), offsets_here());
    co_return Done{ticket};
  }
  if (std::holds_alternative<WriteAbortMarkers>(action)) {
    const auto done = co_await target_->write_abort_markers();
    co_return give(done, [ticket](const LogPosition&) -> Event { return MarkersWritten{ticket}; });
  }
  CHECK(std::holds_alternative<WriteProducerIdReset>(action));
  const auto done = co_await target_->write_producer_id_reset();
  co_return give(done, [ticket](const LogPosition&) -> Event { return ResetWritten{ticket}; });
}

boost::asio::awaitable<base::Result<LogPosition>> PartitionDriver::truncate(Truncate what) {
  const LogPosition now = target_->position();
  base::Offset to = what.offset;
  if (what.epoch) {
    const auto end = target_->end_offset_for(*what.epoch);
    to = std::min(to, end ? end->end_offset : now.log_start);
  }
  if (to < now.log_start) co_return co_await target_->restart_at(to);
  co_return co_await target_->truncate_to(to);
}

Event PartitionDriver::log_is(const LogPosition& position) const {
  return LogIs{.ticket = state_.ticket,
               .log_start = position.log_start,
               .log_end = position.log_end,
               .last_epoch = position.last_epoch,
               .leader_epoch = position.leader_epoch};
}

Event PartitionDriver::failed(const base::Error& error) const {
  return Failed{state_.ticket, failure_of(error), error.message()};
}

PartitionDriver::Performed PartitionDriver::schedule(const ScheduleRetry& action) {
  retry_timer_.expires_after(std::chrono::milliseconds(action.delay_ms));
  retry_timer_.async_wait(
      [weak = weak_from_this(), ticket = state_.ticket](boost::system::error_code error) {
        const auto driver = weak.lock();
        if (!error && driver) driver->handle(RetryDue{ticket});
      });
  return {.finished = false, .outcome = {}};
}

// ---- Fetching.

PartitionDriver::Performed PartitionDriver::fetch(const Fetch& action) {
  const auto give_up = [this](SourceErrc why) {
    return Performed{.finished = true, .outcome = failed(why)};
  };
  if (!leader_) return give_up(SourceErrc::no_leader);
  Fetcher* fetcher = host_.fetcher_of(leader_->node);
  if (fetcher == nullptr) return give_up(SourceErrc::unknown_broker);
  FetchWish wish{.topic = target_->topic(),
                 .source_topic_id = source_topic_id_,
                 .partition = target_->id().partition,
                 .offset = action.offset,
                 .log_start = state_.log_start,
                 .last_epoch = action.last_epoch,
                 .source_epoch = action.source_epoch};
  fetcher->want(std::move(wish), this);
  fetcher_ = fetcher;
  fetching_from_ = leader_->node;
  return {.finished = false, .outcome = {}};
}

void PartitionDriver::on_fetch_failed(const base::Error& error, const std::string& text) {
  fetcher_ = nullptr;
  source_high_watermark_.reset();
  fetching_from_.reset();
  handle(Failed{state_.ticket, failure_of(error), text});
}

bool PartitionDriver::on_fetched(const FetchedPartition& answer) {
  if (closed_ || state_.pending != Pending::fetch) return true;
  const Ticket ticket = state_.ticket;
  // The fetcher takes the wish away once this returns, unless there is a new one by then.
  const auto used_up = [this](const Event& event) {
    fetcher_ = nullptr;
    handle(event);
    return true;
  };
  if (answer.error != 0 && is_refusal(answer.error))
    return used_up(FetchRefused{
        ticket, protocol::describe_error(static_cast<protocol::ErrorCode>(answer.error))});
  if (answer.error != 0) return used_up(failed(kafka_error(answer.error)));
  if (answer.diverging) return used_up(FetchRefused{ticket, "its log parts from the copy"});
  return answer.records.empty() ? on_nothing_new(answer) : on_batches(answer);
}

// An idle partition costs its machine nothing: it hears only what it does not know yet.
bool PartitionDriver::on_nothing_new(const FetchedPartition& answer) {
  source_high_watermark_ = answer.high_watermark;
  const base::Offset start = answer.log_start.value_or(0);
  const bool news = start > state_.source_log_start || state_.retry_attempt != 0 ||
                    !state_.error.empty() || state_.refusals != 0 || state_.failures != 0;
  if (!news) return false;
  fetcher_ = nullptr;
  handle(NothingNew{state_.ticket, start});
  return true;
}

bool PartitionDriver::on_batches(const FetchedPartition& answer) {
  const bool empty = state_.log_start == state_.log_end;
  const FetchedBatches batches =
      check_fetched(answer.records, state_.log_end, empty, state_.last_epoch);
  if (!batches.problem.empty()) {
    fetcher_ = nullptr;
    handle(Failed{state_.ticket, Failure::corrupt_batch, batches.problem});
    return true;
  }
  if (batches.bytes.empty()) return on_nothing_new(answer);  // a cut batch and nothing before it
  source_high_watermark_ = answer.high_watermark;
  fetcher_ = nullptr;
  fetched_ = batches.bytes;
  handle(Fetched{.ticket = state_.ticket,
                 .next_offset = batches.next_offset,
                 .last_epoch = batches.last_epoch,
                 .source_log_start = answer.log_start.value_or(0)});
  fetched_ = {};
  return true;
}

PartitionDriver::Performed PartitionDriver::append() {
  const base::Bytes bytes = std::exchange(fetched_, {});
  CHECK(!bytes.empty());
  const auto appended = target_->append(bytes);
  if (!appended) return {.finished = true, .outcome = failed(appended.error())};
  bytes_copied_ += bytes.size();
  return {.finished = true,
          .outcome = Appended{state_.ticket, appended->log_end, appended->last_epoch}};
}

// ---- Watching.

void PartitionDriver::tick(base::Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - ticked_at_).count();
  if (seconds > 0) {
    const double rate = static_cast<double>(bytes_copied_ - bytes_at_tick_) / seconds;
    bytes_per_second_ += rate_smoothing * (rate - bytes_per_second_);
  }
  ticked_at_ = now;
  bytes_at_tick_ = bytes_copied_;
  if (closed_) return;
  base::Clock::duration limit = local_deadline;
  switch (deadline(state_)) {
    case Deadline::none:
      return;
    case Deadline::source:
      limit = host_.source_deadline();
      if (fetcher_ != nullptr && fetcher_->heard_at() && now - *fetcher_->heard_at() < limit)
        return;  // a long poll without data is no silence
      break;
    case Deadline::local:
      break;
  }
  if (now - ticket_at_ > limit) handle(Timeout{state_.ticket});
}

bool PartitionDriver::flush_if_due(base::Clock::time_point now) {
  if (closed_ || flushing_ || busy_ || state_.state != MirrorState::mirroring) return false;
  const LogPosition position = target_->position();
  if (position.durable_end >= position.log_end) return false;
  const bool caught_up = source_high_watermark_ && position.log_end >= *source_high_watermark_;
  if (!caught_up && now - flushed_at_ < flush_interval) return false;
  flushed_at_ = now;
  flushing_ = true;
  host_.spawn(flush());
  return true;
}

boost::asio::awaitable<void> PartitionDriver::flush() {
  const auto alive = shared_from_this();
  const auto flushed = co_await target_->flush();
  flushing_ = false;
  // What is not on disk must not pass for a copy.
  if (!flushed && state_.state == MirrorState::mirroring)
    handle(MarkFailed{failure_of(flushed.error()), flushed.error().message()});
}

bool PartitionDriver::source_is_heard() const {
  return fetcher_ != nullptr && fetcher_->heard_at().has_value();
}

void PartitionDriver::note_transition(const State& before, const Event& event) {
  auto& log = base::logger("mirror");
  const std::string what =
      fmt::format("{} {}-{}", host_.mirror(), target_->topic(), target_->id().partition);
  if (state_.state != before.state) {
    since_ = base::Clock::now();
    if (state_.state == MirrorState::stopping)
      source_is_foreign_ = before.state == MirrorState::failed && before.last_failure &&
                           is_of_another_topic(*before.last_failure);
    if (state_.state == MirrorState::failed)
      log.warn("{}: {} -> FAILED, attempt {}: {}", what, name(before.state), state_.retry_attempt,
               state_.error);
    else
      log.info("{}: {} -> {} ({})", what, name(before.state), name(state_.state),
               event_name(event));
  }
  if (state_.skipped && state_.skipped != before.skipped)
    log.warn("{}: the source deleted offsets {} to {} before they were copied", what,
             state_.skipped->from, state_.skipped->to - 1);
}

GroupPartition PartitionDriver::offsets_here() const {
  const LogPosition position = target_->position();
  GroupPartition out{.id = target_->id(),
                     .log_start = position.log_start,
                     .durable_end = position.durable_end,
                     .end_epoch = {},
                     .leader_epoch = position.leader_epoch};
  if (position.durable_end == position.log_end) out.end_epoch = position.last_epoch;
  return out;
}

PartitionDescription PartitionDriver::describe(base::Clock::time_point now) const {
  PartitionDescription out;
  const LogPosition position = target_->position();
  out.partition = target_->id().partition;
  out.state = name(state_.state);
  out.in_state = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  out.destination_offset = position.durable_end;
  // Known only while it is being heard: a figure from before the silence would look like progress.
  if (state_.state == MirrorState::mirroring && source_is_heard())
    out.source_offset = source_high_watermark_;
  if (out.source_offset)
    out.lag = std::max<base::Offset>(
        0, *out.source_offset - std::max(position.durable_end, state_.source_log_start));
  out.retry_attempt = static_cast<std::int16_t>(std::clamp(state_.retry_attempt, -1, 32767));
  if (!state_.error.empty()) out.error_message = state_.error;
  if (state_.position && (state_.position->epoch || state_.position->offset > 0))
    out.last_mirror_position =
        LastMirrorPosition{state_.position->epoch.value_or(-1), state_.position->offset};
  out.writable = state_.state == MirrorState::stopped && state_.pending == Pending::nothing;
  out.bytes_copied = bytes_copied_;
  out.bytes_per_second = bytes_per_second_;
  out.leader_epoch = position.leader_epoch;
  out.source_leader_epoch = state_.source_epoch;
  if (state_.skipped) out.skipped = OffsetRange{state_.skipped->from, state_.skipped->to};
  return out;
}

}  // namespace mirror
