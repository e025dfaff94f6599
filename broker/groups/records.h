// The records of __consumer_offsets that classic groups and committed offsets leave.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "broker/groups/classic_group.h"
#include "broker/groups/offset_table.h"
#include "broker/groups/types.h"

namespace broker::groups {

Record classic_group_record(const ClassicGroup& group);
Record classic_group_tombstone(std::string_view group);
Record offset_record(std::string_view group, std::string_view topic, std::int32_t partition,
                     const CommittedOffset& offset);
Record offset_tombstone(std::string_view group, std::string_view topic, std::int32_t partition);

}  // namespace broker::groups
