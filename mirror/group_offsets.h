// Committed positions of consumer groups, as the mirror carries them from the source to here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/ids.h"

namespace mirror {

struct CommittedOffset {
  base::Offset offset = 0;
  std::optional<base::LeaderEpoch> leader_epoch = {};  // of the record before it
  std::string metadata = {};
  bool operator==(const CommittedOffset&) const = default;
};

// As the source has it.
struct SourceOffset {
  std::string topic = {};
  std::int32_t partition = 0;
  CommittedOffset committed = {};
};
struct SourceGroup {
  std::string name = {};
  std::vector<SourceOffset> offsets = {};
};

// To be committed here.
struct GroupOffset {
  std::string topic = {};
  base::TopicPartition id = {};  // of the topic here
  CommittedOffset committed = {};
  bool operator==(const GroupOffset&) const = default;
};
struct GroupCommit {
  std::string group = {};
  bool renews = false;  // count as committed now, also where nothing changed: they must not expire
  std::vector<GroupOffset> offsets = {};
  bool operator==(const GroupCommit&) const = default;
};

}  // namespace mirror
