// The groups that one partition of __consumer_offsets keeps. On the partition's shard only.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "broker/coordinator_partition.h"
#include "broker/group_topics.h"
#include "broker/groups/group_shard.h"
#include "broker/transaction_marker.h"
#include "protocol/error_code.h"
#include "protocol/internal_topics.h"

namespace broker {

inline constexpr CoordinatorKind groups_kind = {"groups", protocol::consumer_offsets_topic,
                                                "offsets.retention.check.interval.ms",
                                                "offsets and groups are too old", true};

class GroupPartition final : public CoordinatorPartition<groups::GroupShard> {
 public:
  GroupPartition(Shard& home, std::shared_ptr<Partition> partition, groups::Limits limits,
                 groups::consumer::Settings consumer_settings);

  // These answer with the error when it does not serve. What is asked must stay there meanwhile.
  boost::asio::awaitable<groups::JoinReply> join(const protocol::JoinGroupRequest& asked,
                                                 groups::Caller caller);
  boost::asio::awaitable<groups::SyncReply> sync(const protocol::SyncGroupRequest& asked);
  // See GroupCoordinator::end_transaction.
  boost::asio::awaitable<protocol::ErrorCode> end_transaction(TransactionMarker marker);
  boost::asio::awaitable<void> forget_topic(std::string topic);

 private:
  using Answer = std::variant<groups::JoinReply, groups::SyncReply>;
  struct Waiting {
    Answer answer;
    Signal answered;
  };

  // With the topics and the groups' settings that there are now.
  groups::GroupShard& current_state() override;
  void take_group_configs();
  std::unique_ptr<groups::GroupShard> fresh_state() override;
  bool apply(groups::GroupShard& state, base::Bytes key, std::optional<base::Bytes> value,
             const groups::Place& place) override;
  void apply_marker(groups::GroupShard& state, base::ProducerId producer, bool committed) override;
  boost::asio::awaitable<void> loaded(std::int64_t took_ms) override;
  boost::asio::awaitable<protocol::ErrorCode> carry_out(groups::Decision decision) override;
  void end_waits(protocol::ErrorCode error) override;
  void end_lost_waits() override;
  // Answers `lost` when nobody knows any more that it waits.
  boost::asio::awaitable<Answer> wait_for(groups::Ticket ticket, groups::Decision decision,
                                          Answer lost);
  void deliver(std::vector<groups::Reply> replies);
  void arm();

  groups::Limits limits_;
  groups::consumer::Settings consumer_settings_;
  std::shared_ptr<const GroupTopics> topics_;
  std::shared_ptr<const GroupConfigs> group_configs_;  // those that the state goes by
  groups::Ticket last_ticket_ = 0;
  std::unordered_map<groups::Ticket, std::shared_ptr<Waiting>> waiting_;
};

}  // namespace broker
