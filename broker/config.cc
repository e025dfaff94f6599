#include "broker/config.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>
#include <utility>

#include "broker/address_counts.h"
#include "broker/properties.h"
#include "protocol/base/check.h"

namespace broker {
namespace {

constexpr std::size_t shards_by_default_max = 4;
// Not all that the machine has: a container, or taskset, may give fewer.
std::size_t usable_cpus() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&usable)));
  return std::max(1u, std::thread::hardware_concurrency());
}

constexpr std::string_view environment_prefix = "CALQUE_";

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Number of edits that turn one name into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view name) {
  std::string_view best;
  std::size_t least = 4;  // further away it is no slip of the fingers
  const auto look_at = [&](std::string_view candidate) {
    const std::size_t far = distance(name, candidate);
    if (far < least) least = far, best = candidate;
  };
  for (const Setting& one : settings()) look_at(one.name);
  for (const std::string_view one : kafka_setting_names()) look_at(one);
  return best.empty() ? "remove it" : fmt::format("did you mean {}?", best);
}

constexpr std::string_view address_limits = "max.connections.per.ip.overrides";

std::string wanted(const Setting& setting) {
  if (setting.name == address_limits)
    return "ADDRESS:COUNT with commas between, for instance 10.0.0.1:100,10.0.0.2:20";
  if (setting.type == ConfigType::boolean) return "true or false";
  if (!setting.words.empty()) return fmt::format("one of {}", setting.words);
  if (setting.max == std::numeric_limits<std::int64_t>::max())
    return fmt::format("a whole number not below {}", setting.min);
  return fmt::format("a whole number from {} to {}", setting.min, setting.max);
}

bool is_good(const Setting& setting, const std::string& value) {
  const auto is_word = [&](const std::string& one) {
    const auto words = comma_separated(setting.words);
    return words.empty() || std::ranges::find(words, one) != words.end();
  };
  switch (setting.type) {
    case ConfigType::boolean:
      return value == "true" || value == "false";
    case ConfigType::int16:
    case ConfigType::int32:
    case ConfigType::int64: {
      const auto number = parse_number<std::int64_t>(value);
      return number && *number >= setting.min && *number <= setting.max;
    }
    case ConfigType::text:
      if (setting.name == address_limits) return parse_address_limits(value).has_value();
      return is_word(value);
    case ConfigType::list:
      return std::ranges::all_of(comma_separated(value), is_word);
    case ConfigType::real:
      return parse_number<double>(value).has_value();
  }
  return false;
}

// NAME://HOST:PORT, an IPv6 host in brackets.
Endpoint parse_endpoint(std::string_view setting, std::string_view text) {
  const auto refuse = [&](std::string_view what) {
    return ConfigError(
        fmt::format("{}: '{}' {}; write NAME://HOST:PORT, for instance "
                    "PLAINTEXT://127.0.0.1:9092",
                    setting, text, what));
  };
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) throw refuse("has no listener name");
  Endpoint endpoint;
  endpoint.listener = std::string(text.substr(0, scheme));
  std::string_view rest = text.substr(scheme + 3);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) throw refuse("has no port");
  std::string_view host = rest.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  endpoint.host = std::string(host);
  const auto port = parse_number<std::uint16_t>(rest.substr(colon + 1));
  if (!port) throw refuse("has no port from 0 to 65535");
  endpoint.port = *port;
  return endpoint;
}

