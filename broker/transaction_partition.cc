#include "broker/transaction_partition.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "broker/bounds.h"
#include "broker/shard.h"
#include "broker/transaction_coordinator.h"
#include "protocol/base/log.h"

namespace broker {

using protocol::ErrorCode;

namespace {

spdlog::logger& transactions_log() {
  return base::logger("transactions");
}

}  // namespace

TransactionPartition::TransactionPartition(TransactionCoordinator& owner, Shard& home,
                                           std::shared_ptr<Partition> partition,
                                           transactions::Settings settings)
    : CoordinatorPartition(transactions_kind, home, std::move(partition)),
      owner_(owner),
      settings_(settings) {
  begin();
}

std::unique_ptr<transactions::TransactionShard> TransactionPartition::fresh_state() {
  return std::make_unique<transactions::TransactionShard>(settings_);
}

bool TransactionPartition::apply(transactions::TransactionShard& state, base::Bytes key,
                                 std::optional<base::Bytes> value, const groups::Place&) {
  return state.apply(key, value);
}

boost::asio::awaitable<void> TransactionPartition::loaded(std::int64_t took_ms) {
  transactions::Decision decision = state_->loaded(now());
  transactions_log().info(
      "{}-{}: loaded {} transactional ids in {} ms, {} transactions are to be ended", kind_.topic,
      log_.partition().index(), state_->size(), took_ms, decision.endings.size());
  co_await carry_out(std::move(decision));
}

std::optional<transactions::Decision> TransactionPartition::due() {
  std::optional<transactions::Decision> due = state_->expire(now());
  if (!due) return due;
  for (const std::string& id : due->endings)
    transactions_log().info("the transaction of '{}' has run too long and is aborted", id);
  return due;
}

void TransactionPartition::end_waits(ErrorCode) {
  changed_.notify_all();
}

boost::asio::awaitable<ErrorCode> TransactionPartition::carry_out(transactions::Decision decision) {
  const auto self = shared_from_this();
  const std::uint64_t mine = incarnation_;
  base::Result<void> written = write(decision);
  if (written.has_value() && !decision.records.empty()) {
    wake_.notify_all();
    changed_.notify_all();
  }
  const ErrorCode error = co_await settle(std::move(written));
  if (error != ErrorCode::none) co_return error;
  if (mine != incarnation_ || ended()) co_return ErrorCode::not_coordinator;
  for (std::string& id : decision.endings) owner_.spawn(home_, finish(std::move(id)));
  co_return ErrorCode::none;
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

}  // namespace broker
