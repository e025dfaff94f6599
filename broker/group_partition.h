// The groups that one partition of __consumer_offsets keeps: loads them, carries out what the pure
// core decides, wakes it when a timer is due. On the partition's shard only.
//
// Nothing else runs between a decision and the moment when its records are appended and applied, so
// the next decision sees them. Replies wait until the disk has everything that was decided on
// before them, in one sync for all who come in the meantime.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "broker/coordinator_log.h"
#include "broker/group_topics.h"
#include "broker/groups/group_shard.h"
#include "broker/transaction_marker.h"
#include "broker/wake_signal.h"
#include "protocol/error_code.h"

namespace broker {

class Shard;

// An answer, or why there is none.
template <class Answer>
struct GroupOutcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  Answer value{};
};

class GroupPartition : public std::enable_shared_from_this<GroupPartition> {
 public:
  GroupPartition(Shard& home, std::shared_ptr<Partition> partition, groups::Limits limits,
                 groups::consumer::Settings consumer_settings);

  // Loads, then sees to timers until the end.
  boost::asio::awaitable<void> run();
  // Who waits is told `error`; nothing is served any more.
  void end(protocol::ErrorCode error);
  bool ended() const { return ended_ || log_.closed(); }

  // none when it serves; coordinator_load_in_progress, not_coordinator.
  protocol::ErrorCode status() const;

  // These answer with the error when it does not serve. What is asked must stay there meanwhile.
  boost::asio::awaitable<groups::JoinReply> join(const protocol::JoinGroupRequest& asked,
                                                 groups::Caller caller);
  boost::asio::awaitable<groups::SyncReply> sync(const protocol::SyncGroupRequest& asked);
  // `f` takes the groups and the time and gives a groups::Decided<Answer>.
  template <class F>
  auto decide(F f) -> boost::asio::awaitable<
      GroupOutcome<decltype(f(std::declval<groups::GroupShard&>(), groups::Now()).answer)>> {
    const auto self = shared_from_this();
    GroupOutcome<decltype(f(std::declval<groups::GroupShard&>(), groups::Now()).answer)> outcome;
    outcome.error = status();
    if (outcome.error != protocol::ErrorCode::none) co_return outcome;
    auto decided = f(current_state(), now());
    outcome.value = std::move(decided.answer);
    groups::Decision decision = std::move(decided);
    outcome.error = co_await carry_out(std::move(decision));
    co_return outcome;
  }
  // See GroupCoordinator::end_transaction.
  boost::asio::awaitable<protocol::ErrorCode> end_transaction(TransactionMarker marker);
  // What the clock brings: offsets that are too old.
  boost::asio::awaitable<void> clean();
  boost::asio::awaitable<void> forget_topic(std::string topic);

 private:
  using Answer = std::variant<groups::JoinReply, groups::SyncReply>;
  struct Waiting {
    std::optional<Answer> answer;
    Signal answered;
  };

  static groups::Now now();
  // With the topics and the groups' settings that there are now.
  groups::GroupShard& current_state();
  void take_group_configs();
  std::unique_ptr<groups::GroupShard> fresh_state();
  boost::asio::awaitable<void> load();
  boost::asio::awaitable<protocol::ErrorCode> carry_out(groups::Decision decision);
  boost::asio::awaitable<Answer> wait_for(groups::Ticket ticket, groups::Decision decision);
  base::Result<void> write(const groups::Decision& decision);
  base::Result<void> write(const TransactionMarker& marker);
  void deliver(std::vector<groups::Reply> replies);
  // The state cannot be trusted any more: it is loaded anew.
  void give_up(const base::Error& error);
  void arm();

  Shard& home_;
  CoordinatorLog log_;
  groups::Limits limits_;
  groups::consumer::Settings consumer_settings_;
  std::shared_ptr<const GroupTopics> topics_;
  std::shared_ptr<const GroupConfigs> group_configs_;  // those that the state goes by
  std::unique_ptr<groups::GroupShard> state_;
  // Counts states: what was decided on one that was given up must not touch the next.
  std::uint64_t incarnation_ = 0;
  bool loading_ = true;
  bool ended_ = false;
  groups::Ticket last_ticket_ = 0;
  std::unordered_map<groups::Ticket, std::shared_ptr<Waiting>> waiting_;
  std::optional<std::int64_t> armed_ms_;  // what run() waits for
  Signal wake_;
};

}  // namespace broker
