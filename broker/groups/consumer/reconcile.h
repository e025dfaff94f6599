// How one member comes from what it has to what it is to have, a step with every heartbeat. A
// partition is given to a member only when nobody holds it any more, and a member is believed to
// have given up a partition only when it says so.
#pragma once
#include <cstdint>
#include <optional>
#include <set>

#include "broker/groups/consumer/group.h"

namespace broker::groups::consumer {

struct ReconcileTo {
  std::int32_t assignment_epoch = 0;
  const Partitions& target;
  // Topics that the member is not subscribed to any more are taken from it even when no target was
  // computed without them yet.
  bool subscription_changed = false;
  const std::set<base::Uuid>& subscribed;
  // What the member says it owns; absent: it does not say.
  const std::optional<Partitions>& owned;
};

// The member as it is to be, maybe unchanged. Nothing: its state is not known to this release, and
// it must give up everything and join anew.
std::optional<Member> reconcile(const ConsumerGroup& group, const Member& member,
                                const ReconcileTo& to);

}  // namespace broker::groups::consumer
