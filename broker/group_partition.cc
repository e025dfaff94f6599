#include "broker/group_partition.h"

#include <chrono>
#include <utility>

#include "broker/bounds.h"
#include "broker/error_map.h"
#include "broker/group_settings.h"
#include "broker/shard.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

using protocol::ErrorCode;

namespace {

spdlog::logger& groups_log() {
  return base::logger("groups");
}

std::int64_t monotonic_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(base::Clock::now().time_since_epoch()).count();
}

// What a client hears when a decision could not be written: it looks for the coordinator anew.
ErrorCode not_written(const base::Error& error) {
  return kafka_error(error) == ErrorCode::message_too_large ? ErrorCode::unknown_server_error
                                                            : ErrorCode::not_coordinator;
}

void set_error(std::variant<groups::JoinReply, groups::SyncReply>& answer, ErrorCode error) {
  if (auto* join = std::get_if<groups::JoinReply>(&answer)) {
    groups::JoinReply refused;
    refused.error = error;
    refused.member_id = std::move(join->member_id);
    *join = std::move(refused);
  } else {
    groups::SyncReply refused;
    refused.error = error;
    answer = std::move(refused);
  }
}

}  // namespace

GroupPartition::GroupPartition(Shard& home, std::shared_ptr<Partition> partition,
                               groups::Limits limits, groups::consumer::Settings consumer_settings)
    : home_(home),
      log_(home, std::move(partition)),
      limits_(limits),
      consumer_settings_(std::move(consumer_settings)) {
  if (!log_.empty()) return;
  state_ = fresh_state();  // there is nothing to wait for
  loading_ = false;
}

groups::Now GroupPartition::now() {
  return {monotonic_ms(), base::wall_clock_ms()};
}

std::unique_ptr<groups::GroupShard> GroupPartition::fresh_state() {
  auto state = std::make_unique<groups::GroupShard>(limits_, base::Random::from_system());
  state->set_consumer_settings(consumer_settings_);
  group_configs_.reset();
  return state;
}

groups::GroupShard& GroupPartition::current_state() {
  SnapshotPtr catalog = home_.catalog();
  if (!topics_ || topics_->catalog() != catalog)
    topics_ = std::make_shared<const GroupTopics>(std::move(catalog));
  state_->set_topics(topics_);
  take_group_configs();
  return *state_;
}

void GroupPartition::take_group_configs() {
  const Snapshot& catalog = *topics_->catalog();
  if (group_configs_ == catalog.groups()) return;
  group_configs_ = catalog.groups();
  groups::GroupShard::SettingsOfGroups settings;
  for (const auto& [name, own] : *group_configs_)
    settings.emplace(name, settings_of_group(own, catalog.config(), consumer_settings_));
  state_->set_settings_of_groups(std::move(settings));
}

ErrorCode GroupPartition::status() const {
  if (ended() || home_.stopping()) return ErrorCode::not_coordinator;
  if (state_) return ErrorCode::none;
  return loading_ ? ErrorCode::coordinator_load_in_progress : ErrorCode::not_coordinator;
}

boost::asio::awaitable<void> GroupPartition::run() {
  const auto self = shared_from_this();
  while (!ended()) {
    if (!state_) co_await load();
    if (ended()) break;
    if (!state_) {
      co_await wake_.wait(base::Clock::now() + coordinator_reload_interval);
      continue;
    }
    armed_ms_ = state_->next_deadline_ms();
    if (armed_ms_)
      co_await wake_.wait(base::Clock::time_point(std::chrono::milliseconds(*armed_ms_)));
    else
      co_await wake_.wait();
    armed_ms_.reset();
    while (state_ && !ended()) {
      std::optional<groups::Decision> due = current_state().expire(now());
      if (!due) break;
      groups::Decision decision = std::move(*due);
      co_await carry_out(std::move(decision));
    }
  }
}

boost::asio::awaitable<void> GroupPartition::load() {
  if (log_.offline()) co_return;  // comes back by itself, or with a restart
  loading_ = true;
  const auto begun = base::Clock::now();
  auto state = fresh_state();
  std::size_t skipped = 0;
  LogContent apply;
  apply.record = [&state, &skipped](base::Bytes key, std::optional<base::Bytes> value,
                                    const groups::Place& place) {
    if (!state->apply(key, value, place)) ++skipped;
  };
  apply.marker = [&state](base::ProducerId producer, bool committed) {
    state->apply_marker(producer, committed);
  };
  const auto replayed = co_await log_.replay(std::move(apply));
  loading_ = false;
  const std::int32_t index = log_.partition().index();
  if (replayed.has_error()) {
    if (!ended())
      groups_log().error("the groups of __consumer_offsets-{} cannot be loaded: {}", index,
                         replayed.error().message());
    co_return;
  }
  if (skipped > 0)
    groups_log().error("__consumer_offsets-{} has {} records that are not understood", index,
                       skipped);
  using std::chrono::milliseconds;
  groups_log().info("__consumer_offsets-{}: loaded {} groups and {} offsets in {} ms", index,
                    state->groups().size(), state->offsets().count(),
                    std::chrono::duration_cast<milliseconds>(base::Clock::now() - begun).count());
  state_ = std::move(state);
  groups::Decision decision = current_state().loaded(now());
  co_await carry_out(std::move(decision));
}

