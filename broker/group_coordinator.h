// The group coordinator as the rest of the broker sees it: it finds the partition of
// __consumer_offsets that keeps a group, runs the pure core of broker/groups/ there, and answers
// when what was decided is on disk.
//
// A partition's groups belong to the shard of the partition. Its functions may be awaited on any
// shard; they hop there and back by themselves.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "broker/catalog.h"
#include "broker/coordinator_log.h"
#include "broker/groups/group_shard.h"
#include "broker/shard.h"
#include "protocol/error_code.h"

namespace broker {

class Broker;

constexpr std::string_view consumer_offsets_topic = "__consumer_offsets";

// Kafka's choice: the partition of __consumer_offsets that keeps a group.
std::int32_t partition_for_group(std::string_view group, std::int32_t partitions);

// An answer, or why there is none.
template <class T>
struct GroupOutcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  T value{};
};

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
  ~GroupCoordinator();

  // Begins to load what is there. After the logs were opened, before clients are let in.
  void start();
  // Loops that still run; none some moments after the shards began to stop.
  int running() const { return running_.load(); }

  // Makes the topic unless it is there. An error of the catalog's.
  boost::asio::awaitable<base::Result<void>> ensure_topic();

  // The mirror's door: commits what a group committed on the source. Refused, with the reason:
  //   non_empty_group              the group has live members here; nothing was changed
  //   coordinator_load_in_progress ask again in a moment
  //   others                       it could not be written
  boost::asio::awaitable<protocol::ErrorCode> commit_mirrored(std::string group,
                                                              std::vector<MirroredOffset> offsets);

  // Positions in topics that are no longer there go.
  void topic_deleted(const std::string& name);

  // Runs `f`, a callable that takes (groups::GroupShard&, groups::Now) and gives a
  // groups::Decided<Answer>, where the group is kept, and gives its answer once all is durable.
  template <class F>
  auto decide(std::string group, F f)
      -> Task<GroupOutcome<decltype(f(std::declval<groups::GroupShard&>(), groups::Now()).answer)>>;
};

}  // namespace broker
