// `calque topic …`.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/cluster.h"

namespace tools {

std::vector<Command> topic_commands();

// Failure(failed) unless the cluster made it. A controller that changes is waited for.
void create_topic(Cluster& cluster, const std::string& name, std::int32_t partitions,
                  const std::map<std::string, std::string>& configs);

struct TopicPartitionRow {
  std::int32_t partition = 0;
  std::optional<std::int32_t> leader, leader_epoch;
  std::optional<std::int64_t> start_offset, end_offset;
  std::string mirror, mirror_state;  // empty: not mirrored
};
std::string topic_text(const std::string& name, const std::string& id,
                       const std::vector<TopicPartitionRow>& rows);
std::string topic_json(const std::string& name, const std::string& id,
                       const std::vector<TopicPartitionRow>& rows);

}  // namespace tools
