// Members of the classic protocol in a group of the "consumer" protocol: what they ask is answered
// from the group's target, and they are told to join again for each step towards theirs. Their
// generation is their member epoch.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/consumer/decision.h"

namespace broker::groups::consumer {

struct ClassicJoin {
  std::string member_id;  // empty: it has none yet
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string client_host;
  std::int32_t session_timeout_ms = 0;
  std::int32_t rebalance_timeout_ms = 0;
  std::string protocol_type;
  std::vector<ClassicProtocol> protocols;
  bool must_know_its_id = false;  // a new member is first told one
  std::string fresh_member_id;
};
struct ClassicJoinOutcome : Outcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  std::string member_id;
  std::int32_t generation = -1;
  std::string protocol;
};
ClassicJoinOutcome decide_classic_join(const ConsumerGroup& group, const ClassicJoin& join,
                                       const Surroundings& around);

struct ClassicCaller {
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t generation = -1;
  std::optional<std::string> protocol_type, protocol;  // of SyncGroup
};
struct ClassicSyncOutcome : Outcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  std::string protocol;
  base::Buffer assignment;
};
ClassicSyncOutcome decide_classic_sync(const ConsumerGroup& group, const ClassicCaller& caller,
                                       const Surroundings& around);

struct ClassicOutcome : Outcome {
  protocol::ErrorCode error = protocol::ErrorCode::none;
};
ClassicOutcome decide_classic_heartbeat(const ConsumerGroup& group, const ClassicCaller& caller);

struct ClassicLeaveOutcome : Outcome {
  std::vector<protocol::ErrorCode> errors;  // of each that was named
};
struct ClassicLeaver {
  std::string member_id;  // empty: whoever has the instance id
  std::optional<std::string> instance_id;
};
ClassicLeaveOutcome decide_classic_leave(const ConsumerGroup& group,
                                         const std::vector<ClassicLeaver>& leavers,
                                         const Surroundings& around);

}  // namespace broker::groups::consumer
