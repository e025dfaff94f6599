// What the mirror control API (KIP-1279 over the Kafka port) asks and answers, in plain structs:
// the broker's handlers translate between these and the wire.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/error_code.h"

namespace mirror {

// Numbers of protocol::ErrorCode, as the answers of the control API carry them: KIP-1279's own are
// moved up (protocol/mirror_keys.h).
namespace control_error {
constexpr auto none = static_cast<std::int16_t>(protocol::ErrorCode::none);
constexpr auto unknown_topic_or_partition =
    static_cast<std::int16_t>(protocol::ErrorCode::unknown_topic_or_partition);
constexpr auto coordinator_load_in_progress =
    static_cast<std::int16_t>(protocol::ErrorCode::coordinator_load_in_progress);
constexpr auto invalid_topic =
    static_cast<std::int16_t>(protocol::ErrorCode::invalid_topic_exception);
constexpr auto topic_already_exists =
    static_cast<std::int16_t>(protocol::ErrorCode::topic_already_exists);
constexpr auto invalid_config = static_cast<std::int16_t>(protocol::ErrorCode::invalid_config);
constexpr auto invalid_request = static_cast<std::int16_t>(protocol::ErrorCode::invalid_request);
constexpr auto kafka_storage_error =
    static_cast<std::int16_t>(protocol::ErrorCode::kafka_storage_error);
constexpr auto inconsistent_topic_id =
    static_cast<std::int16_t>(protocol::ErrorCode::inconsistent_topic_id);
constexpr auto invalid_regular_expression =
    static_cast<std::int16_t>(protocol::ErrorCode::invalid_regular_expression);
constexpr auto cluster_mirror_already_exists =
    static_cast<std::int16_t>(protocol::ErrorCode::cluster_mirror_already_exists);
constexpr auto unknown_cluster_mirror =
    static_cast<std::int16_t>(protocol::ErrorCode::unknown_cluster_mirror);
constexpr auto topic_already_in_cluster_mirror =
    static_cast<std::int16_t>(protocol::ErrorCode::topic_already_in_cluster_mirror);
constexpr auto topic_not_in_cluster_mirror =
    static_cast<std::int16_t>(protocol::ErrorCode::topic_not_in_cluster_mirror);
constexpr auto mirror_topic_not_paused =
    static_cast<std::int16_t>(protocol::ErrorCode::mirror_topic_not_paused);
constexpr auto mirror_topic_being_stopped =
    static_cast<std::int16_t>(protocol::ErrorCode::mirror_topic_being_stopped);
constexpr auto cluster_mirror_not_empty =
    static_cast<std::int16_t>(protocol::ErrorCode::cluster_mirror_not_empty);
constexpr auto invalid_cluster_mirror_state =
    static_cast<std::int16_t>(protocol::ErrorCode::invalid_cluster_mirror_state);
constexpr auto mirror_topic_not_stopped =
    static_cast<std::int16_t>(protocol::ErrorCode::mirror_topic_not_stopped);
}  // namespace control_error

struct Outcome {
  std::int16_t error = control_error::none;
  std::string message;  // one sentence that says what to do; empty when there is no error
  bool ok() const { return error == control_error::none; }
};

struct TopicOutcome {
  std::string topic;
  Outcome outcome;
};

// The outcome as a whole (the first topic's error when there is one) and that of each topic.
struct TopicsOutcome {
  Outcome outcome;
  std::vector<TopicOutcome> topics;
};

// Which topics of a mirror a command means: these names and those that match one of the patterns.
// Nothing named and no pattern: all of the mirror's topics.
struct TopicSelection {
  std::vector<std::string> names;
  std::vector<std::string> patterns;
};

struct StartTopics {
  std::vector<std::string> names;             // of the source; also added to topics.include
  std::vector<std::string> include_patterns;  // added to topics.include
  std::vector<std::string> exclude_patterns;  // added to topics.exclude
};

struct ListFilter {
  std::optional<std::vector<std::string>> mirrors;
  std::optional<std::vector<std::string>> source_cluster_ids;
  // Desired states (MIRRORING 3, PAUSED 5, STOPPED 7); absent: MIRRORING and PAUSED.
  std::optional<std::vector<std::int8_t>> states;
};

struct MirrorListing {
  std::string name;
  std::string source_bootstrap;
  std::string source_cluster_id;  // empty until the source was reached once
  std::vector<std::string> topics;
  std::string groups_include, groups_exclude;  // patterns; nothing included: no group is synced
};

struct DescribeFilter {
  std::optional<std::vector<std::string>> mirrors;
  // By name, and by id for callers that send ids; absent: all topics. No partitions: all of them.
  std::optional<std::map<std::string, std::vector<std::int32_t>>> topics;
  std::optional<std::map<base::Uuid, std::vector<std::int32_t>>> topic_ids;
  // Only mirrors whose source is this cluster.
  std::optional<std::string> source_cluster_id;
  bool include_offsets = true;
  bool include_groups = false;
};

struct LastMirrorPosition {
  base::LeaderEpoch epoch = 0;
  base::Offset offset = 0;
  bool operator==(const LastMirrorPosition&) const = default;
};

struct OffsetRange {
  base::Offset from = 0;
  base::Offset until = 0;  // exclusive
};

struct PartitionDescription {
  std::int32_t partition = 0;
  std::string state;  // KIP-1279's name: MIRRORING, PAUSED, …; UNKNOWN without one
  std::chrono::milliseconds in_state{};  // since this broker saw it enter the state
  // The source's high watermark; absent while the source is not being heard. Never a stale figure.
  std::optional<base::Offset> source_offset;
  std::optional<base::Offset> destination_offset;  // durable here
  std::optional<base::Offset> lag;                 // absent when either offset is
  std::int16_t retry_attempt = 0;                  // -1: will not be retried by itself
  std::optional<std::string> error_message;
  std::optional<LastMirrorPosition> last_mirror_position;
  bool writable = false;
  std::uint64_t bytes_copied = 0;                        // since this broker started
  double bytes_per_second = 0;                           // over the last seconds
  std::optional<base::LeaderEpoch> leader_epoch;         // here
  std::optional<base::LeaderEpoch> source_leader_epoch;  // as metadata told last
  // Offsets that the source had deleted before they could be copied, newest gap.
  std::optional<OffsetRange> skipped;
};

struct TopicDescription {
  std::string name;
  base::Uuid id;
  std::int8_t desired_state = -1;
  std::optional<std::string> error_message;  // why it cannot be mirrored at all
  std::vector<PartitionDescription> partitions;
};

// A consumer group of the source whose committed offsets are taken over.
struct GroupDescription {
  std::string name;
  std::int32_t offsets = 0;  // of mirrored partitions
  std::int32_t clamped = 0;  // of these, held back until the copy has grown
  base::Offset behind = 0;   // records by which they are, in all
  // Wall clock of the last round in which all were committed here that the source had.
  std::optional<std::int64_t> synced_ms;
  std::optional<std::string> error_message;  // of the last round
};

struct MirrorDescription {
  std::string name;
  Outcome outcome;  // UNKNOWN_CLUSTER_MIRROR for a name that was asked for and is not there
  std::string source_bootstrap;
  std::string source_cluster_id;
  bool source_reachable = false;
  std::optional<std::string>
      error_message;  // of the source as a whole: unreachable, another cluster
  std::map<std::string, std::string> configs;
  std::vector<TopicDescription> topics;
  std::vector<GroupDescription> groups;
  std::optional<std::string> group_error;  // of the last round as a whole
};

}  // namespace mirror
