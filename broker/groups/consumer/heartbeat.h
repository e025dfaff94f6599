// Decisions on ConsumerGroupHeartbeat and on what is due in a group.
//
// How a driver runs it: it writes the records in one batch, applies them in their order
// (records.h), sets what the outcome names beside, gives regexes_to_resolve to decide_regexes() if
// there are any and does the same with that outcome, and then answers. An answer with an error has
// no records.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/consumer/decision.h"
#include "protocol/messages/consumer_group_heartbeat.gen.h"

namespace broker::groups::consumer {

struct HeartbeatCaller {
  std::int16_t version = 0;
  std::string client_id;
  std::string client_host;      // as Kafka writes it: /127.0.0.1
  std::string fresh_member_id;  // for one that has none; never given out before
};

struct HeartbeatOutcome : Outcome {
  protocol::ConsumerGroupHeartbeatResponse response;
};

// Whether the request makes sense whatever the group: asked first of all.
std::optional<Refusal> check_heartbeat(const protocol::ConsumerGroupHeartbeatRequest& request,
                                       std::int16_t version, const Settings& settings);

// `group`: null if there is none of this name. A request to join makes it.
HeartbeatOutcome decide_heartbeat(const ConsumerGroup* group,
                                  const protocol::ConsumerGroupHeartbeatRequest& request,
                                  const HeartbeatCaller& caller, const Surroundings& around);

// A timer of a member is over.
Outcome decide_timeout(const ConsumerGroup& group, const TimerChange& timer,
                       const Surroundings& around);

// Looks up what expressions stand for.
Outcome decide_regexes(const ConsumerGroup& group, const std::vector<std::string>& regexes,
                       const Surroundings& around);

// What runs of a group that was read from the log.
std::vector<TimerChange> timers_after_load(const ConsumerGroup& group, const Settings& settings);

HeartbeatOutcome refused_heartbeat(const Refusal& refusal);

}  // namespace broker::groups::consumer
