#include "mirror/mirror_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <string_view>

namespace mirror {
namespace {

using Parse = std::string (*)(MirrorConfig&, const std::string&);

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string bounded(const std::string& text, std::int64_t low, std::int64_t high,
                    std::int64_t& out) {
  const auto value = number(text);
  if (!value || *value < low || *value > high)
    return fmt::format("must be a whole number from {} to {}", low, high);
  out = *value;
  return {};
}

constexpr std::int64_t day_ms = 86'400'000;

template <auto Member, std::int64_t Low>
std::string milliseconds(MirrorConfig& config, const std::string& text) {
  std::int64_t value = 0;
  std::string problem = bounded(text, Low, day_ms, value);
  if (problem.empty()) config.*Member = std::chrono::milliseconds(value);
  return problem;
}

template <auto Member>
std::string bytes(MirrorConfig& config, const std::string& text) {
  std::int64_t value = 0;
  std::string problem = bounded(text, 1, INT32_MAX, value);
  if (problem.empty()) config.*Member = static_cast<std::int32_t>(value);
  return problem;
}

template <auto Member>
std::string boolean(MirrorConfig& config, const std::string& text) {
  if (text != "true" && text != "false") return "must be true or false";
  config.*Member = text == "true";
  return {};
}

std::optional<Endpoint> endpoint(std::string_view text) {
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos)
    text.remove_prefix(scheme + 3);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto port = number(std::string(text.substr(colon + 1)));
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2)
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return std::nullopt;  // an IPv6 address without brackets
  if (!port || *port < 1 || *port > UINT16_MAX) return std::nullopt;
  return Endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string bootstrap(MirrorConfig& config, const std::string& text) {
  for (const std::string& item : split_list(text)) {
    const auto one = endpoint(item);
    if (!one) return fmt::format("'{}' is not HOST:PORT", item);
    config.bootstrap.push_back(*one);
  }
  if (config.bootstrap.empty()) return "needs at least one HOST:PORT";
  return {};
}

std::string cluster_id(MirrorConfig& config, const std::string& text) {
  if (!text.empty()) config.source_cluster_id = text;
  return {};
}

template <auto Member>
std::string pattern_list(MirrorConfig& config, const std::string& text) {
  config.*Member = split_list(text);
  return {};
}

// Below the time that a local step of a failover may take.
constexpr std::int64_t group_stop_timeout_max_ms = 20'000;

std::string group_stop_timeout(MirrorConfig& config, const std::string& text) {
  std::int64_t value = 0;
  std::string problem = bounded(text, 0, group_stop_timeout_max_ms, value);
  if (problem.empty()) config.group_stop_timeout = std::chrono::milliseconds(value);
  return problem;
}

std::string plaintext_only(MirrorConfig&, const std::string& text) {
  return text == "PLAINTEXT" ? "" : "only PLAINTEXT sources are supported in this release";
}

std::string on_trimmed(MirrorConfig& config, const std::string& text) {
  if (text != "fast-forward" && text != "fail") return "must be fast-forward or fail";
  config.fail_on_source_trimmed = text == "fail";
  return {};
}

// For later parts of mirroring: checked when they are used.
std::string kept(MirrorConfig&, const std::string&) {
  return {};
}

struct Setting {
  std::string_view name;
  Parse parse;
};
constexpr std::array<Setting, 31> mirror_settings{{
    {config_key::bootstrap_servers, bootstrap},
    {config_key::source_cluster_id, cluster_id},
    {config_key::topics_include, pattern_list<&MirrorConfig::include>},
    {config_key::topics_exclude, pattern_list<&MirrorConfig::exclude>},
    {config_key::topics_discovery, boolean<&MirrorConfig::discovery>},
    {"request.timeout.ms", milliseconds<&MirrorConfig::request_timeout, 1>},
    {"socket.connection.setup.timeout.ms", milliseconds<&MirrorConfig::connect_timeout, 1>},
    {"socket.connection.setup.timeout.max.ms", kept},
    {"connections.max.idle.ms", kept},
    {"socket.timeout.ms", kept},
    {"socket.receive.buffer.bytes", kept},
    {"fetch.wait.max.ms", milliseconds<&MirrorConfig::fetch_wait_max, 0>},
    {"fetch.backoff.ms", milliseconds<&MirrorConfig::fetch_backoff, 0>},
    {"fetch.min.bytes", bytes<&MirrorConfig::fetch_min_bytes>},
    {"fetch.response.max.bytes", bytes<&MirrorConfig::fetch_response_max_bytes>},
    {"fetch.max.bytes", bytes<&MirrorConfig::fetch_max_bytes>},
    {"metadata.refresh.interval.ms", milliseconds<&MirrorConfig::refresh_interval, 100>},
    {"support.unclean.leader.election", boolean<&MirrorConfig::support_unclean_leader_election>},
    {"unclean.leader.election.enable", boolean<&MirrorConfig::support_unclean_leader_election>},
    {"on.source.trimmed", on_trimmed},
    {config_key::groups_include, pattern_list<&MirrorConfig::group_include>},
    {config_key::groups_exclude, pattern_list<&MirrorConfig::group_exclude>},
    {"groups.stop.timeout.ms", group_stop_timeout},
    {"acls.include", kept},
    {"topic.properties.exclude", kept},
    {"security.protocol", plaintext_only},
    {"sasl.mechanism", kept},
    {"security.providers", kept},
    {"client.id", kept},
    {"description", kept},
    {"client.rack", kept},
}};

}  // namespace

ConfigMap shorten_names(const ConfigMap& configs) {
  constexpr std::string_view prefix = "mirror.";
  ConfigMap out;
  for (const auto& [name, value] : configs)
    out[name.starts_with(prefix) ? name.substr(prefix.size()) : name] = value;
  return out;
}

ParsedConfig parse_mirror_config(const ConfigMap& short_names) {
  ParsedConfig out;
  out.config.exclude = {"__.*"};
  out.config.group_include = {".*"};
  const auto refuse = [&out](std::int16_t error, std::string text) {
    out.outcome = {error, std::move(text)};
  };
  if (!short_names.contains(config_key::bootstrap_servers)) {
    refuse(control_error::invalid_config,
           "bootstrap.servers is missing: name the source as HOST:PORT[,HOST:PORT…]");
    return out;
  }
  for (const auto& [name, value] : short_names) {
    const auto setting = std::ranges::find(mirror_settings, name, &Setting::name);
    if (setting == mirror_settings.end()) {
      refuse(control_error::invalid_config,
             fmt::format("'{}' is no setting of a mirror; remove it", name));
      return out;
    }
    const std::string problem = setting->parse(out.config, value);
    if (problem.empty()) continue;
    refuse(control_error::invalid_config, fmt::format("{} {}", name, problem));
    return out;
  }
  out.config.filter = {PatternList(out.config.include), PatternList(out.config.exclude)};
  out.config.groups = {PatternList(out.config.group_include),
                       PatternList(out.config.group_exclude)};
  for (const PatternList* list : {&out.config.filter.include, &out.config.filter.exclude,
                                  &out.config.groups.include, &out.config.groups.exclude})
    if (!list->problem().empty())
      refuse(control_error::invalid_regular_expression, list->problem());
  return out;
}

bool is_valid_mirror_name(const std::string& name) {
  constexpr std::size_t length_max = 249;
  if (name.empty() || name.size() > length_max || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace mirror
