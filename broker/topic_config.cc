#include "broker/topic_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "protocol/base/log.h"

namespace broker {

namespace {

std::string_view trim_value(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> parse_value(std::string_view text) {
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split_values(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (const auto item = trim_value(list.substr(0, comma)); !item.empty()) items.push_back(item);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return items;
}

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string refused(const TopicSetting& setting, std::string_view value, std::string_view wanted) {
  return fmt::format("'{}' is no value for {}: use {}", value, setting.name, wanted);
}

std::string range_text(const TopicSetting& setting) {
  const bool low = setting.min != std::numeric_limits<std::int64_t>::min();
  const bool high = setting.max != std::numeric_limits<std::int64_t>::max();
  if (low && high) return fmt::format("a number from {} to {}", setting.min, setting.max);
  if (low) return fmt::format("a number not below {}", setting.min);
  return "a whole number";
}

std::optional<std::string> number_problem(const TopicSetting& setting, std::string_view value) {
  if (setting.type == ConfigType::real) {
    const auto number = parse_value<double>(value);
    if (number && std::isfinite(*number) && *number >= static_cast<double>(setting.min) &&
        *number <= static_cast<double>(setting.max))
      return std::nullopt;
    return refused(setting, value, range_text(setting));
  }
  std::int64_t limit_min = setting.min, limit_max = setting.max;
  if (setting.type == ConfigType::int32) {
    limit_min = std::max<std::int64_t>(limit_min, std::numeric_limits<std::int32_t>::min());
    limit_max = std::min<std::int64_t>(limit_max, std::numeric_limits<std::int32_t>::max());
  }
  const auto number = parse_value<std::int64_t>(value);
  // Kafka's one exception to its own range.
  const bool gzip_gap = setting.name == "compression.gzip.level" && number == 0;
  if (!number || *number < limit_min || *number > limit_max || gzip_gap)
    return refused(setting, value, gzip_gap ? "-1, or 1 to 9" : range_text(setting));
  return std::nullopt;
}

bool is_replica_pair(std::string_view item) {
  const auto colon = item.find(':');
  return colon != std::string_view::npos && parse_value<std::int32_t>(item.substr(0, colon)) &&
         parse_value<std::int32_t>(item.substr(colon + 1));
}

std::optional<std::string> list_problem(const TopicSetting& setting, std::string_view value) {
  const auto items = split_values(value);
  if (!setting.words.empty()) {
    for (const auto item : items)
      if (!has(setting.words, item))
        return refused(setting, item, fmt::format("{}", fmt::join(setting.words, ", ")));
    return std::nullopt;
  }
  const bool all = items.size() == 1 && items[0] == "*";
  if (!all && !std::ranges::all_of(items, is_replica_pair))
    return refused(setting, value, "'*' or PARTITION:BROKER pairs, separated by commas");
  return std::nullopt;
}

// Checks one value; on success `value` is as it is to be kept.
std::optional<std::string> value_problem(const TopicSetting& setting, std::string& value) {
  value = std::string(trim_value(value));
  switch (setting.type) {
    case ConfigType::boolean: {
      std::ranges::transform(value, value.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      if (value != "true" && value != "false") return refused(setting, value, "true or false");
      if (setting.name == "remote.storage.enable" && value == "true")
        return "tiered storage is not served here: leave out remote.storage.enable";
      return std::nullopt;
    }
    case ConfigType::text:
      if (!setting.words.empty() && !has(setting.words, value))
        return refused(setting, value, fmt::format("{}", fmt::join(setting.words, ", ")));
      return std::nullopt;
    case ConfigType::list:
      return list_problem(setting, value);
    default:
      return number_problem(setting, value);
  }
}

std::optional<std::int64_t> integer(std::string_view name, const TopicConfigs& topic,
                                    const Config& broker) {
  return parse_value<std::int64_t>(effective_value(*find_topic_setting(name), topic, broker).value);
}

// The value when it lies within what the table allows, else the table's default.
std::int64_t safe_integer(std::string_view name, const TopicConfigs& topic, const Config& broker) {
  const TopicSetting& setting = *find_topic_setting(name);
  const auto value = integer(name, topic, broker);
  // A broker-wide segment size may be below what a topic may ask for; tests use that, as in Kafka.
  const std::int64_t min = setting.name == "segment.bytes" ? 1 : setting.min;
  if (value && *value >= min && *value <= setting.max) return *value;
  return *parse_value<std::int64_t>(setting.fallback);
}

std::string word(std::string_view name, const TopicConfigs& topic, const Config& broker) {
  return effective_value(*find_topic_setting(name), topic, broker).value;
}

std::optional<protocol::Codec> codec_of(std::string_view compression_type) {
  using protocol::Codec;
  for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd})
    if (compression_type == protocol::name(codec)) return codec;
  if (compression_type == "uncompressed") return Codec::none;
  return std::nullopt;
}

std::optional<std::string> broker_value(const BrokerDefault& from, const Config& broker) {
  const Setting* const setting = find_setting(from.name);
  if (setting == nullptr) return std::nullopt;
  const auto value = broker.value(from.name);
  if (!value || from.factor == 1) return value;
  const auto number = parse_value<std::int64_t>(*value);
  // -1 is no number of hours but "no limit".
  if (!number || *number < 0) return value;
  if (*number > std::numeric_limits<std::int64_t>::max() / from.factor) return std::nullopt;
  return std::to_string(*number * from.factor);
}

}  // namespace

std::optional<std::string> conflict(const TopicConfigs& configs) {
  const auto lag_min = configs.find("min.compaction.lag.ms");
  const auto lag_max = configs.find("max.compaction.lag.ms");
  if (lag_min == configs.end() || lag_max == configs.end()) return std::nullopt;
  const auto low = parse_value<std::int64_t>(lag_min->second);
  const auto high = parse_value<std::int64_t>(lag_max->second);
  if (!low || !high || *low <= *high) return std::nullopt;
  return fmt::format("min.compaction.lag.ms ({}) may not be above max.compaction.lag.ms ({})",
                     lag_min->second, lag_max->second);
}

CheckedConfigs check_topic_configs(const std::vector<RequestedConfig>& requested) {
  CheckedConfigs result;
  for (const RequestedConfig& config : requested) {
    const TopicSetting* const setting = find_topic_setting(config.name);
    if (setting == nullptr) {
      result.problem = fmt::format("there is no topic configuration named '{}'", config.name);
    } else if (!config.value) {
      result.problem =
          fmt::format("{} needs a value; leave it out to get the default", config.name);
    } else {
      std::string value = *config.value;
      result.problem = value_problem(*setting, value);
      result.configs.insert_or_assign(std::string(setting->name), value);
    }
    if (result.problem) return result;
  }
  if (!result.problem) result.problem = conflict(result.configs);
  return result;
}

bool is_compacted(const TopicConfigs& topic, const Config& broker) {
  return has(split_values(word("cleanup.policy", topic, broker)), "compact");
}

void log_settings_without_effect(std::string_view topic, const TopicConfigs& configs) {
  auto& log = base::logger("broker");
  for (const auto& [name, value] : configs) {
    const TopicSetting* const setting = find_topic_setting(name);
    if (setting != nullptr && !setting->acts)
      log.info("topic {}: {}={} is kept and shown, but this broker does not act on it", topic, name,
               value);
    else if (name == "cleanup.policy" && has(split_values(value), "compact"))
      log.info("topic {}: {}={} makes keys mandatory, but nothing is compacted: every record stays",
               topic, name, value);
  }
}

EffectiveValue effective_value(const TopicSetting& setting, const TopicConfigs& topic,
                               const Config& broker) {
  EffectiveValue result;
  const std::string name(setting.name);
  std::vector<std::string_view> names;
  for (const BrokerDefault& from : setting.broker_defaults) names.push_back(from.name);
  if (!names.empty()) result.synonyms = broker.synonyms(names, names[0]);
  // Of a setting of Kafka's that is not served the default is known here only.
  if (names.size() == 1 && find_setting(names[0]) == nullptr)
    result.synonyms.push_back(
        {std::string(names[0]), std::string(setting.fallback), ConfigSource::fallback});
  result.value = std::string(setting.fallback);
  for (const BrokerDefault& from : setting.broker_defaults) {
    if (!broker.is_set(from.name)) continue;
    if (auto value = broker_value(from, broker)) {
      result.value = std::move(*value);
      break;
    }
  }
  if (const auto own = topic.find(name); own != topic.end()) {
    result.value = own->second;
    result.synonyms.insert(result.synonyms.begin(), {name, own->second, ConfigSource::topic});
  }
  if (!result.synonyms.empty()) result.source = result.synonyms[0].source;
  return result;
}

RetentionRules retention_rules(const TopicConfigs& topic, const Config& broker) {
  const auto limit = [&](std::string_view name) -> std::optional<std::int64_t> {
    const std::int64_t value = safe_integer(name, topic, broker);
    if (value < 0) return std::nullopt;
    return value;
  };
  RetentionRules rules;
  rules.deletes = has(split_values(word("cleanup.policy", topic, broker)), "delete");
  rules.retention_ms = limit("retention.ms");
  rules.retention_bytes = limit("retention.bytes");
  return rules;
}

storage::LogConfig log_config(const TopicConfigs& topic, const Config& broker) {
  const auto number = [&](std::string_view name) { return safe_integer(name, topic, broker); };
  storage::LogConfig config;
  config.segment_bytes = static_cast<std::uint32_t>(number("segment.bytes"));
  config.segment_ms = number("segment.ms");
  config.segment_index_bytes = static_cast<std::uint32_t>(number("segment.index.bytes"));
  config.index_interval_bytes = static_cast<std::uint32_t>(number("index.interval.bytes"));
  config.max_message_bytes = static_cast<std::uint32_t>(number("max.message.bytes"));
  config.log_append_time = word("message.timestamp.type", topic, broker) == "LogAppendTime";
  config.compacted = is_compacted(topic, broker);
  config.segment_jitter_ms = number("segment.jitter.ms");
  config.file_delete_delay_ms = number("file.delete.delay.ms");
  constexpr std::string_view expiration = "producer.id.expiration.ms";
  if (find_setting(expiration) != nullptr)
    config.producer_expiration_ms = broker.integer(expiration);
  config.producer_check_interval_ms = broker.integer("producer.id.expiration.check.interval.ms");
  return config;
}

protocol::ProduceRules produce_rules(const TopicConfigs& topic, const Config& broker) {
  const auto bound = [&](std::string_view name) -> std::optional<std::int64_t> {
    const std::int64_t value = safe_integer(name, topic, broker);
    if (value == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return value;
  };
  protocol::ProduceRules rules;
  rules.max_message_bytes =
      static_cast<std::uint32_t>(safe_integer("max.message.bytes", topic, broker));
  rules.segment_bytes = static_cast<std::uint32_t>(safe_integer("segment.bytes", topic, broker));
  rules.compacted = is_compacted(topic, broker);
  rules.timestamp_type = word("message.timestamp.type", topic, broker) == "LogAppendTime"
                             ? protocol::TimestampType::log_append_time
                             : protocol::TimestampType::create_time;
  rules.compression_type = codec_of(word("compression.type", topic, broker));
  rules.timestamp_before_max_ms = bound("message.timestamp.before.max.ms");
  rules.timestamp_after_max_ms = bound("message.timestamp.after.max.ms");
  return rules;
}

}  // namespace broker
