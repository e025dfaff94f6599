// What the broker answered about mirrors, as the command line shows it. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/describe_cluster_mirrors.gen.h"
#include "protocol/messages/list_cluster_mirrors.gen.h"

namespace tools {

// One partition of a mirror; -1 of the wire is absent here.
struct PartitionRow {
  std::string mirror, topic;
  std::int32_t partition = 0;
  std::string state, desired_state;
  std::optional<std::int64_t> source_offset, destination_offset;
  std::int16_t retry_attempt = 0;  // -1: not retried by itself
  std::optional<std::string> error_message;
  std::optional<std::int64_t> bytes_copied, bytes_per_second, time_in_state_ms;
  bool writable = false;
  std::optional<std::int64_t> last_mirror_epoch, last_mirror_offset, skipped_from, skipped_to;

  // Never below 0; absent when either end is unknown.
  std::optional<std::int64_t> lag() const;
  bool failed() const { return state == "FAILED"; }
  bool failed_for_good() const { return failed() && retry_attempt < 0; }
};

// Sorted by mirror, topic, partition.
std::vector<PartitionRow> rows_of(const protocol::DescribeClusterMirrorsResponse& response);

std::string mirror_list_text(const protocol::ListClusterMirrorsResponse& response);
std::string mirror_list_json(const protocol::ListClusterMirrorsResponse& response);
std::string describe_text(const std::vector<PartitionRow>& rows);
// `attempts_max`: of the broker's setting, for "3/20".
std::string failed_text(const std::vector<PartitionRow>& rows, std::int64_t attempts_max);
// One line. The first nine fields are those of KIP-1279, where -1 is unknown.
std::string describe_json(const std::vector<PartitionRow>& rows);

// A consumer group of the source whose committed offsets are kept here.
struct MirrorGroupRow {
  std::string mirror, group;
  std::int32_t offsets = 0, clamped = 0;
  std::int64_t behind = 0;
  std::optional<std::int64_t> synced_ms;
  std::optional<std::string> error_message;
};
// Sorted by mirror and group.
std::vector<MirrorGroupRow> groups_of(const protocol::DescribeClusterMirrorsResponse& response);
std::string mirror_groups_text(const std::vector<MirrorGroupRow>& rows);
std::string mirror_groups_json(const std::vector<MirrorGroupRow>& rows);

// What a command waits for.
enum class Aim { caught_up, mirroring, paused, writable };
bool reached(Aim aim, const PartitionRow& row);
std::string aim_text(Aim aim);

}  // namespace tools
