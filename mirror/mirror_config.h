// The settings of one mirror: KIP-1279's names and defaults (k.3), with or without the prefix
// `mirror.`; kept by their short names.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mirror/control_types.h"
#include "mirror/source_connection.h"
#include "mirror/topic_filter.h"

namespace mirror {

using ConfigMap = std::map<std::string, std::string>;

namespace config_key {
constexpr const char* bootstrap_servers = "bootstrap.servers";
constexpr const char* source_cluster_id = "source.cluster.id";
constexpr const char* topics_include = "topics.include";
constexpr const char* topics_exclude = "topics.exclude";
constexpr const char* groups_include = "groups.include";
constexpr const char* groups_exclude = "groups.exclude";
// Ours: "false" after a stop of the whole mirror, so that a topic which appears at the source later
// does not begin to be mirrored into a cluster that was taken over.
constexpr const char* topics_discovery = "topics.discovery.enable";
}  // namespace config_key

struct MirrorConfig {
  std::vector<Endpoint> bootstrap;
  std::optional<std::string> source_cluster_id;
  std::chrono::milliseconds request_timeout{30'000};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds fetch_wait_max{1000};
  std::chrono::milliseconds fetch_backoff{1000};
  std::int32_t fetch_min_bytes = 1;
  std::int32_t fetch_response_max_bytes = 10 * 1024 * 1024;
  std::int32_t fetch_max_bytes = 1024 * 1024;
  std::optional<std::chrono::milliseconds> refresh_interval;  // absent: the broker's setting
  bool support_unclean_leader_election = false;
  bool fail_on_source_trimmed = false;
  bool discovery = true;
  std::vector<std::string> include, exclude;
  TopicFilter filter;
  // Whose committed offsets are taken over; none where the list is empty.
  std::vector<std::string> group_include, group_exclude;
  TopicFilter groups;
  // How long a failover waits for the last look at the source's groups; 0: not at all.
  std::chrono::milliseconds group_stop_timeout{5000};
};

// Short names; of a name given both ways the last one counts.
ConfigMap shorten_names(const ConfigMap& configs);

// The config, or why it is refused: INVALID_CONFIG or INVALID_REGULAR_EXPRESSION and a sentence.
struct ParsedConfig {
  MirrorConfig config;
  Outcome outcome;
};
ParsedConfig parse_mirror_config(const ConfigMap& short_names);

// KIP-1279 (a): 1–249 characters of A–Z a–z 0–9 . _ -, neither "." nor "..".
bool is_valid_mirror_name(const std::string& name);

}  // namespace mirror
