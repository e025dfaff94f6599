// The words of the group coordinator: what a decision consists of. Pure, like everything in this
// folder: a test drives it through any order of events.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/error_code.h"

namespace broker::groups {

// Who waits for an answer that may come later. Given out by whoever asks, never twice.
using Ticket = std::uint64_t;

struct Now {
  std::int64_t monotonic_ms = 0;  // timers
  std::int64_t wall_ms = 0;       // what is written down
};

// A record of __consumer_offsets: key and value with their frames (protocol/record_frame.h). No
// value: a tombstone.
struct Record {
  base::Buffer key;
  std::optional<base::Buffer> value;
  bool operator==(const Record&) const = default;
};

// A record's place in the log of its partition.
struct Place {
  base::Offset offset = 0;
  // Set: it is part of this producer's transaction, and counts once that has committed.
  std::optional<base::ProducerId> transaction = {};
};

struct Producer {
  base::ProducerId id = 0;
  base::ProducerEpoch epoch = 0;
};

struct JoinReply {
  struct Member {
    std::string member_id;
    std::optional<std::string> instance_id;
    base::Buffer metadata;
    bool operator==(const Member&) const = default;
  };
  protocol::ErrorCode error = protocol::ErrorCode::none;
  std::int32_t generation = -1;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<Member> members;  // for the leader only
};

struct SyncReply {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  base::Buffer assignment;
};

struct Reply {
  Ticket ticket = 0;
  std::variant<JoinReply, SyncReply> answer;
};

// What follows from an event. The records are to be written and applied before the next event is
// looked at, and the replies to be sent once the records are durable.
struct Decision {
  std::vector<Record> records;
  std::vector<Reply> replies;
  // Set: the records are part of this producer's transaction.
  std::optional<Producer> transaction = {};
};

// A decision that answers whoever asked at once.
template <class Answer>
struct Decided : Decision {
  Answer answer{};
};

// Who sends a request.
struct Caller {
  std::int16_t version = 0;  // of the request
  std::string client_id;
  std::string client_host;  // as Kafka writes it: /127.0.0.1
};

// The settings, by Kafka's names.
struct Limits {
  std::int32_t session_timeout_min_ms = 6000;
  std::int32_t session_timeout_max_ms = 1'800'000;
  std::int32_t initial_rebalance_delay_ms = 3000;
  std::int32_t members_max = std::numeric_limits<std::int32_t>::max();
  // What a member that has not been told its id yet may wait for a rebalance: it cannot send
  // heartbeats. Not a setting.
  std::int32_t new_member_join_timeout_ms = 5 * 60 * 1000;
  std::int32_t offset_metadata_bytes_max = 4096;
  std::int64_t offsets_retention_ms = std::int64_t{7} * 24 * 60 * 60 * 1000;
  // A group whose members do not fit into one record of this size cannot be kept.
  std::size_t record_bytes_max = 1'000'000;
};

}  // namespace broker::groups