void GroupPartition::end(ErrorCode error) {
  ended_ = true;
  if (state_) deliver(state_->abandon(error));
  wake_.notify_all();
}

base::Result<void> GroupPartition::write(const groups::Decision& decision) {
  groups::Place place;
  if (decision.transaction) place.transaction = decision.transaction->id;
  TRY(place.offset, log_.append(decision.records, decision.transaction, base::wall_clock_ms()));
  for (const groups::Record& one : decision.records) {
    std::optional<base::Bytes> value;
    if (one.value) value = base::Bytes(*one.value);
    state_->apply(one.key, value, place);
    ++place.offset;
  }
  return {};
}

base::Result<void> GroupPartition::write(const TransactionMarker& marker) {
  TRY_VOID(log_.append(marker, base::wall_clock_ms()));
  state_->apply_marker(marker.producer_id, marker.committed);
  return {};
}

boost::asio::awaitable<ErrorCode> GroupPartition::carry_out(groups::Decision decision) {
  if (decision.transaction && !decision.records.empty()) {
    const ErrorCode refused = log_.check(*decision.transaction);
    if (refused != ErrorCode::none) co_return refused;
  }
  const std::uint64_t mine = incarnation_;
  base::Result<void> done = write(decision);
  if (done.has_value()) {
    arm();
    done = co_await log_.flush();
  }
  if (done.has_value()) {
    deliver(std::move(decision.replies));
    co_return ErrorCode::none;
  }
  const ErrorCode error = not_written(done.error());
  for (groups::Reply& one : decision.replies) set_error(one.answer, error);
  deliver(std::move(decision.replies));
  if (mine == incarnation_) give_up(done.error());
  co_return error;
}

boost::asio::awaitable<ErrorCode> GroupPartition::end_transaction(TransactionMarker marker) {
  const auto self = shared_from_this();
  ErrorCode refused = status();
  if (refused == ErrorCode::none) refused = log_.check(marker);
  if (refused != ErrorCode::none) co_return refused;
  const std::uint64_t mine = incarnation_;
  base::Result<void> done = write(marker);
  if (done.has_value()) done = co_await log_.flush();
  if (done.has_value()) co_return ErrorCode::none;
  if (mine == incarnation_) give_up(done.error());
  co_return not_written(done.error());
}

void GroupPartition::give_up(const base::Error& error) {
  if (!ended())
    groups_log().error("__consumer_offsets-{}: a decision was not written ({}); loading again",
                       log_.partition().index(), error.message());
  ++incarnation_;
  if (state_) deliver(state_->abandon(ErrorCode::not_coordinator));
  state_.reset();
  wake_.notify_all();
}

void GroupPartition::arm() {
  const std::optional<std::int64_t> next = state_->next_deadline_ms();
  if (next && (!armed_ms_ || *next < *armed_ms_)) wake_.notify_all();
}

void GroupPartition::deliver(std::vector<groups::Reply> replies) {
  for (groups::Reply& one : replies) {
    const auto at = waiting_.find(one.ticket);
    if (at == waiting_.end()) continue;
    const std::shared_ptr<Waiting> who = std::move(at->second);
    waiting_.erase(at);
    who->answer = std::move(one.answer);
    who->answered.notify_all();
  }
}

boost::asio::awaitable<GroupPartition::Answer> GroupPartition::wait_for(groups::Ticket ticket,
                                                                        groups::Decision decision) {
  const auto self = shared_from_this();
  const auto who = std::make_shared<Waiting>();
  waiting_.emplace(ticket, who);
  co_await carry_out(std::move(decision));
  while (!who->answer) co_await who->answered.wait();
  co_return std::move(*who->answer);
}

boost::asio::awaitable<groups::JoinReply> GroupPartition::join(
    const protocol::JoinGroupRequest& asked, groups::Caller caller) {
  groups::JoinReply reply;
  reply.error = status();
  if (reply.error != ErrorCode::none) co_return reply;
  const groups::Ticket ticket = ++last_ticket_;
  groups::Decision decision = current_state().join(asked, caller, ticket, now());
  Answer answer = co_await wait_for(ticket, std::move(decision));
  co_return std::move(std::get<groups::JoinReply>(answer));
}

boost::asio::awaitable<groups::SyncReply> GroupPartition::sync(
    const protocol::SyncGroupRequest& asked) {
  groups::SyncReply reply;
  reply.error = status();
  if (reply.error != ErrorCode::none) co_return reply;
  const groups::Ticket ticket = ++last_ticket_;
  groups::Decision decision = current_state().sync(asked, ticket, now());
  Answer answer = co_await wait_for(ticket, std::move(decision));
  co_return std::move(std::get<groups::SyncReply>(answer));
}

boost::asio::awaitable<void> GroupPartition::clean() {
  if (status() != ErrorCode::none) co_return;
  const auto self = shared_from_this();
  groups::Decision decision = current_state().clean(now());
  if (!decision.records.empty())
    groups_log().info("__consumer_offsets-{}: {} offsets and groups are too old",
                      log_.partition().index(), decision.records.size());
  co_await carry_out(std::move(decision));
}

boost::asio::awaitable<void> GroupPartition::forget_topic(std::string topic) {
  if (status() != ErrorCode::none) co_return;
  const auto self = shared_from_this();
  groups::Decision decision = state_->forget_topic(topic);
  co_await carry_out(std::move(decision));
}

}  // namespace broker
