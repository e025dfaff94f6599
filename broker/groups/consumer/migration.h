// A group that changes its protocol while it has members. Upwards when the first member of the
// "consumer" protocol joins a classic group; its classic members then stay, and speak their
// protocol to the group that it has become (classic_member.h). Downwards when the last member of
// the "consumer" protocol has gone.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "broker/groups/consumer/decision.h"

namespace broker::groups::consumer {

// The group with the same members. A refusal: it cannot be one, and stays as it is.
std::variant<Refusal, ConsumerGroup> upgrade(const ClassicFacts& classic,
                                             const Surroundings& around);

// The group without `leaving`, if nobody else is left but members of the classic protocol, and that
// is allowed; nothing otherwise.
std::optional<ClassicFacts> downgrade(const ConsumerGroup& group,
                                      const std::set<std::string>& leaving,
                                      const Surroundings& around);

// Members that leave or were not heard of: the group goes on without them, or is downgraded.
void lose_members(const ConsumerGroup& group, const std::vector<std::string>& member_ids,
                  const Surroundings& around, Outcome& out);

// What the version of a classic member can be told of an assignment.
base::Buffer assignment_for(const ClassicSide& member, const std::string& protocol,
                            const Partitions& partitions, const TopicsView& topics);

}  // namespace broker::groups::consumer
