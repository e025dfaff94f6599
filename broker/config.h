// The settings: one table, Kafka's names and defaults where Kafka has the setting. `--help`,
// DescribeConfigs and the reference page are printed from it.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/ids.h"

namespace broker {

// The numbers are those of DescribeConfigs.
enum class ConfigType : std::int8_t {
  boolean = 1,
  text = 2,
  int32 = 3,
  int16 = 4,
  int64 = 5,
  real = 6,
  list = 7,
};

struct Setting {
  std::string_view name;
  ConfigType type = ConfigType::text;
  std::optional<std::string_view> fallback;  // the default; absent: none, must be set or is null
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool dynamic = false;  // may be changed while the broker runs
  std::string_view sentence;
  std::string_view words = {};  // of text and list: what is allowed, with commas; empty: anything
};

// Where a value comes from. The numbers are those of DescribeConfigs.
enum class ConfigSource : std::int8_t {
  topic = 1,
  dynamic_broker = 2,   // set at run time for this broker
  dynamic_cluster = 3,  // set at run time for all brokers
  static_broker = 4,    // server.properties and what overrides it
  fallback = 5,
  logger = 6,
  group = 8,
};
struct ConfigSynonym {
  std::string name;
  std::string value;
  ConfigSource source = ConfigSource::fallback;
};
using ConfigValues = std::map<std::string, std::string, std::less<>>;

// Sorted by name.
std::span<const Setting> settings();
const Setting* find_setting(std::string_view name);
// Whether any release of Kafka has a broker setting of this name.
bool is_kafka_setting(std::string_view name);
std::span<const std::string_view> kafka_setting_names();  // sorted
// The setting's own name and others that mean the same, in order of precedence.
std::vector<std::string_view> setting_synonyms(std::string_view name);
// Why `value` cannot be the setting's, if so: a sentence.
std::optional<std::string> value_problem(const Setting& setting, const std::string& value);
// What stands between commas, without blanks around it; nothing for what is empty.
std::vector<std::string> comma_separated(std::string_view text);
// `name type default sentence`, a line each, for `calque serve --help`.
std::string describe_settings();

// A sentence that says what to do. Thrown by load only.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Endpoint {
  std::string listener;  // name
  std::string host;      // empty: all addresses
  std::uint16_t port = 0;
};

class Config {
 public:
  // `properties` is the text of a server.properties; `overrides` are `key=value`, the later wins;
  // `environment` are `NAME=value` of which CALQUE_LOG_SEGMENT_BYTES means log.segment.bytes.
  static Config load(std::string_view properties, const std::vector<std::string>& overrides,
                     const std::vector<std::string>& environment);

  // Of a setting in the table that has a value: set, or by default.
  std::int64_t integer(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty when null
  bool flag(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;
  // As DescribeConfigs shows it: absent is null.
  std::optional<std::string> value(std::string_view name) const;
  bool is_set(std::string_view name) const;

  // The same settings with what was changed at run time: for all brokers, and for this one, which
  // wins.
  Config with_changes(ConfigValues of_cluster, ConfigValues of_broker) const;
  const ConfigValues& of_cluster() const { return of_cluster_; }
  const ConfigValues& of_broker() const { return of_broker_; }
  // What stands where for settings that mean the same in other units, the one that counts first.
  // As Kafka lists it: source by source, and nothing that comes before `name`, one of them.
  std::vector<ConfigSynonym> synonyms(std::span<const std::string_view> names,
                                      std::string_view name) const;

  // What was said that deserves a line in the log: settings that Kafka knows and we do not serve.
  const std::vector<std::string>& warnings() const { return warnings_; }

  base::NodeId node_id() const { return node_id_; }
  const std::string& log_directory() const { return log_directory_; }
  const std::vector<Endpoint>& listeners() const { return listeners_; }
  // One for each listener, in the same order.
  const std::vector<Endpoint>& advertised() const { return advertised_; }
  std::size_t shard_count() const { return shard_count_; }
  // What each request asks for, and no change at run time touches.
  std::int64_t request_bytes_max() const { return request_bytes_max_; }
  std::int64_t fetch_bytes_max() const { return fetch_bytes_max_; }
  std::int64_t connection_idle_max_ms() const { return connection_idle_max_ms_; }  // < 0: no limit

 private:
  void set(std::string_view name, std::string value, const std::string& where);
  void derive();
  void derive_listeners();

  ConfigValues values_, of_cluster_, of_broker_;
  std::vector<std::string> warnings_;
  base::NodeId node_id_ = 0;
  std::string log_directory_;
  std::vector<Endpoint> listeners_;
  std::vector<Endpoint> advertised_;
  std::size_t shard_count_ = 1;
  std::int64_t request_bytes_max_ = 0, fetch_bytes_max_ = 0, connection_idle_max_ms_ = 0;
};

}  // namespace broker
