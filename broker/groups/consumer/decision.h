// What decisions on groups of the "consumer" protocol are made with, and what they consist of.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/groups/consumer/assignor.h"
#include "broker/groups/consumer/group.h"
#include "broker/groups/types.h"
#include "protocol/error_code.h"

namespace broker::groups::consumer {

enum class MigrationPolicy : std::uint8_t { bidirectional, upgrade, downgrade, disabled };
std::optional<MigrationPolicy> parse_migration_policy(std::string_view text);  // in any case
constexpr bool allows_upgrade(MigrationPolicy policy) {
  return policy == MigrationPolicy::bidirectional || policy == MigrationPolicy::upgrade;
}
constexpr bool allows_downgrade(MigrationPolicy policy) {
  return policy == MigrationPolicy::bidirectional || policy == MigrationPolicy::downgrade;
}

// The settings, by Kafka's names (group.consumer.…) and with its defaults.
struct Settings {
  std::int32_t session_timeout_ms = 45'000;
  std::int32_t heartbeat_interval_ms = 5000;
  std::int32_t max_size = std::numeric_limits<std::int32_t>::max();
  // The first is for groups that prefer none.
  std::vector<AssignorKind> assignors = {AssignorKind::uniform, AssignorKind::range};
  std::int32_t assignment_interval_ms = 1000;
  std::int32_t regex_refresh_interval_ms = 600'000;
  MigrationPolicy migration_policy = MigrationPolicy::bidirectional;
  std::int32_t classic_max_size = std::numeric_limits<std::int32_t>::max();  // group.max.size
};
std::string_view name_of(AssignorKind kind);

// At the latest after so long the topics of each group are looked at again.
constexpr std::int64_t metadata_refresh_interval_ms = 60 * 60 * 1000;
// Expressions are not looked up more often than this, whatever happens.
constexpr std::int64_t regex_refresh_interval_min_ms = 10'000;

// Everything that a decision knows beside the group.
struct Surroundings {
  const TopicsView& topics;
  const Settings& settings;
  std::int64_t now_ms = 0;  // the wall clock: some of it is written down
};

// A timer of a member; there is at most one of each kind.
struct TimerChange {
  enum class Kind : std::uint8_t {
    session,    // it sends no heartbeats
    rebalance,  // it does not give up partitions
    join,       // of the classic protocol: it does not join again
    sync,       // ... it does not ask for its assignment
  };
  Kind kind{};
  std::string member_id;
  std::optional<std::int64_t> after_ms;  // nothing: cancelled
  std::int32_t member_epoch = 0;         // to be told again when it is over
  bool unless_set = false;               // one that runs goes on
};

// What counts of a group of the classic protocol.
struct ClassicFacts {
  struct Member {
    std::string id;
    std::optional<std::string> instance_id;
    std::string client_id;
    std::string client_host;
    std::int32_t rebalance_timeout_ms = 0;
    std::int32_t session_timeout_ms = 0;
    std::vector<ClassicProtocol> protocols;
    base::Buffer assignment;  // empty: none yet
  };
  std::string id;
  std::int32_t generation = 0;
  bool of_consumers = false;  // the protocol type is "consumer"
  std::string protocol;       // that the members have in common
  std::vector<Member> members;
  // Not everybody has what it is to have: in a group to be upgraded, or in what one is downgraded
  // to.
  bool needs_rebalance = true;
};

struct Outcome {
  // To be written in one batch and applied in this order.
  std::vector<Record> records;
  // For after that.
  std::vector<TimerChange> timers;
  std::optional<MetadataRefresh> metadata_refresh;  // ConsumerGroup::metadata_refresh
  // Not empty: to be given to decide_regexes() next.
  std::vector<std::string> regexes_to_resolve;
  // The records delete the group: it goes on as one of the classic protocol, which is to be written
  // behind them.
  std::optional<ClassicFacts> downgraded;
};

struct Refusal {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  std::string message;
};

}  // namespace broker::groups::consumer
