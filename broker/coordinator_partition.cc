#include "broker/coordinator_partition.h"

#include <chrono>
#include <exception>

#include "broker/bounds.h"
#include "broker/error_map.h"
#include "broker/groups/group_shard.h"
#include "broker/shard.h"
#include "broker/transactions/transaction_shard.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

using protocol::ErrorCode;

namespace {

std::int64_t whole_ms(base::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

// What a client hears when a decision could not be written: it looks for the coordinator anew.
ErrorCode not_written(const base::Error& error) {
  return kafka_error(error) == ErrorCode::message_too_large ? ErrorCode::unknown_server_error
                                                            : ErrorCode::not_coordinator;
}

}  // namespace

template <class State>
void CoordinatorPartition<State>::begin() {
  if (!log_.empty()) return;
  state_ = fresh_state();
  loading_ = false;
}

template <class State>
groups::Now CoordinatorPartition<State>::now() {
  return {whole_ms(base::Clock::now().time_since_epoch()), base::wall_clock_ms()};
}

template <class State>
ErrorCode CoordinatorPartition<State>::status() const {
  if (ended() || home_.stopping()) return ErrorCode::not_coordinator;
  if (state_) return ErrorCode::none;
  return loading_ ? ErrorCode::coordinator_load_in_progress : ErrorCode::not_coordinator;
}

template <class State>
boost::asio::awaitable<void> CoordinatorPartition<State>::run() {
  const auto self = this->shared_from_this();
  while (!ended()) {
    // An exception, as when there is no memory: what was under way is not known any more.
    bool failed = false;
    try {
      co_await step();
    } catch (const std::exception& failure) {
      failed = true;
      loading_ = false;
      end_lost_waits();
      state_.reset();
      give_up(failure.what());
    }
    if (failed && !ended()) co_await wake_.wait(base::Clock::now() + coordinator_reload_interval);
  }
}

template <class State>
boost::asio::awaitable<void> CoordinatorPartition<State>::step() {
  if (!state_) co_await load();
  if (ended()) co_return;
  if (!state_) {
    co_await wake_.wait(base::Clock::now() + coordinator_reload_interval);
    co_return;
  }
  armed_ms_ = state_->next_deadline_ms();
  if (armed_ms_)
    co_await wake_.wait(base::Clock::time_point(std::chrono::milliseconds(*armed_ms_)));
  else
    co_await wake_.wait();
  armed_ms_.reset();
  while (state_ && !ended()) {
    std::optional<Decision> next = due();
    if (!next) break;
    co_await carry_out(std::move(*next));
  }
}

template <class State>
boost::asio::awaitable<void> CoordinatorPartition<State>::load() {
  if (log_.offline()) co_return;  // comes back by itself, or with a restart
  loading_ = true;
  const auto begun = base::Clock::now();
  auto state = fresh_state();
  std::size_t skipped = 0;
  LogContent content;
  content.record = [this, &state, &skipped](base::Bytes key, std::optional<base::Bytes> value,
                                            const groups::Place& place) {
    if (!apply(*state, key, value, place)) ++skipped;
  };
  content.marker = [this, &state](base::ProducerId producer, bool committed) {
    apply_marker(*state, producer, committed);
  };
  const auto replayed = co_await log_.replay(std::move(content));
  loading_ = false;
  spdlog::logger& log = base::logger(kind_.keeps);
  const std::int32_t index = log_.partition().index();
  if (replayed.has_error()) {
    if (!ended())
      log.error("the {} of {}-{} cannot be loaded: {}", kind_.keeps, kind_.topic, index,
                replayed.error().message());
    co_return;
  }
  if (skipped > 0)
    log.error("{}-{} has {} records that are not understood", kind_.topic, index, skipped);
  state_ = std::move(state);
  co_await loaded(whole_ms(base::Clock::now() - begun));
}

template <class State>
void CoordinatorPartition<State>::end(ErrorCode error) {
  ended_ = true;
  end_waits(error);
  wake_.notify_all();
}

template <class State>
base::Result<void> CoordinatorPartition<State>::write(
    const Decision& decision, const std::optional<groups::Producer>& transaction) {
  groups::Place place;
  if (transaction) place.transaction = transaction->id;
  TRY(place.offset, log_.append(decision.records, transaction, base::wall_clock_ms()));
  for (const groups::Record& one : decision.records) {
    std::optional<base::Bytes> value;
    if (one.value) value = base::Bytes(*one.value);
    apply(*state_, one.key, value, place);
    ++place.offset;
  }
  return {};
}

template <class State>
boost::asio::awaitable<ErrorCode> CoordinatorPartition<State>::settle(base::Result<void> written) {
  const std::uint64_t mine = incarnation_;
  if (written.has_value()) written = co_await log_.flush();
  if (written.has_value()) co_return ErrorCode::none;
  if (mine == incarnation_) give_up(written.error().message());
  co_return not_written(written.error());
}

template <class State>
void CoordinatorPartition<State>::give_up(std::string_view why) {
  if (!ended())
    base::logger(kind_.keeps)
        .error("{}-{}: a decision was not written ({}); loading again", kind_.topic,
               log_.partition().index(), why);
  ++incarnation_;
  end_waits(ErrorCode::not_coordinator);
  state_.reset();
  wake_.notify_all();
}

template <class State>
boost::asio::awaitable<void> CoordinatorPartition<State>::clean() {
  if (status() != ErrorCode::none) co_return;
  const auto self = this->shared_from_this();
  Decision decision = current_state().clean(now());
  if (!decision.records.empty())
    base::logger(kind_.keeps)
        .info("{}-{}: {} {}", kind_.topic, log_.partition().index(), decision.records.size(),
              kind_.cleaned);
  co_await carry_out(std::move(decision));
}

template class CoordinatorPartition<groups::GroupShard>;
template class CoordinatorPartition<transactions::TransactionShard>;

}  // namespace broker