std::vector<Endpoint> parse_endpoints(std::string_view setting,
                                      const std::vector<std::string>& texts) {
  std::vector<Endpoint> endpoints;
  for (const std::string& text : texts) {
    Endpoint one = parse_endpoint(setting, text);
    if (std::ranges::find(endpoints, one.listener, &Endpoint::listener) != endpoints.end())
      throw ConfigError(
          fmt::format("{}: the listener name {} stands there twice; give each a "
                      "name of its own",
                      setting, one.listener));
    endpoints.push_back(std::move(one));
  }
  return endpoints;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

bool is_any_address(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

}  // namespace

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (const auto part = trim(text.substr(0, comma)); !part.empty()) parts.emplace_back(part);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

std::optional<std::string> value_problem(const Setting& setting, const std::string& value) {
  if (is_good(setting, value)) return std::nullopt;
  return fmt::format("'{}' is no value for {}: use {}", value, setting.name, wanted(setting));
}

Config Config::load(std::string_view properties, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& environment) {
  Config config;
  for (Property& one : parse_properties(properties))
    config.set(one.key, std::move(one.value), fmt::format("line {}", one.line));
  for (const std::string& one : environment) {
    if (!one.starts_with(environment_prefix)) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos) continue;
    std::string name = one.substr(environment_prefix.size(), equals - environment_prefix.size());
    std::ranges::transform(name, name.begin(), [](char c) {
      return c == '_' ? '.' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (find_setting(name) == nullptr && find_setting("calque." + name) != nullptr)
      name = "calque." + name;
    const std::string where = "environment variable " + one.substr(0, equals);
    // The environment is shared with others, so what is not ours is no reason to refuse.
    if (find_setting(name) == nullptr && !is_kafka_setting(name))
      config.warnings_.push_back(fmt::format("{}: there is no setting named '{}'", where, name));
    else
      config.set(name, one.substr(equals + 1), where);
  }
  for (const std::string& one : overrides) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError(fmt::format("--override {}: write it as key=value", one));
    config.set(trim(std::string_view(one).substr(0, equals)),
               std::string(trim(std::string_view(one).substr(equals + 1))), "--override");
  }
  config.derive();
  return config;
}

void Config::set(std::string_view name, std::string value, const std::string& where) {
  const Setting* const setting = find_setting(name);
  if (setting == nullptr) {
    if (!is_kafka_setting(name))
      throw ConfigError(
          fmt::format("{}: there is no setting named '{}': {}", where, name, suggestion(name)));
    warnings_.push_back(
        fmt::format("{}: {} is a setting of Kafka's that Calque does not serve; it has no effect",
                    where, name));
    return;
  }
  if (const auto problem = value_problem(*setting, value))
    throw ConfigError(fmt::format("{}: {}", where, *problem));
  values_.insert_or_assign(std::string(name), std::move(value));
}

void Config::derive() {
  if (!is_set("node.id") && !is_set("broker.id"))
    throw ConfigError("node.id is not set: add node.id=1, or the number this broker shall have");
  if (is_set("node.id") && is_set("broker.id") && integer("node.id") != integer("broker.id"))
    throw ConfigError("node.id and broker.id differ: remove broker.id");
  node_id_ = static_cast<base::NodeId>(integer(is_set("node.id") ? "node.id" : "broker.id"));

  const auto directories = is_set("log.dirs") ? list("log.dirs") : list("log.dir");
  if (directories.empty())
    throw ConfigError("log.dirs is not set: name the directory that shall hold the data");
  if (directories.size() > 1)
    throw ConfigError(fmt::format("log.dirs names {} directories and one is served: leave one",
                                  directories.size()));
  log_directory_ = directories.front();

  derive_listeners();

  std::size_t shards = std::min(usable_cpus(), shards_by_default_max);
  shards = std::min(shards, static_cast<std::size_t>(integer("num.io.threads")));
  if (is_set("calque.shards")) shards = static_cast<std::size_t>(integer("calque.shards"));
  shard_count_ = shards;

  request_bytes_max_ = integer("socket.request.max.bytes");
  fetch_bytes_max_ = integer("fetch.max.bytes");
  connection_idle_max_ms_ = integer("connections.max.idle.ms");
}

void Config::derive_listeners() {
  const auto controllers = list("controller.listener.names");
  const auto is_controller = [&](const Endpoint& one) {
    return std::ranges::find(controllers, one.listener) != controllers.end();
  };
  std::map<std::string, std::string> protocols;
  for (const std::string& one : list("listener.security.protocol.map")) {
    const std::size_t colon = one.find(':');
    if (colon == std::string::npos)
      throw ConfigError(
          fmt::format("listener.security.protocol.map: '{}' is no NAME:PROTOCOL; "
                      "write for instance INTERNAL:PLAINTEXT",
                      one));
    protocols[one.substr(0, colon)] = one.substr(colon + 1);
  }
  for (Endpoint& one : parse_endpoints("listeners", list("listeners"))) {
    if (is_controller(one)) continue;
    const auto known = protocols.find(one.listener);
    const std::string protocol = known != protocols.end() ? known->second : one.listener;
    if (protocol != "PLAINTEXT")
      throw ConfigError(
          fmt::format("listeners: {} would speak {} and only PLAINTEXT is served: "
                      "change the listener, or add {}:PLAINTEXT to "
                      "listener.security.protocol.map",
                      one.listener, protocol, one.listener));
    listeners_.push_back(std::move(one));
  }
  if (listeners_.empty())
    throw ConfigError("listeners is empty: write for instance listeners=PLAINTEXT://:9092");

  auto advertised = parse_endpoints("advertised.listeners", list("advertised.listeners"));
  std::erase_if(advertised, is_controller);
  for (const Endpoint& one : advertised)
    if (std::ranges::find(listeners_, one.listener, &Endpoint::listener) == listeners_.end())
      throw ConfigError(
          fmt::format("advertised.listeners: there is no listener named {}: add it "
                      "to listeners or remove it here",
                      one.listener));
  for (const Endpoint& listener : listeners_) {
    const auto own = std::ranges::find(advertised, listener.listener, &Endpoint::listener);
    Endpoint told = own != advertised.end() ? *own : listener;
    if (is_any_address(told.host))
      throw ConfigError(
          fmt::format("clients cannot connect to {}: set advertised.listeners to "
                      "{}://HOST:{} with the host name that they shall use",
                      told.host, told.listener, told.port));
    if (told.host.empty()) told.host = host_name();
    advertised_.push_back(std::move(told));
  }
}

bool Config::is_set(std::string_view name) const {
  return of_broker_.contains(name) || of_cluster_.contains(name) || values_.contains(name);
}

std::optional<std::string> Config::value(std::string_view name) const {
  for (const ConfigValues* layer : {&of_broker_, &of_cluster_, &values_})
    if (const auto at = layer->find(name); at != layer->end()) return at->second;
  const Setting* const setting = find_setting(name);
  CHECK(setting != nullptr);
  if (!setting->fallback) return std::nullopt;
  return std::string(*setting->fallback);
}

Config Config::with_changes(ConfigValues of_cluster, ConfigValues of_broker) const {
  Config changed = *this;
  changed.of_cluster_ = std::move(of_cluster);
  changed.of_broker_ = std::move(of_broker);
  return changed;
}

std::vector<std::string_view> setting_synonyms(std::string_view name) {
  static const std::vector<std::vector<std::string_view>> groups = {
      {"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
      {"log.roll.jitter.ms", "log.roll.jitter.hours"},
      {"log.roll.ms", "log.roll.hours"}};
  for (const auto& group : groups)
    if (std::ranges::find(group, name) != group.end()) return group;
  return {name};
}

std::vector<ConfigSynonym> Config::synonyms(std::span<const std::string_view> names,
                                            std::string_view wanted) const {
  struct Layer {
    const ConfigValues* values;
    ConfigSource source;
  };
  const Layer layers[] = {{&of_broker_, ConfigSource::dynamic_broker},
                          {&of_cluster_, ConfigSource::dynamic_cluster},
                          {&values_, ConfigSource::static_broker}};
  std::vector<ConfigSynonym> all;
  const auto add = [&](std::string_view name, std::string_view value, ConfigSource source) {
    if (all.empty() && name != wanted) return;
    all.push_back({std::string(name), std::string(value), source});
  };
  for (const Layer& layer : layers)
    for (const std::string_view name : names)
      if (const auto at = layer.values->find(name); at != layer.values->end())
        add(name, at->second, layer.source);
  for (const std::string_view name : names) {
    const Setting* const setting = find_setting(name);
    if (setting != nullptr && setting->fallback)
      add(name, *setting->fallback, ConfigSource::fallback);
  }
  return all;
}

std::int64_t Config::integer(std::string_view name) const {
  const auto number = parse_number<std::int64_t>(text(name));
  CHECK(number.has_value());
  return *number;
}

std::string Config::text(std::string_view name) const {
  return value(name).value_or(std::string());
}

bool Config::flag(std::string_view name) const {
  return text(name) == "true";
}

std::vector<std::string> Config::list(std::string_view name) const {
  return comma_separated(text(name));
}

}  // namespace broker
