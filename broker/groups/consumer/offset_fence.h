// Which members may commit and fetch offsets: those who are as far as the group knows them to be.
// A commit that was sent before the member came on is good for partitions that it had then already.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "broker/groups/consumer/group.h"
#include "protocol/error_code.h"

namespace broker::groups::consumer {

struct CommitCaller {
  std::string member_id;
  std::optional<std::string> instance_id;
  std::int32_t epoch = -1;   // of the member, or its generation; negative: no member
  std::int16_t version = 0;  // of OffsetCommit
  bool transactional = false;
};

class CommitFence {
 public:
  CommitFence(const ConsumerGroup& group, const CommitCaller& caller);
  // Of the whole request.
  protocol::ErrorCode error() const { return error_; }
  // Of one partition of a request that has no error itself. `topic`: absent if there is none.
  protocol::ErrorCode error_of(const std::optional<base::Uuid>& topic,
                               std::int32_t partition) const;

 private:
  protocol::ErrorCode error_ = protocol::ErrorCode::none;
  const Member* behind_ = nullptr;  // set: each partition is looked at
  std::int32_t epoch_ = 0;
};

protocol::ErrorCode check_offset_fetch(const ConsumerGroup& group,
                                       const std::optional<std::string>& member_id,
                                       std::int32_t epoch);

}  // namespace broker::groups::consumer
