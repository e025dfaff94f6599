// Incremental fetch sessions (KIP-227): what a client asked for last is kept, so that it need only
// say what changed and is only told what changed.
//
// One of these belongs to each shard, and only its thread uses it. A session's id tells its shard,
// since a client may come back on a connection of another one. Pure: no clock, no sockets. The
// bounds are a number of sessions and a number of partitions in them all; who finds no room is
// served without a session.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/random.h"
#include "protocol/error_code.h"

namespace broker {

// One partition of a Fetch request. By id (from version 13 on) the name is empty until the id is
// known, and stays what it was when the topic goes away; by name the id is zero.
struct FetchTarget {
  std::string topic;
  base::Uuid topic_id;
  std::int32_t partition = 0;
  base::Offset offset = 0;
  std::int32_t bytes_max = 0;
  std::optional<base::LeaderEpoch> current_leader_epoch;
  std::optional<base::LeaderEpoch> last_fetched_epoch;

  bool same_place(const FetchTarget& other) const {
    return partition == other.partition && topic_id == other.topic_id &&
           (!topic_id.is_zero() || topic == other.topic);
  }
};
struct FetchTargetHash {
  std::size_t operator()(const FetchTarget* target) const;
};
struct FetchTargetEqual {
  bool operator()(const FetchTarget* a, const FetchTarget* b) const { return a->same_place(*b); }
};

// What a session has to know of one partition's answer.
struct FetchOutcome {
  base::Offset high_watermark = -1;
  base::Offset log_start = -1;
  bool records = false;
  bool error = false;
  bool diverging = false;
};

class FetchSessions {
 public:
  struct Limits {
    std::size_t sessions = 1000;  // of this shard
    std::size_t partitions = 1'000'000;
  };
  FetchSessions(std::size_t shard, std::size_t shard_count, Limits limits, base::Random random);

  // The shard whose session this can be; nothing if it is no session's id.
  static std::optional<std::size_t> shard_of(std::int32_t id, std::size_t shard_count);
  // Epochs count from 1 and go on at 1 after the largest.
  static std::int32_t next_epoch(std::int32_t epoch);

  // A new session that knows these targets and what was answered; its id, or 0 without room.
  // `privileged`: of a replica. By Kafka's rules an older session may have to give way.
  std::int32_t create(const std::vector<FetchTarget>& targets,
                      const std::vector<FetchOutcome>& outcomes, bool by_id, bool privileged,
                      std::int64_t now_ms);
  void close(std::int32_t id);

  struct Resumed {
    protocol::ErrorCode error = protocol::ErrorCode::none;
    bool ended = false;  // no partition is left, and neither is the session
    std::vector<FetchTarget> targets;
  };
  // The next request of a session: `changed` are added or replaced, then `forgotten` taken out.
  Resumed resume(std::int32_t id, std::int32_t epoch, bool by_id, std::vector<FetchTarget> changed,
                 const std::vector<FetchTarget>& forgotten, std::int64_t now_ms);

  // The topic of a resumed target that had no name yet.
  struct Learned {
    std::size_t index = 0;  // among the resumed targets
    std::string topic;
  };
  // Which of the resumed targets, in their order, the client has to be told of; nothing if another
  // request of the session came in between.
  std::optional<std::vector<bool>> finish(std::int32_t id, std::int32_t epoch,
                                          const std::vector<FetchOutcome>& outcomes,
                                          std::vector<Learned> learned = {});

  std::size_t size() const { return sessions_.size(); }
  std::size_t partitions() const { return partitions_; }

 private:
  struct Cached {
    FetchTarget target;
    base::Offset high_watermark = -1;
    base::Offset log_start = -1;
  };
  struct Session {
    std::int32_t id = 0;
    std::int32_t epoch = 0;  // that the next request must have
    bool by_id = false;
    bool privileged = false;
    std::int64_t created_ms = 0;
    std::int64_t used_ms = 0;
    std::size_t cached_size = 0;  // as it stands in the order of eviction
    // In the order in which partitions have their turn.
    std::list<Cached> order;
    std::unordered_map<const FetchTarget*, std::list<Cached>::iterator, FetchTargetHash,
                       FetchTargetEqual>
        places;
  };
  struct Used {
    std::int64_t used_ms = 0;
    std::int32_t id = 0;
    auto operator<=>(const Used&) const = default;
  };
  // The least comes first to give way.
  struct Worth {
    bool privileged = false;
    std::size_t size = 0;
    std::int32_t id = 0;
    auto operator<=>(const Worth&) const = default;
  };

  std::int32_t fresh_id();
  void add(Session& session, FetchTarget target, const FetchOutcome& outcome);
  bool make_room(bool privileged, std::size_t size, std::int64_t now_ms);
  void touch(Session& session, std::int64_t now_ms);
  void remove(Session& session);

  std::size_t shard_;
  std::size_t shard_count_;
  Limits limits_;
  base::Random random_;
  std::size_t partitions_ = 0;
  std::unordered_map<std::int32_t, Session> sessions_;
  std::set<Used> by_use_;
  std::set<Worth> for_all_;         // who may be displaced by any larger newcomer
  std::set<Worth> for_privileged_;  // ... by a privileged one
};

}  // namespace broker
