// A group that changes its protocol while it has members. Upwards when the first member of the
// "consumer" protocol joins a classic group; its classic members then stay, and speak their
// protocol to the group that it has become (classic_member.h). Downwards when the last member of
// the "consumer" protocol has gone, or comes back, static, with the classic one.
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

// Whether `replaced` is the last of the "consumer" protocol, so that the group is to be downgraded
// when a member of the classic one takes its place.
bool is_downgraded_without(const ConsumerGroup& group, const Member& replaced,
                           const Surroundings& around);
// What that comes to. The records that put `fresh` in the place of `replaced` are in `out` already,
// `group_epoch` is what they say. Nobody's assignment is computed anew: where one is due, the group
// is to be rebalanced.
void downgrade_with(const ConsumerGroup& group, const Member& replaced, const Member& fresh,
                    std::int32_t group_epoch, const Surroundings& around, Outcome& out);

// Members that leave or were not heard of: the group goes on without them, or is downgraded.
void lose_members(const ConsumerGroup& group, const std::vector<std::string>& member_ids,
                  const Surroundings& around, Outcome& out);

// What the version of a classic member can be told of an assignment.
base::Buffer assignment_for(const ClassicSide& member, const std::string& protocol,
                            const Partitions& partitions, const TopicsView& topics);

}  // namespace broker::groups::consumer
