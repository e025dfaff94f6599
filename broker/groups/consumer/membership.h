// The steps that the ways into, through and out of a group have in common. Each adds to an Outcome
// and works on the group as it is before that was applied.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/consumer/decision.h"

namespace broker::groups::consumer {

// The same member under the id of another process.
void replace_member(const ConsumerGroup& group, const Member& old, const Member& fresh,
                    Outcome& out);

struct SubscriptionChange {
  bool names = false;           // of topics
  bool regex = false;           // the expression
  bool regex_is_known = false;  // ... and what the new one stands for
  bool any() const { return names || regex; }
};
// The member as it was and as it is to be. Writes it down if it differs. A refusal: the expression
// is none.
std::optional<Refusal> update_subscription(const ConsumerGroup& group, const Member& old,
                                           const Member& updated, const Surroundings& around,
                                           SubscriptionChange& change, Outcome& out);
// What most members prefer, or else the first that is allowed.
AssignorKind preferred_assignor(const Subscriptions& subscriptions, const Settings& settings);
bool changes_assignor(const ConsumerGroup& group, const Member& old, const Member& updated,
                      const Settings& settings);

// Raises the group's epoch if `must_raise`, or when the topics are not what they were. The epoch as
// it is then.
std::int32_t refresh_metadata(const ConsumerGroup& group, const Member& old, const Member& updated,
                              bool must_raise, const Surroundings& around, Outcome& out);

struct Target {
  std::int32_t epoch = 0;
  Partitions partitions;  // of the member
};
// The newest target, computed anew if the group's epoch is ahead and enough time has passed.
Target update_target(const ConsumerGroup& group, std::int32_t group_epoch, const Member& old,
                     const Member& updated, const Surroundings& around, Outcome& out);

// A step of the member towards its target. Nothing: its state is unknown.
std::optional<Member> take_step(const ConsumerGroup& group, const Member& member,
                                const Target& target, bool subscription_changed,
                                const std::optional<Partitions>& owned, const Surroundings& around,
                                Outcome& out);

// Members that left or were not heard of. There is at least one.
void remove_members(const ConsumerGroup& group, const std::vector<std::string>& member_ids,
                    const Surroundings& around, Outcome& out);

void set_timer(Outcome& out, TimerChange::Kind kind, const std::string& member_id,
               std::int64_t after_ms, std::int32_t member_epoch = 0);
void cancel_timer(Outcome& out, TimerChange::Kind kind, const std::string& member_id);
void cancel_timers(Outcome& out, const std::string& member_id);

}  // namespace broker::groups::consumer
