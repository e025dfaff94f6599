// The group coordinator as the rest of the broker sees it: it finds the partition of
// __consumer_offsets that keeps a group, has the pure core of broker/groups/ decide there, and
// answers when what was decided is on disk.
//
// A partition's groups belong to the shard of the partition. The functions may be awaited on any
// shard; they hop there and back by themselves.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/catalog.h"
#include "broker/coordinator_partitions.h"
#include "broker/group_partition.h"
#include "broker/groups/group_shard.h"
#include "broker/shard.h"
#include "protocol/error_code.h"
#include "protocol/internal_topics.h"

namespace broker {

class Broker;

using protocol::consumer_offsets_topic;

// The topic as this coordinator makes it.
NewTopic offsets_topic(const Config& config);

// An offset as another cluster's coordinator had it.
struct MirroredOffset {
  std::string topic;
  std::int32_t partition = 0;
  base::Offset offset = 0;
  std::optional<base::LeaderEpoch> leader_epoch;
  std::string metadata;
  // When it was committed; absent: now.
  std::optional<std::int64_t> commit_timestamp_ms;
};

class GroupCoordinator {
 public:
  explicit GroupCoordinator(Broker& broker);

  // Begins to load what is there. After the logs were opened, before clients are let in.
  void start() { partitions_.start(); }
  // Loops that still run: none some moments after the shards began to stop.
  int running() const { return partitions_.running(); }

  const groups::consumer::Settings& consumer_settings() const { return consumer_settings_; }

  // Makes the topic unless it is there. Errors are the catalog's.
  boost::asio::awaitable<base::Result<void>> ensure_topic();

  boost::asio::awaitable<groups::JoinReply> join(const protocol::JoinGroupRequest& asked,
                                                 groups::Caller caller);
  boost::asio::awaitable<groups::SyncReply> sync(const protocol::SyncGroupRequest& asked);
  // Runs `f`, a callable that takes (groups::GroupShard&, groups::Now) and gives a
  // groups::Decided<Answer>, where the group is kept; answers once all of it is on disk. The error
  // is the coordinator's: not_coordinator, coordinator_load_in_progress.
  template <class F>
  auto decide(const std::string& group, F f) {
    auto ask = [run = std::move(f)](GroupPartition& partition) { return partition.decide(run); };
    return partitions_.at_home(group, std::move(ask));
  }
  // All groups that there are. Empty filters let everything through.
  boost::asio::awaitable<CoordinatorOutcome<std::vector<groups::ListedGroup>>> list(
      std::vector<std::string> states, std::vector<std::string> types);

  // The mirror's door: commits what a group committed on the source. Refused, with the reason:
  //   non_empty_group               the group has live members here; nothing was changed
  //   coordinator_load_in_progress  ask again in a moment
  //   others                        it was not written
  boost::asio::awaitable<protocol::ErrorCode> commit_mirrored(std::string group,
                                                              std::vector<MirroredOffset> offsets);

  // The transaction coordinator's door: the end of a transaction that offsets of groups in this
  // partition of __consumer_offsets were committed in. Answers when the marker is on disk; what was
  // pending is committed, or gone. Repeating it does no harm. Refused, and nothing was changed:
  //   invalid_producer_epoch        a later epoch of the producer, or of the coordinator, was here
  //   unknown_topic_or_partition    there is no such partition (any more)
  //   coordinator_load_in_progress, not_coordinator  ask again in a moment; WriteTxnMarkers says
  //                                 not_leader_or_follower
  boost::asio::awaitable<protocol::ErrorCode> end_transaction(std::int32_t partition,
                                                              TransactionMarker marker);

  // Positions in a topic that is no longer there go. From any shard; done later.
  void topic_deleted(const std::string& name);

 private:
  boost::asio::awaitable<void> forget_topic(Shard* shard, std::string name);

  Broker& broker_;
  groups::Limits limits_;
  groups::consumer::Settings consumer_settings_;
  CoordinatorPartitions<GroupPartition> partitions_;
};

}  // namespace broker
