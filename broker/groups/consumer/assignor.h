// Who of a group is to have which partitions: pure functions of what the members want and what they
// were to have before. The results are those of Kafka 4.4's assignors, which look at no racks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/consumer/topics.h"

namespace broker::groups::consumer {

struct AssignmentInput {
  struct Member {
    std::string id;
    std::optional<std::string> instance_id;
    std::set<base::Uuid> topics;  // each stands in `partitions`
    Partitions previous;
  };
  std::vector<Member> members;                    // by ascending id
  bool homogeneous = true;                        // all want the same topics
  std::map<base::Uuid, std::int32_t> partitions;  // how many each topic has
};
// Of each member, in the order of the input's.
using AssignmentResult = std::vector<Partitions>;

// Each topic by itself, in ranges of partitions, so that members have the same partitions of topics
// of one size. Nothing of what was before counts.
AssignmentResult assign_range(const AssignmentInput& input);
// All topics together: members have the same number of partitions, give or take one, as far as
// their wishes allow, and keep as much as that permits of what they had.
AssignmentResult assign_uniform(const AssignmentInput& input);
// Part of the latter: members want different topics.
AssignmentResult assign_uniform_mixed(const AssignmentInput& input);

enum class AssignorKind : std::uint8_t { uniform, range };
std::optional<AssignorKind> find_assignor(std::string_view name);
AssignmentResult assign(AssignorKind kind, const AssignmentInput& input);

}  // namespace broker::groups::consumer
