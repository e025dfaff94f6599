#include "broker/transaction_partition.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "broker/bounds.h"
#include "broker/error_map.h"
#include "broker/shard.h"
#include "broker/transaction_coordinator.h"
#include "protocol/base/log.h"

namespace broker {

using protocol::ErrorCode;

namespace {

spdlog::logger& transactions_log() {
  return base::logger("transactions");
}

// What a client hears when a decision could not be written: it looks for the coordinator anew.
ErrorCode decision_not_written(const base::Error& error) {
  return kafka_error(error) == ErrorCode::message_too_large ? ErrorCode::unknown_server_error
                                                            : ErrorCode::not_coordinator;
}

}  // namespace

TransactionPartition::TransactionPartition(TransactionCoordinator& owner, Shard& home,
                                           std::shared_ptr<Partition> partition,
                                           transactions::Settings settings)
    : owner_(owner), home_(home), log_(home, std::move(partition)), settings_(settings) {
  if (!log_.empty()) return;
  state_ = std::make_unique<transactions::TransactionShard>(settings_);  // nothing to wait for
  loading_ = false;
}

transactions::Now TransactionPartition::now() {
  using std::chrono::milliseconds;
  const auto since = base::Clock::now().time_since_epoch();
  return {std::chrono::duration_cast<milliseconds>(since).count(), base::wall_clock_ms()};
}

ErrorCode TransactionPartition::status() const {
  if (ended() || home_.stopping()) return ErrorCode::not_coordinator;
  if (state_) return ErrorCode::none;
  return loading_ ? ErrorCode::coordinator_load_in_progress : ErrorCode::not_coordinator;
}

boost::asio::awaitable<void> TransactionPartition::run() {
  const auto self = shared_from_this();
  while (!ended()) {
    // An exception, as when there is no memory: what was under way is not known any more.
    bool failed = false;
    try {
      co_await step();
    } catch (const std::exception& failure) {
      failed = true;
      loading_ = false;
      give_up(failure.what());
    }
    if (failed && !ended()) co_await wake_.wait(base::Clock::now() + coordinator_reload_interval);
  }
}

boost::asio::awaitable<void> TransactionPartition::step() {
  if (!state_) co_await load();
  if (ended()) co_return;
  if (!state_) {
    co_await wake_.wait(base::Clock::now() + coordinator_reload_interval);
    co_return;
  }
  const std::optional<std::int64_t> next = state_->next_deadline_ms();
  if (next)
    co_await wake_.wait(base::Clock::time_point(std::chrono::milliseconds(*next)));
  else
    co_await wake_.wait();
  while (state_ && !ended()) {
    std::optional<transactions::Decision> due = state_->expire(now());
    if (!due) break;
    for (const std::string& id : due->endings)
      transactions_log().info("the transaction of '{}' has run too long and is aborted", id);
    transactions::Decision decision = std::move(*due);
    co_await carry_out(std::move(decision));
  }
}

boost::asio::awaitable<void> TransactionPartition::load() {
  if (log_.offline()) co_return;  // comes back by itself, or with a restart
  loading_ = true;
  const auto begun = base::Clock::now();
  auto state = std::make_unique<transactions::TransactionShard>(settings_);
  std::size_t skipped = 0;
  LogContent content;
  content.record = [&state, &skipped](base::Bytes key, std::optional<base::Bytes> value,
                                      const groups::Place&) {
    if (!state->apply(key, value)) ++skipped;
  };
  const auto replayed = co_await log_.replay(std::move(content));
  loading_ = false;
  const std::int32_t index = log_.partition().index();
  if (replayed.has_error()) {
    if (!ended())
      transactions_log().error("the transactions of __transaction_state-{} cannot be loaded: {}",
                               index, replayed.error().message());
    co_return;
  }
  if (skipped > 0)
    transactions_log().error("__transaction_state-{} has {} records that are not understood", index,
                             skipped);
  state_ = std::move(state);
  transactions::Decision decision = state_->loaded(now());
  using std::chrono::milliseconds;
  transactions_log().info(
      "__transaction_state-{}: loaded {} transactional ids in {} ms, {} transactions are to be "
      "ended",
      index, state_->size(),
      std::chrono::duration_cast<milliseconds>(base::Clock::now() - begun).count(),
      decision.endings.size());
  co_await carry_out(std::move(decision));
}

void TransactionPartition::end() {
  ended_ = true;
  wake_.notify_all();
  changed_.notify_all();
}

base::Result<void> TransactionPartition::write(const transactions::Decision& decision) {
  if (decision.records.empty()) return {};
  TRY_VOID(log_.append(decision.records, std::nullopt, base::wall_clock_ms()));
  for (const transactions::Record& one : decision.records) {
    std::optional<base::Bytes> value;
    if (one.value) value = base::Bytes(*one.value);
    state_->apply(one.key, value);
  }
  return {};
}

boost::asio::awaitable<ErrorCode> TransactionPartition::carry_out(transactions::Decision decision) {
  const auto self = shared_from_this();
  const std::uint64_t mine = incarnation_;
  base::Result<void> done = write(decision);
  if (done.has_value()) {
    if (!decision.records.empty()) {
      wake_.notify_all();
      changed_.notify_all();
    }
    done = co_await log_.flush();
  }
  if (done.has_error()) {
    if (mine == incarnation_) give_up(done.error().message());
    co_return decision_not_written(done.error());
  }
  if (mine != incarnation_ || ended()) co_return ErrorCode::not_coordinator;
  for (std::string& id : decision.endings) owner_.spawn(home_, finish(std::move(id)));
  co_return ErrorCode::none;
}

void TransactionPartition::give_up(std::string_view why) {
  if (!ended())
    transactions_log().error(
        "__transaction_state-{}: a decision was not written ({}); loading again",
        log_.partition().index(), why);
  ++incarnation_;
  state_.reset();
  wake_.notify_all();
  changed_.notify_all();
}

boost::asio::awaitable<void> TransactionPartition::finish(std::string transactional_id) {
  const auto self = shared_from_this();
  const std::uint64_t mine = incarnation_;
  std::chrono::milliseconds pause = marker_retry_min;
  while (status() == ErrorCode::none && mine == incarnation_) {
    bool done = false;
    try {
      done = co_await try_to_finish(transactional_id);
    } catch (const std::exception& failure) {
      transactions_log().error("the transaction of '{}' is to be ended again: {}", transactional_id,
                               failure.what());
    }
    if (done) co_return;
    co_await home_.stop_signal().wait(base::Clock::now() + pause);
    pause = std::min(pause * 2, marker_retry_max);
  }
}

boost::asio::awaitable<bool> TransactionPartition::try_to_finish(std::string transactional_id) {
  const std::uint64_t mine = incarnation_;
  std::optional<transactions::Ending> ending = state_->ending(transactional_id);
  if (!ending) co_return true;
  const transactions::Producer producer = ending->producer;
  const bool all = co_await write_markers(transactional_id, std::move(*ending));
  if (status() != ErrorCode::none || mine != incarnation_) co_return true;  // loads again
  if (!all) co_return false;
  transactions::Decision decision = state_->complete(transactional_id, producer, now());
  co_await carry_out(std::move(decision));
  co_return true;
}

boost::asio::awaitable<bool> TransactionPartition::write_markers(std::string transactional_id,
                                                                 transactions::Ending ending) {
  const std::uint64_t mine = incarnation_;
  TransactionMarker marker;
  marker.producer_id = ending.producer.id;
  marker.producer_epoch = ending.producer.epoch;
  marker.committed = ending.commit;
  marker.coordinator_epoch = log_.partition().leader_epoch();
  marker.transaction_version = ending.version;
  std::vector<transactions::Part> parts(ending.partitions.begin(), ending.partitions.end());
  std::vector<Job<bool>> jobs;
  jobs.reserve(parts.size());
  for (const transactions::Part& part : parts) {
    auto job = [this, marker, part] { return owner_.write_owed_marker(part, marker); };
    jobs.push_back({&home_, std::move(job)});
  }
  bool all = true;
  if (jobs.empty()) co_return all;
  const std::vector<bool> done = co_await on_each(std::move(jobs));
  if (mine != incarnation_ || !state_) co_return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (done[i])
      state_->marked(transactional_id, ending.producer, parts[i]);
    else
      all = false;
  }
  co_return all;
}

boost::asio::awaitable<void> TransactionPartition::settled(std::string transactional_id,
                                                           base::Clock::time_point deadline) {
  const auto self = shared_from_this();
  while (status() == ErrorCode::none && state_->ending(transactional_id) &&
         base::Clock::now() < deadline)
    co_await changed_.wait(deadline);
}

boost::asio::awaitable<void> TransactionPartition::clean() {
  if (status() != ErrorCode::none) co_return;
  transactions::Decision decision = state_->clean(now());
  if (!decision.records.empty())
    transactions_log().info("__transaction_state-{}: {} transactional ids were not used for long",
                            log_.partition().index(), decision.records.size());
  co_await carry_out(std::move(decision));
}

}  // namespace broker
