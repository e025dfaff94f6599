#include "tools/mirror_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "tools/json.h"
#include "tools/table.h"

namespace tools {

namespace {

std::optional<std::int64_t> known(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

// "2026-11-30T12:00:00Z"
std::string utc_text(std::int64_t ms) {
  const std::chrono::sys_seconds at{std::chrono::seconds(ms / 1000)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace

std::optional<std::int64_t> PartitionRow::lag() const {
  if (!source_offset || !destination_offset) return std::nullopt;
  return std::max<std::int64_t>(0, *source_offset - *destination_offset);
}

std::vector<PartitionRow> rows_of(const protocol::DescribeClusterMirrorsResponse& response) {
  std::vector<PartitionRow> rows;
  for (const auto& mirror : response.mirrors) {
    for (const auto& topic : mirror.topics) {
      for (const auto& p : topic.partitions) {
        PartitionRow row;
        row.mirror = mirror.mirror_name;
        row.topic = topic.topic_name;
        row.partition = p.partition_index;
        row.state = p.state_value;
        row.desired_state = topic.desired_state;
        row.source_offset = known(p.source_offset);
        row.destination_offset = known(p.destination_offset);
        row.retry_attempt = p.retry_attempt;
        row.error_message = p.error_message;
        row.bytes_copied = known(p.bytes_copied);
        row.bytes_per_second = known(p.bytes_per_second);
        row.time_in_state_ms = known(p.time_in_state_ms);
        row.writable = p.writable;
        row.last_mirror_epoch = known(p.last_mirror_epoch);
        row.last_mirror_offset = known(p.last_mirror_offset);
        row.skipped_from = known(p.skipped_from);
        row.skipped_to = known(p.skipped_to);
        rows.push_back(std::move(row));
      }
    }
  }
  std::ranges::sort(rows, {}, [](const PartitionRow& row) {
    return std::tie(row.mirror, row.topic, row.partition);
  });
  return rows;
}

std::string mirror_list_text(const protocol::ListClusterMirrorsResponse& response) {
  if (response.mirrors.empty()) return "No mirrors found\n";
  const Table table({{"MIRROR", 30},
                     {"TOPICS", 10},
                     {"SOURCE-CLUSTER-ID", 26},
                     {"SOURCE-BOOTSTRAP-SERVER", 50},
                     {"GROUPS", 0}});
  auto mirrors = response.mirrors;
  std::ranges::sort(mirrors, {}, &protocol::ListClusterMirrorsResponse::Mirror::mirror_name);
  std::string text = table.header();
  for (const auto& m : mirrors)
    text += table.row({m.mirror_name, std::to_string(m.topic_count), m.source_cluster_id,
                       m.source_bootstrap, m.groups_include});
  return text;
}

std::string mirror_list_json(const protocol::ListClusterMirrorsResponse& response) {
  Json json;
  json.begin_array();
  for (const auto& m : response.mirrors) {
    json.begin_object()
        .field("mirror", m.mirror_name)
        .field("topicCount", m.topic_count)
        .field("sourceClusterId", m.source_cluster_id)
        .field("sourceBootstrap", m.source_bootstrap)
        .field("groups", m.groups_include)
        .field("groupsExcluded", m.groups_exclude);
    json.key("topics").begin_array();
    for (const std::string& topic : m.topic_names.value_or(std::vector<std::string>()))
      json.value(topic);
    json.end_array().end_object();
  }
  return json.end_array().text() + "\n";
}

std::string describe_text(const std::vector<PartitionRow>& rows) {
  if (rows.empty()) return "No mirror partitions found\n";
  const Table table({{"MIRROR", 30},
                     {"TOPIC", 40},
                     {"PARTITION", 10},
                     {"SOURCE-OFFSET", 15},
                     {"DESTINATION-OFFSET", 18},
                     {"LAG", 10},
                     {"STATE", 12}});
  std::string text = table.header();
  for (const PartitionRow& row : rows)
    text +=
        table.row({row.mirror, row.topic, std::to_string(row.partition), cell(row.source_offset),
                   cell(row.destination_offset), cell(row.lag()), row.state});
  return text;
}

std::string failed_text(const std::vector<PartitionRow>& rows, std::int64_t attempts_max) {
  constexpr std::size_t error_width = 80;
  const Table table(
      {{"MIRROR", 30}, {"TOPIC", 40}, {"PARTITION", 10}, {"RETRY", 12}, {"ERROR", 0}});
  std::string text;
  for (const PartitionRow& row : rows) {
    if (!row.failed()) continue;
    const std::string retry = row.retry_attempt < 0
                                  ? "NonRetryable"
                                  : fmt::format("{}/{}", row.retry_attempt, attempts_max);
    text += table.row({row.mirror, row.topic, std::to_string(row.partition), retry,
                       cut_right(row.error_message.value_or(""), error_width)});
  }
  return text.empty() ? "No failed partitions found\n" : table.header() + text;
}

std::string describe_json(const std::vector<PartitionRow>& rows) {
  Json json;
  json.begin_array();
  for (const PartitionRow& row : rows) {
    json.begin_object()
        .field("mirror", row.mirror)
        .field("topic", row.topic)
        .field("partition", row.partition)
        .field("sourceOffset", row.source_offset.value_or(-1))
        .field("destinationOffset", row.destination_offset.value_or(-1))
        .field("lag", row.lag().value_or(-1))
        .field("state", row.state)
        .field("retryAttempt", row.retry_attempt)
        .field("errorMessage", row.error_message)
        .field("desiredState", row.desired_state)
        .field("writable", row.writable)
        .field("timeInStateMs", row.time_in_state_ms)
        .field("bytesCopied", row.bytes_copied)
        .field("bytesPerSecond", row.bytes_per_second)
        .field("lastMirrorEpoch", row.last_mirror_epoch)
        .field("lastMirrorOffset", row.last_mirror_offset)
        .field("skippedFrom", row.skipped_from)
        .field("skippedTo", row.skipped_to)
        .end_object();
  }
  return json.end_array().text() + "\n";
}

std::vector<MirrorGroupRow> groups_of(const protocol::DescribeClusterMirrorsResponse& response) {
  std::vector<MirrorGroupRow> rows;
  for (const auto& mirror : response.mirrors)
    for (const auto& group : mirror.groups)
      rows.push_back({mirror.mirror_name, group.group_id, group.offset_count, group.clamped_count,
                      group.behind, known(group.synced_ms), group.error_message});
  std::ranges::sort(rows, {},
                    [](const MirrorGroupRow& row) { return std::tie(row.mirror, row.group); });
  return rows;
}

std::string mirror_groups_text(const std::vector<MirrorGroupRow>& rows) {
  if (rows.empty()) return "No consumer groups found\n";
  const Table table({{"MIRROR", 30},
                     {"GROUP", 40},
                     {"OFFSETS", 10},
                     {"CLAMPED", 10},
                     {"BEHIND", 10},
                     {"SYNCED", 20},
                     {"ERROR", 0}});
  std::string text = table.header();
  for (const MirrorGroupRow& row : rows)
    text +=
        table.row({row.mirror, row.group, std::to_string(row.offsets), std::to_string(row.clamped),
                   std::to_string(row.behind), row.synced_ms ? utc_text(*row.synced_ms) : "",
                   row.error_message.value_or("")});
  return text;
}

std::string mirror_groups_json(const std::vector<MirrorGroupRow>& rows) {
  Json json;
  json.begin_array();
  for (const MirrorGroupRow& row : rows)
    json.begin_object()
        .field("mirror", row.mirror)
        .field("group", row.group)
        .field("offsets", row.offsets)
        .field("clamped", row.clamped)
        .field("behind", row.behind)
        .field("syncedMs", row.synced_ms)
        .field("errorMessage", row.error_message)
        .end_object();
  return json.end_array().text() + "\n";
}

bool reached(Aim aim, const PartitionRow& row) {
  switch (aim) {
    case Aim::caught_up:
      return row.state == "MIRRORING" && row.lag() == 0;
    case Aim::mirroring:
      return row.state == "MIRRORING";
    case Aim::paused:
      return row.state == "PAUSED";
    case Aim::writable:
      return row.state == "STOPPED" && row.writable;
  }
  return false;
}

std::string aim_text(Aim aim) {
  switch (aim) {
    case Aim::caught_up:
      return "mirroring with lag 0";
    case Aim::mirroring:
      return "mirroring";
    case Aim::paused:
      return "paused";
    case Aim::writable:
      return "writable";
  }
  return {};
}

}  // namespace tools
