#include "tools/group_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "tools/failure.h"
#include "tools/json.h"
#include "tools/table.h"

namespace tools {

namespace {

std::optional<std::string> text_or_nothing(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "3", or "3 to 5" where a member is to have others than it has.
std::string partition_count(const GroupMemberRow& member) {
  std::string text = std::to_string(member.partitions.size());
  if (member.target && *member.target != member.partitions)
    text += fmt::format(" to {}", member.target->size());
  return text;
}

void add_places(Json& json, const std::vector<GroupPlace>& places) {
  json.begin_array();
  for (const auto& [topic, partition] : places)
    json.begin_object().field("topic", topic).field("partition", partition).end_object();
  json.end_array();
}

void add_member(Json& json, const GroupMemberRow& member) {
  json.begin_object()
      .field("member", member.member)
      .field("instance", member.instance)
      .field("clientId", member.client)
      .field("host", member.host)
      .field("type", text_or_nothing(member.type))
      .field("epoch", member.epoch);
  json.key("partitions");
  add_places(json, member.partitions);
  json.key("target");
  if (member.target)
    add_places(json, *member.target);
  else
    json.null();
  json.end_object();
}

[[noreturn]] void no_datetime(const std::string& text) {
  throw Failure(ExitCode::usage,
                fmt::format("'{}' is no time: write it as 2026-11-30T12:00:00Z, with a zone like "
                            "+01:00, or as milliseconds since 1970",
                            text));
}

// Minutes east of UTC of "Z", "+01:00", "-0530"; nothing: no zone.
std::optional<int> zone_minutes(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  std::string digits(text.substr(1));
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  const auto number = number_in<int>(digits);
  if (digits.size() != 4 || !number || *number < 0) return std::nullopt;
  const int minutes = *number / 100 * 60 + *number % 100;
  return text[0] == '-' ? -minutes : minutes;
}

}  // namespace

std::optional<std::int64_t> GroupPartitionRow::lag() const {
  if (!committed || !log_start || !log_end) return std::nullopt;
  return std::max<std::int64_t>(0, *log_end - std::max(committed->offset, *log_start));
}

std::string group_list_text(const std::vector<GroupRow>& rows) {
  if (rows.empty()) return "No groups found\n";
  const Table table({{"GROUP", 50}, {"STATE", 20}, {"TYPE", 10}, {"PROTOCOL", 0}});
  std::string text = table.header();
  for (const GroupRow& row : rows)
    text += table.row({row.group, row.state, row.type, row.protocol_type});
  return text;
}

std::string group_list_json(const std::vector<GroupRow>& rows) {
  Json json;
  json.begin_array();
  for (const GroupRow& row : rows)
    json.begin_object()
        .field("group", row.group)
        .field("state", text_or_nothing(row.state))
        .field("type", text_or_nothing(row.type))
        .field("protocolType", row.protocol_type)
        .end_object();
  return json.end_array().text() + "\n";
}

std::string group_text(const GroupDetails& group, const std::vector<GroupPartitionRow>& rows) {
  std::string text = fmt::format("Group {}, {}, {} member(s), coordinator {}", group.group,
                                 group.state.empty() ? "state unknown" : group.state,
                                 group.members.size(), group.coordinator);
  if (group.epoch && group.assignment_epoch)
    text +=
        fmt::format(", epoch {}, assignment of epoch {}", *group.epoch, *group.assignment_epoch);
  text += '\n';
  if (!group.members.empty()) {
    std::vector<Column> columns{{"MEMBER", 50}, {"CLIENT-ID", 20}, {"HOST", 18}};
    if (group.epoch) columns.insert(columns.end(), {{"TYPE", 10}, {"EPOCH", 10}});
    columns.push_back({"PARTITIONS", 0});
    const Table members(columns);
    text += members.header();
    for (const GroupMemberRow& member : group.members) {
      std::vector<std::string> cells{member.member, member.client, member.host};
      if (group.epoch) cells.insert(cells.end(), {member.type, cell(member.epoch)});
      cells.push_back(partition_count(member));
      text += members.row(cells);
    }
  }
  if (rows.empty()) return text + "No committed offsets\n";
  const Table table({{"TOPIC", 40},
                     {"PARTITION", 10},
                     {"COMMITTED", 15},
                     {"LOG-END", 15},
                     {"LAG", 10},
                     {"MEMBER", 0}});
  text += table.header();
  for (const GroupPartitionRow& row : rows)
    text += table.row({row.topic, std::to_string(row.partition),
                       row.committed ? std::to_string(row.committed->offset) : "",
                       cell(row.log_end), cell(row.lag()), row.member});
  return text;
}

std::string group_json(const GroupDetails& group, const std::vector<GroupPartitionRow>& rows) {
  Json json;
  json.begin_object()
      .field("group", group.group)
      .field("state", text_or_nothing(group.state))
      .field("type", text_or_nothing(group.type))
      .field("assignor", text_or_nothing(group.protocol))
      .field("coordinator", group.coordinator)
      .field("epoch", group.epoch)
      .field("assignmentEpoch", group.assignment_epoch);
  json.key("members").begin_array();
  for (const GroupMemberRow& member : group.members) add_member(json, member);
  json.end_array().key("offsets").begin_array();
  for (const GroupPartitionRow& row : rows) {
    std::optional<base::Offset> offset;
    std::optional<base::LeaderEpoch> epoch;
    std::optional<std::string> metadata;
    if (row.committed) {
      offset = row.committed->offset;
      epoch = row.committed->leader_epoch;
      metadata = row.committed->metadata;
    }
    json.begin_object()
        .field("topic", row.topic)
        .field("partition", row.partition)
        .field("committedOffset", offset)
        .field("leaderEpoch", epoch)
        .field("metadata", metadata)
        .field("logStartOffset", row.log_start)
        .field("logEndOffset", row.log_end)
        .field("lag", row.lag())
        .field("member", text_or_nothing(row.member))
        .end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

// ---- Resetting.

TopicScope parse_scope(std::string_view text) {
  TopicScope scope;
  const std::size_t colon = text.find(':');
  scope.topic = text.substr(0, colon);
  const auto refuse = [text] {
    return Failure(ExitCode::usage,
                   fmt::format("'{}' is neither TOPIC nor TOPIC:PARTITION[,PARTITION…]", text));
  };
  if (scope.topic.empty()) throw refuse();
  if (colon == std::string_view::npos) return scope;
  std::string_view list = text.substr(colon + 1);
  while (true) {
    const std::size_t comma = list.find(',');
    const auto partition = number_in<std::int32_t>(list.substr(0, comma));
    if (!partition || *partition < 0) throw refuse();
    scope.partitions.push_back(*partition);
    if (comma == std::string_view::npos) return scope;
    list = list.substr(comma + 1);
  }
}

std::int64_t parse_datetime(const std::string& text) {
  if (const auto plain = number_in<std::int64_t>(text)) {
    if (*plain < 0) no_datetime(text);
    return *plain;
  }
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6)
    no_datetime(text);
  std::string_view rest = std::string_view(text).substr(static_cast<std::size_t>(used));
  std::int64_t fraction_ms = 0;
  if (!rest.empty() && rest[0] == '.') {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    std::string digits(rest.substr(1, end - 1));
    if (digits.empty()) no_datetime(text);
    digits.resize(3, '0');
    fraction_ms = *number_in<std::int64_t>(digits);
    rest = rest.substr(end);
  }
  const auto zone = zone_minutes(rest);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  const bool time_is_good = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 &&
                            second < 60 && month > 0 && day > 0;
  if (!zone || !time_is_good || !date.ok()) no_datetime(text);
  const auto at = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                  std::chrono::minutes(minute - *zone) + std::chrono::seconds(second);
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count() +
         fraction_ms;
}

std::optional<ResetRow> plan_reset(std::string topic, std::int32_t partition, ResetTo to,
                                   std::int64_t value, std::optional<base::Offset> before,
                                   base::Offset log_start, base::Offset log_end) {
  base::Offset wanted = value;
  switch (to) {
    case ResetTo::earliest:
      wanted = log_start;
      break;
    case ResetTo::latest:
      wanted = log_end;
      break;
    case ResetTo::shift: {
      if (!before) return std::nullopt;
      const bool overflows = __builtin_add_overflow(*before, value, &wanted);
      if (overflows) wanted = value > 0 ? INT64_MAX : INT64_MIN;
      break;
    }
    case ResetTo::offset:
    case ResetTo::datetime:
      break;
  }
  ResetRow row{std::move(topic), partition, before, std::clamp(wanted, log_start, log_end), false};
  row.moved_into_log = row.after != wanted;
  return row;
}

std::string reset_text(const std::vector<ResetRow>& rows) {
  if (rows.empty()) return "Nothing to reset\n";
  const Table table({{"TOPIC", 40}, {"PARTITION", 10}, {"BEFORE", 15}, {"AFTER", 0}});
  std::string text = table.header();
  for (const ResetRow& row : rows)
    text += table.row(
        {row.topic, std::to_string(row.partition), cell(row.before), std::to_string(row.after)});
  return text;
}

std::string reset_json(const std::string& group, const std::vector<ResetRow>& rows, bool done) {
  Json json;
  json.begin_object().field("group", group).field("executed", done);
  json.key("offsets").begin_array();
  for (const ResetRow& row : rows)
    json.begin_object()
        .field("topic", row.topic)
        .field("partition", row.partition)
        .field("before", row.before)
        .field("after", row.after)
        .end_object();
  return json.end_array().end_object().text() + "\n";
}

}  // namespace tools
