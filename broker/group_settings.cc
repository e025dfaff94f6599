// The table's names, types, defaults and limits are Kafka 4.4's; the sentences are ours.
#include "broker/group_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "protocol/base/log.h"

namespace broker {

namespace {

using Type = ConfigType;
constexpr std::int64_t no_group_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t group_int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t group_long_max = std::numeric_limits<std::int64_t>::max();

constexpr Setting group_number(std::string_view name, std::string_view fallback, std::int64_t least,
                               std::int64_t greatest, std::string_view sentence) {
  return {name, Type::int32, fallback, least, greatest, true, sentence};
}
constexpr Setting group_flag(std::string_view name, std::string_view fallback,
                             std::string_view sentence) {
  return {name, Type::boolean, fallback, no_group_min, group_long_max, true, sentence};
}
constexpr Setting group_text(std::string_view name, std::string_view fallback,
                             std::string_view sentence, std::string_view words = {}) {
  return {name, Type::text, fallback, no_group_min, group_long_max, true, sentence, words};
}

constexpr std::string_view share_reset = "share.auto.offset.reset";
constexpr std::string_view streams_tags = "streams.rack.aware.assignment.tags";
constexpr std::string_view dead_letters = "errors.deadletterqueue.topic.name";

constexpr std::array group_table = {
    GroupSetting{group_number("consumer.assignment.interval.ms", "1000", 0, group_int_max,
                              "The least time between two assignments of the group."),
                 "group.consumer.assignment.interval.ms",
                 "group.consumer.min.assignment.interval.ms",
                 "group.consumer.max.assignment.interval.ms", true},
    GroupSetting{group_flag("consumer.assignor.offload.enable", "true",
                            "Whether assignments are computed on threads of their own."),
                 "group.consumer.assignor.offload.enable",
                 {},
                 {},
                 false,
                 false},
    GroupSetting{group_number("consumer.heartbeat.interval.ms", "5000", 1, group_int_max,
                              "How often the group's members are to send a heartbeat."),
                 "group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms",
                 "group.consumer.max.heartbeat.interval.ms", true},
    GroupSetting{group_number("consumer.session.timeout.ms", "45000", 1, group_int_max,
                              "A member of the group that is not heard of for so long is out."),
                 "group.consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms",
                 "group.consumer.max.session.timeout.ms", true},
    GroupSetting{group_flag("errors.deadletterqueue.copy.record.enable", "false",
                            "Whether a share group's dead letters hold the record."),
                 "errors.deadletterqueue.copy.record.enable"},
    GroupSetting{group_text(dead_letters, "", "The topic of a share group's dead letters."),
                 dead_letters},
    GroupSetting{group_number("share.assignment.interval.ms", "1000", 0, 15'000,
                              "The least time between two assignments of a share group."),
                 "group.share.assignment.interval.ms"},
    GroupSetting{group_flag("share.assignor.offload.enable", "true",
                            "Whether assignments of a share group are computed on other threads."),
                 "group.share.assignor.offload.enable",
                 {},
                 {},
                 false,
                 false},
    GroupSetting{group_text(share_reset, "latest", "Where a share group begins to read."),
                 share_reset},
    GroupSetting{group_number("share.delivery.count.limit", "5", 2, 10,
                              "How often a record is delivered to a share group."),
                 "group.share.delivery.count.limit"},
    GroupSetting{group_number("share.heartbeat.interval.ms", "5000", 5000, 15'000,
                              "How often members of a share group are to send a heartbeat."),
                 "group.share.heartbeat.interval.ms"},
    GroupSetting{
        group_text("share.isolation.level", "read_uncommitted",
                   "Which records a share group reads.", "read_committed,read_uncommitted"),
        "share.isolation.level"},
    GroupSetting{group_number("share.partition.max.record.locks", "2000", 100, 4000,
                              "How many records of a partition a share group may hold."),
                 "group.share.partition.max.record.locks"},
    GroupSetting{group_number("share.record.lock.duration.ms", "30000", 15'000, 60'000,
                              "For how long a member of a share group holds a record."),
                 "group.share.record.lock.duration.ms"},
    GroupSetting{group_flag("share.renew.acknowledge.enable", "true",
                            "Whether members of a share group may hold records longer."),
                 "share.renew.acknowledge.enable"},
    GroupSetting{group_number("share.session.timeout.ms", "45000", 45'000, 60'000,
                              "A member of a share group that is not heard of for so long is out."),
                 "group.share.session.timeout.ms"},
    GroupSetting{{"streams.acceptable.recovery.lag", Type::int64, "10000", 0, group_long_max, true,
                  "How far behind a task may be to be taken over."},
                 "group.streams.acceptable.recovery.lag",
                 {},
                 {},
                 false,
                 false},
    GroupSetting{group_number("streams.assignment.interval.ms", "1000", 0, 15'000,
                              "The least time between two assignments of a streams group."),
                 "group.streams.assignment.interval.ms"},
    GroupSetting{
        group_text("streams.assignor.name", "sticky", "The assignor of a streams group.", "sticky"),
        "group.streams.assignors"},
    GroupSetting{group_number("streams.heartbeat.interval.ms", "5000", 5000, 15'000,
                              "How often members of a streams group are to send a heartbeat."),
                 "group.streams.heartbeat.interval.ms"},
    GroupSetting{
        group_number("streams.initial.rebalance.delay.ms", "3000", 0, group_int_max,
                     "How long a streams group waits for members before it first assigns."),
        "group.streams.initial.rebalance.delay.ms"},
    GroupSetting{group_number("streams.num.standby.replicas", "0", 0, 2,
                              "How many standby copies a task has."),
                 "group.streams.num.standby.replicas"},
    GroupSetting{group_number("streams.num.warmup.replicas", "2", 0, 20,
                              "How many tasks may warm up at once."),
                 "group.streams.num.warmup.replicas",
                 {},
                 {},
                 false,
                 false},
    GroupSetting{{streams_tags, Type::list, "", no_group_min, group_long_max, true,
                  "The tags by which standby copies are spread."},
                 "group.streams.rack.aware.assignment.tags"},
    GroupSetting{
        group_number("streams.session.timeout.ms", "45000", 45'000, 60'000,
                     "A member of a streams group that is not heard of for so long is out."),
        "group.streams.session.timeout.ms"},
    GroupSetting{group_number("streams.task.offset.interval.ms", "60000", 15'000, group_int_max,
                              "How often members of a streams group tell how far their tasks are."),
                 "group.streams.task.offset.interval.ms",
                 {},
                 {},
                 false,
                 false},
};
static_assert(std::ranges::is_sorted(group_table, {},
                                     [](const GroupSetting& one) { return one.setting.name; }));

std::string trimmed_value(std::string_view value) {
  const std::size_t from = value.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return std::string(value.substr(from, value.find_last_not_of(" \t") - from + 1));
}

std::string lower_case(std::string value) {
  for (char& c : value)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return value;
}

// ISO 8601 as far as days: P1DT2H3M4.5S.
bool is_duration(std::string_view value) {
  if (!value.starts_with('p')) return false;
  value.remove_prefix(1);
  std::string_view units = "dthms";
  bool in_time = false, any = false, any_since_t = true;
  while (!value.empty()) {
    if (value[0] == 't') {
      if (in_time) return false;
      in_time = true;
      any_since_t = false;
      value.remove_prefix(1);
      units = "hms";
      continue;
    }
    const std::size_t digits = std::min(value.find_first_not_of("0123456789."), value.size());
    if (digits == 0 || digits == value.size()) return false;
    const std::size_t unit = units.find(value[digits]);
    const bool is_whole = value.substr(0, digits).find('.') == std::string_view::npos;
    if (unit == std::string_view::npos || (value[digits] != 'd') != in_time) return false;
    if (value[0] == '.' || (!is_whole && value[digits] != 's')) return false;
    units.remove_prefix(unit + 1);
    value.remove_prefix(digits + 1);
    any = any_since_t = true;
  }
  return any && any_since_t;
}

std::optional<std::string> reset_problem(const std::string& value) {
  constexpr std::string_view by_duration = "by_duration:";
  if (value == "earliest" || value == "latest") return std::nullopt;
  if (value.starts_with(by_duration) && is_duration(lower_case(value.substr(by_duration.size()))))
    return std::nullopt;
  return fmt::format(
      "'{}' is no value for {}: use earliest, latest or a time such as by_duration:P1DT12H", value,
      share_reset);
}

// Kept without blanks.
std::optional<std::string> tags_problem(std::string& value) {
  std::vector<std::string> tags;
  for (std::size_t at = 0; !value.empty() && at <= value.size();) {
    const std::size_t comma = std::min(value.find(',', at), value.size());
    tags.push_back(trimmed_value(std::string_view(value).substr(at, comma - at)));
    at = comma + 1;
  }
  if (std::ranges::find(tags, "") != tags.end())
    return fmt::format("{}: there is an empty tag in '{}'", streams_tags, value);
  if (std::set<std::string>(tags.begin(), tags.end()).size() != tags.size())
    return fmt::format("{}: a tag stands in '{}' more than once", streams_tags, value);
  value = fmt::format("{}", fmt::join(tags, ","));
  return std::nullopt;
}

// What the broker allows.
Setting within_bounds(const GroupSetting& one, const Config& broker) {
  Setting setting = one.setting;
  if (!one.least_name.empty()) setting.min = std::max(setting.min, broker.integer(one.least_name));
  if (!one.greatest_name.empty())
    setting.max = std::min(setting.max, broker.integer(one.greatest_name));
  return setting;
}

}  // namespace

std::span<const GroupSetting> group_settings() {
  return group_table;
}

const GroupSetting* find_group_setting(std::string_view name) {
  const auto name_of = [](const GroupSetting& one) { return one.setting.name; };
  const auto at = std::ranges::lower_bound(group_table, name, {}, name_of);
  return at != group_table.end() && at->setting.name == name ? &*at : nullptr;
}

std::optional<std::string> group_value_problem(const GroupSetting& setting, const Config& broker,
                                               std::string& value) {
  value = trimmed_value(value);
  const std::string_view name = setting.setting.name;
  if (name == share_reset) return reset_problem(value);
  if (name == streams_tags) return tags_problem(value);
  if (name == dead_letters && value.starts_with("__"))
    return fmt::format("{}: '{}' would be an internal topic", name, value);
  // Kafka keeps flags in the case in which they come.
  const bool is_flag = setting.setting.type == Type::boolean;
  return value_problem(within_bounds(setting, broker), is_flag ? lower_case(value) : value);
}

EffectiveValue effective_value(const GroupSetting& setting, const ConfigValues& own,
                               const Config& broker) {
  EffectiveValue result;
  if (find_setting(setting.broker_name) != nullptr) {
    const std::string_view names[] = {setting.broker_name};
    result.synonyms = broker.synonyms(names, setting.broker_name);
    result.value = broker.text(setting.broker_name);
  } else {
    result.value = std::string(*setting.setting.fallback);
    result.synonyms = {{std::string(setting.broker_name), result.value, ConfigSource::fallback}};
  }
  if (const auto at = own.find(setting.setting.name); at != own.end()) {
    result.value = at->second;
    result.synonyms.insert(result.synonyms.begin(), {at->first, at->second, ConfigSource::group});
  }
  if (!result.synonyms.empty()) result.source = result.synonyms[0].source;
  return result;
}

groups::consumer::Settings settings_of_group(const ConfigValues& own, const Config& broker,
                                             groups::consumer::Settings of_broker) {
  const auto take = [&](std::string_view name, std::int32_t& into) {
    const auto at = own.find(name);
    if (at == own.end()) return;
    std::int64_t wanted = 0;
    const std::string& value = at->second;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), wanted);
    if (error != std::errc() || stop != value.data() + value.size()) return;
    const Setting bounds = within_bounds(*find_group_setting(name), broker);
    // The broker's own two may stand the wrong way round.
    into = static_cast<std::int32_t>(std::min(std::max(wanted, bounds.min), bounds.max));
  };
  take("consumer.session.timeout.ms", of_broker.session_timeout_ms);
  take("consumer.heartbeat.interval.ms", of_broker.heartbeat_interval_ms);
  take("consumer.assignment.interval.ms", of_broker.assignment_interval_ms);
  return of_broker;
}

void log_group_settings_without_effect(std::string_view group, const ConfigValues& values) {
  for (const auto& [name, value] : values) {
    const GroupSetting* const setting = find_group_setting(name);
    if (setting != nullptr && !setting->acts)
      base::logger("broker").info(
          "group {}: {}={} is kept and shown, but this broker does not act on it", group, name,
          value);
  }
}

}  // namespace broker
