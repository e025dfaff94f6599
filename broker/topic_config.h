// The configuration of topics: one table of every key that Kafka 4.4 and KIP-1279 know, with type,
// default, check and one sentence. CreateTopics checks against it, DescribeConfigs is printed from
// it, and the storage settings of a partition are derived with it.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config.h"
#include "protocol/produce_check.h"
#include "storage/log.h"

namespace broker {

// What a topic's own settings are kept in: only what was set, under the table's names.
using TopicConfigs = std::map<std::string, std::string>;

// A broker setting that gives the default of a topic key; its value times `factor`.
struct BrokerDefault {
  std::string_view name;
  std::int64_t factor = 1;
};

struct TopicSetting {
  std::string_view name;
  ConfigType type = ConfigType::text;
  std::string_view fallback;
  // In order of precedence, as Kafka ranks them.
  std::vector<BrokerDefault> broker_defaults;
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string_view> words;  // of text and list: what is allowed; empty: anything
  bool acts = true;                     // false: kept and shown, this broker does not act on it
  std::string_view sentence;
};

// Sorted by name.
std::span<const TopicSetting> topic_settings();
// Also finds a key by its other names; `name` of the result is the one to keep.
const TopicSetting* find_topic_setting(std::string_view name);
// The sentence, and whether the key acts here.
std::string documentation(const TopicSetting& setting);

// What the client sent, in its order; a later value of the same key wins, as in Kafka.
struct RequestedConfig {
  std::string name;
  std::optional<std::string> value;
};
struct CheckedConfigs {
  TopicConfigs configs;
  std::optional<std::string> problem;  // a sentence for the client: INVALID_CONFIG
};
CheckedConfigs check_topic_configs(const std::vector<RequestedConfig>& requested);

// Values that are each good and do not go together: a sentence.
std::optional<std::string> conflict(const TopicConfigs& configs);

bool is_compacted(const TopicConfigs& topic, const Config& broker);
// Tells the operator what of `configs` was accepted without an effect.
void log_settings_without_effect(std::string_view topic, const TopicConfigs& configs);

struct EffectiveValue {
  std::string value;
  ConfigSource source = ConfigSource::fallback;
  std::vector<ConfigSynonym>
      synonyms;  // where the value could come from, the one that counts first
};
EffectiveValue effective_value(const TopicSetting& setting, const TopicConfigs& topic,
                               const Config& broker);

// Values that do not parse count as absent: what was stored by an older release must not keep a
// partition from opening.
// Which segments are to go, and how long their files stay.
struct RetentionRules {
  bool deletes =
      true;  // cleanup.policy contains delete; otherwise only what is below the log start
  std::optional<std::int64_t> retention_ms;  // absent: no limit
  std::optional<std::int64_t> retention_bytes;
};
RetentionRules retention_rules(const TopicConfigs& topic, const Config& broker);
storage::LogConfig log_config(const TopicConfigs& topic, const Config& broker);
protocol::ProduceRules produce_rules(const TopicConfigs& topic, const Config& broker);

}  // namespace broker
