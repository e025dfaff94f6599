#include "broker/group_partition.h"

#include <utility>

#include "broker/group_settings.h"
#include "broker/shard.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

using protocol::ErrorCode;

namespace {

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
    : CoordinatorPartition(groups_kind, home, std::move(partition)),
      limits_(limits),
      consumer_settings_(std::move(consumer_settings)) {
  begin();
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

bool GroupPartition::apply(groups::GroupShard& state, base::Bytes key,
                           std::optional<base::Bytes> value, const groups::Place& place) {
  return state.apply(key, value, place);
}

void GroupPartition::apply_marker(groups::GroupShard& state, base::ProducerId producer,
                                  bool committed) {
  state.apply_marker(producer, committed);
}

boost::asio::awaitable<void> GroupPartition::loaded(std::int64_t took_ms) {
  base::logger(kind_.keeps)
      .info("{}-{}: loaded {} groups and {} offsets in {} ms", kind_.topic,
            log_.partition().index(), state_->groups().size(), state_->offsets().count(), took_ms);
  groups::Decision decision = current_state().loaded(now());
  co_await carry_out(std::move(decision));
}

void GroupPartition::end_waits(ErrorCode error) {
  if (state_) deliver(state_->abandon(error));
}

void GroupPartition::end_lost_waits() {
  for (const auto& [ticket, who] : std::exchange(waiting_, {})) who->answered.notify_all();
}

boost::asio::awaitable<ErrorCode> GroupPartition::carry_out(groups::Decision decision) {
  if (decision.transaction && !decision.records.empty()) {
    const ErrorCode refused = log_.check(*decision.transaction);
    if (refused != ErrorCode::none) co_return refused;
  }
  base::Result<void> written = write(decision, decision.transaction);
  if (written.has_value()) arm();
  const ErrorCode error = co_await settle(std::move(written));
  if (error != ErrorCode::none)
    for (groups::Reply& one : decision.replies) set_error(one.answer, error);
  deliver(std::move(decision.replies));
  co_return error;
}

boost::asio::awaitable<ErrorCode> GroupPartition::end_transaction(TransactionMarker marker) {
  const auto self = shared_from_this();
  ErrorCode refused = status();
  if (refused == ErrorCode::none) refused = log_.check(marker);
  if (refused != ErrorCode::none) co_return refused;
  base::Result<void> written = log_.append(marker, base::wall_clock_ms());
  if (written.has_value()) state_->apply_marker(marker.producer_id, marker.committed);
  co_return co_await settle(std::move(written));
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
                                                                        groups::Decision decision,
                                                                        Answer lost) {
  const auto self = shared_from_this();
  const auto who = std::make_shared<Waiting>();
  who->answer = std::move(lost);
  waiting_.emplace(ticket, who);
  co_await carry_out(std::move(decision));
  while (waiting_.contains(ticket)) co_await who->answered.wait();
  co_return std::move(who->answer);
}

boost::asio::awaitable<groups::JoinReply> GroupPartition::join(
    const protocol::JoinGroupRequest& asked, groups::Caller caller) {
  groups::JoinReply reply;
  reply.error = status();
  if (reply.error != ErrorCode::none) co_return reply;
  const groups::Ticket ticket = ++last_ticket_;
  groups::Decision decision = current_state().join(asked, caller, ticket, now());
  reply.error = ErrorCode::not_coordinator;
  Answer answer = co_await wait_for(ticket, std::move(decision), std::move(reply));
  co_return std::move(std::get<groups::JoinReply>(answer));
}

boost::asio::awaitable<groups::SyncReply> GroupPartition::sync(
    const protocol::SyncGroupRequest& asked) {
  groups::SyncReply reply;
  reply.error = status();
  if (reply.error != ErrorCode::none) co_return reply;
  const groups::Ticket ticket = ++last_ticket_;
  groups::Decision decision = current_state().sync(asked, ticket, now());
  reply.error = ErrorCode::not_coordinator;
  Answer answer = co_await wait_for(ticket, std::move(decision), std::move(reply));
  co_return std::move(std::get<groups::SyncReply>(answer));
}

boost::asio::awaitable<void> GroupPartition::forget_topic(std::string topic) {
  if (status() != ErrorCode::none) co_return;
  const auto self = shared_from_this();
  groups::Decision decision = state_->forget_topic(topic);
  co_await carry_out(std::move(decision));
}

}  // namespace broker
