// The records of a group of the "consumer" protocol: how decisions write them, and the one function
// that changes a group.
#pragma once
#include <string>
#include <vector>

#include "broker/groups/consumer/group.h"
#include "broker/groups/types.h"

namespace broker::groups::consumer {

Record member_record(const std::string& group, const Member& member);
Record epoch_record(const std::string& group, std::int32_t epoch, std::int64_t metadata_hash);
Record target_record(const std::string& group, const std::string& member_id,
                     const Partitions& target);
Record assignment_epoch_record(const std::string& group, std::int32_t epoch,
                               std::int64_t assigned_ms);
Record current_record(const std::string& group, const Member& member);
Record regex_record(const std::string& group, const std::string& regex,
                    const ResolvedRegex& resolved);

Record regex_tombstone(const std::string& group, const std::string& regex);
Record partition_metadata_tombstone(const std::string& group);
// Of one member, in the order in which a reader wants them.
void add_member_tombstones(std::vector<Record>& records, const std::string& group,
                           const std::string& member_id);
// Of all that is written down of a group. `renamed`: a member whose records were written under
// another id by this same decision.
struct RenamedMember {
  std::string from, to;
};
void add_group_tombstones(std::vector<Record>& records, const ConsumerGroup& group,
                          const std::optional<RenamedMember>& renamed = {});
// All that is needed to know the group again, of members that are stable.
void add_group_records(std::vector<Record>& records, const ConsumerGroup& group);

// Whether a key is that of a record of such groups, and of which group.
std::optional<std::string> group_of(base::Bytes key);

enum class Applied : std::uint8_t {
  done,
  gone,       // the group was deleted: forget it
  malformed,  // nothing was changed
};
// `key` is one for which group_of() names this group. A tombstone for what is not there is done.
// The caller need not make a group for a tombstone.
Applied apply(ConsumerGroup& group, base::Bytes key, const std::optional<base::Bytes>& value);
Applied apply(ConsumerGroup& group, const Record& record);

}  // namespace broker::groups::consumer
