// `calque verify`: is the copy the same as the source, byte for byte?
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/cluster.h"

namespace tools {

std::vector<Command> verify_commands();

struct PartitionVerdict {
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t start_offset = -1, end_offset = -1;  // of the source
  std::uint64_t batches = 0, bytes = 0;             // that are equal on both sides
  std::size_t epochs = 0;                           // leader epochs whose ends were compared
  std::uint64_t hash = 0;                           // of what is equal
  // The first thing that differs, and the offset from which on it does, if it is in the records.
  std::optional<std::string> difference;
  std::optional<std::int64_t> difference_offset;

  bool identical() const { return !difference; }
};

// Streams the partition from both sides in bounded memory.
PartitionVerdict verify_partition(Cluster& source, Cluster& target, const std::string& topic,
                                  std::int32_t partition);

std::string verdict_text(const std::vector<PartitionVerdict>& verdicts);
std::string verdict_json(const std::vector<PartitionVerdict>& verdicts);

}  // namespace tools
