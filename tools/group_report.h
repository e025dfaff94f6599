// Consumer groups as the command line shows them, and where a reset puts them. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/ids.h"

namespace tools {

struct GroupRow {
  std::string group;
  std::string protocol_type;
  std::string state, type;  // empty: the broker is too old to tell
};

struct CommittedRow {
  std::string topic;
  std::int32_t partition = 0;
  base::Offset offset = 0;
  std::optional<base::LeaderEpoch> leader_epoch;
  std::string metadata;
};

using GroupPlace = std::pair<std::string, std::int32_t>;  // topic and partition

struct GroupMemberRow {
  std::string member;
  std::optional<std::string> instance;
  std::string client, host;
  std::vector<GroupPlace> partitions;  // sorted
  // Of groups of the "consumer" protocol alone.
  std::string type = {};                               // classic or consumer; empty: not told
  std::optional<std::int32_t> epoch = {};              // what it was last told
  std::optional<std::vector<GroupPlace>> target = {};  // what it is to have; sorted
};

struct GroupDetails {
  std::string group;
  std::string coordinator;
  bool listed = false;
  std::string state, type;
  std::string protocol;                                 // the assignor
  std::optional<std::int32_t> epoch, assignment_epoch;  // of the "consumer" protocol alone
  std::vector<GroupMemberRow> members;
};

// A partition that the group has an offset in, or that a member reads.
struct GroupPartitionRow {
  std::string topic;
  std::int32_t partition = 0;
  std::optional<CommittedRow> committed;
  std::optional<base::Offset> log_start, log_end;  // absent: the topic is gone
  std::string member;                              // empty: none

  // Records behind the committed offset that are still there.
  std::optional<std::int64_t> lag() const;
};

std::string group_list_text(const std::vector<GroupRow>& rows);
std::string group_list_json(const std::vector<GroupRow>& rows);
std::string group_text(const GroupDetails& group, const std::vector<GroupPartitionRow>& rows);
std::string group_json(const GroupDetails& group, const std::vector<GroupPartitionRow>& rows);

// ---- Resetting.

// `T` or `T:P[,P…]`. Throws Failure(usage).
struct TopicScope {
  std::string topic;
  std::vector<std::int32_t> partitions;  // empty: all
};
TopicScope parse_scope(std::string_view text);

// Milliseconds since 1970 of `2026-11-30T12:00:00[.000][Z|+01:00]`, UTC where no zone is given, or
// of a plain number. Throws Failure(usage).
std::int64_t parse_datetime(const std::string& text);

enum class ResetTo { earliest, latest, offset, datetime, shift };
struct ResetRow {
  std::string topic;
  std::int32_t partition = 0;
  std::optional<base::Offset> before;
  base::Offset after = 0;
  bool moved_into_log = false;  // what was asked for lies outside of the log
};
// Where a partition goes that has these ends. `value`: the offset, the shift, or the offset found
// for the time. Nothing: a shift of a partition without an offset.
std::optional<ResetRow> plan_reset(std::string topic, std::int32_t partition, ResetTo to,
                                   std::int64_t value, std::optional<base::Offset> before,
                                   base::Offset log_start, base::Offset log_end);

std::string reset_text(const std::vector<ResetRow>& rows);
std::string reset_json(const std::string& group, const std::vector<ResetRow>& rows, bool done);

}  // namespace tools
