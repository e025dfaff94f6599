// The Kafka APIs that have a schema under messages/: their keys, names and versions.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/mirror_keys.h"

namespace protocol {

enum class ApiKey : std::int16_t {
  produce = 0,
  fetch = 1,
  list_offsets = 2,
  metadata = 3,
  offset_commit = 8,
  offset_fetch = 9,
  find_coordinator = 10,
  join_group = 11,
  heartbeat = 12,
  leave_group = 13,
  sync_group = 14,
  describe_groups = 15,
  list_groups = 16,
  sasl_handshake = 17,
  api_versions = 18,
  create_topics = 19,
  delete_topics = 20,
  delete_records = 21,
  init_producer_id = 22,
  offset_for_leader_epoch = 23,
  add_partitions_to_txn = 24,
  add_offsets_to_txn = 25,
  end_txn = 26,
  write_txn_markers = 27,
  txn_offset_commit = 28,
  describe_configs = 32,
  alter_configs = 33,
  alter_replica_log_dirs = 34,
  describe_log_dirs = 35,
  sasl_authenticate = 36,
  create_partitions = 37,
  delete_groups = 42,
  elect_leaders = 43,
  incremental_alter_configs = 44,
  alter_partition_reassignments = 45,
  list_partition_reassignments = 46,
  offset_delete = 47,
  describe_client_quotas = 48,
  alter_client_quotas = 49,
  describe_user_scram_credentials = 50,
  describe_quorum = 55,
  update_features = 57,
  describe_cluster = 60,
  describe_producers = 61,
  describe_transactions = 65,
  list_transactions = 66,
  consumer_group_heartbeat = 68,
  consumer_group_describe = 69,
  list_config_resources = 74,
  describe_topic_partitions = 75,
  create_cluster_mirror = 94 + mirror_api_key_offset,
  start_mirror_topics = 95 + mirror_api_key_offset,
  stop_mirror_topics = 96 + mirror_api_key_offset,
  list_cluster_mirrors = 98 + mirror_api_key_offset,
  describe_cluster_mirrors = 99 + mirror_api_key_offset,
  pause_mirror_topics = 102 + mirror_api_key_offset,
  resume_mirror_topics = 103 + mirror_api_key_offset,
  delete_cluster_mirror = 104 + mirror_api_key_offset,
  recover_mirror_topics = 107 + mirror_api_key_offset,
};

struct ApiInfo {
  ApiKey key;
  std::string_view name;  // Kafka's, for instance ListOffsets
  // The versions that our schema, and so decode() and encode(), knows.
  std::int16_t min_version;
  std::int16_t max_version;
  std::int16_t flexible_since;
  // What a broker that serves this API says of it in ApiVersions: what Kafka 4.4 says. It differs
  // from min_version for Produce only.
  std::int16_t advertised_min;
  std::int16_t advertised_max;

  bool has(std::int16_t version) const { return version >= min_version && version <= max_version; }
  bool is_flexible(std::int16_t version) const { return version >= flexible_since; }
};

// All of them, by ascending key.
std::span<const ApiInfo> all_apis();
// Null for a key without a schema. Takes what came over the wire, hence the bare number.
const ApiInfo* find_api(std::int16_t key);
inline const ApiInfo* find_api(ApiKey key) {
  return find_api(static_cast<std::int16_t>(key));
}

}  // namespace protocol
