#include "broker/dispatch.h"

#include <algorithm>
#include <array>

#include "broker/api/handlers.h"

namespace broker {
namespace {

using protocol::ApiKey;

// The version ranges are those of the message schemas, which are Kafka 4.4's; protocol/api_table.h
// holds both and what ApiVersions says of them.
constexpr std::array served = {
    Served{ApiKey::produce, api::produce, true, api::produce_together},
    Served{ApiKey::fetch, api::fetch},
    Served{ApiKey::list_offsets, api::list_offsets},
    Served{ApiKey::metadata, api::metadata},
    Served{ApiKey::offset_commit, api::offset_commit},
    Served{ApiKey::offset_fetch, api::offset_fetch},
    Served{ApiKey::find_coordinator, api::find_coordinator},
    Served{ApiKey::join_group, api::join_group},
    Served{ApiKey::heartbeat, api::heartbeat},
    Served{ApiKey::leave_group, api::leave_group},
    Served{ApiKey::sync_group, api::sync_group},
    Served{ApiKey::describe_groups, api::describe_groups},
    Served{ApiKey::list_groups, api::list_groups},
    Served{ApiKey::api_versions, api::api_versions},
    Served{ApiKey::create_topics, api::create_topics},
    Served{ApiKey::delete_topics, api::delete_topics},
    Served{ApiKey::delete_records, api::delete_records},
    Served{ApiKey::init_producer_id, api::init_producer_id},
    Served{ApiKey::offset_for_leader_epoch, api::offset_for_leader_epoch},
    Served{ApiKey::add_partitions_to_txn, api::add_partitions_to_txn},
    Served{ApiKey::add_offsets_to_txn, api::add_offsets_to_txn},
    Served{ApiKey::end_txn, api::end_txn},
    Served{ApiKey::write_txn_markers, api::write_txn_markers},
    Served{ApiKey::txn_offset_commit, api::txn_offset_commit},
    Served{ApiKey::describe_configs, api::describe_configs},
    Served{ApiKey::alter_configs, api::alter_configs},
    Served{ApiKey::alter_replica_log_dirs, api::alter_replica_log_dirs},
    Served{ApiKey::describe_log_dirs, api::describe_log_dirs},
    Served{ApiKey::create_partitions, api::create_partitions},
    Served{ApiKey::delete_groups, api::delete_groups},
    Served{ApiKey::elect_leaders, api::elect_leaders},
    Served{ApiKey::incremental_alter_configs, api::incremental_alter_configs},
    Served{ApiKey::alter_partition_reassignments, api::alter_partition_reassignments},
    Served{ApiKey::list_partition_reassignments, api::list_partition_reassignments},
    Served{ApiKey::offset_delete, api::offset_delete},
    Served{ApiKey::describe_client_quotas, api::describe_client_quotas},
    Served{ApiKey::alter_client_quotas, api::alter_client_quotas},
    Served{ApiKey::describe_user_scram_credentials, api::describe_user_scram_credentials},
    Served{ApiKey::describe_quorum, api::describe_quorum},
    Served{ApiKey::update_features, api::update_features},
    Served{ApiKey::describe_cluster, api::describe_cluster},
    Served{ApiKey::describe_producers, api::describe_producers},
    Served{ApiKey::describe_transactions, api::describe_transactions},
    Served{ApiKey::list_transactions, api::list_transactions},
    Served{ApiKey::consumer_group_heartbeat, api::consumer_group_heartbeat},
    Served{ApiKey::consumer_group_describe, api::consumer_group_describe},
    Served{ApiKey::list_config_resources, api::list_config_resources},
    Served{ApiKey::describe_topic_partitions, api::describe_topic_partitions},
    // Listed to our own clients only (docs/decisions.md).
    Served{ApiKey::create_cluster_mirror, api::create_cluster_mirror, false},
    Served{ApiKey::start_mirror_topics, api::start_mirror_topics, false},
    Served{ApiKey::stop_mirror_topics, api::stop_mirror_topics, false},
    Served{ApiKey::list_cluster_mirrors, api::list_cluster_mirrors, false},
    Served{ApiKey::describe_cluster_mirrors, api::describe_cluster_mirrors, false},
    Served{ApiKey::pause_mirror_topics, api::pause_mirror_topics, false},
    Served{ApiKey::resume_mirror_topics, api::resume_mirror_topics, false},
    Served{ApiKey::delete_cluster_mirror, api::delete_cluster_mirror, false},
    Served{ApiKey::recover_mirror_topics, api::recover_mirror_topics, false},
};
static_assert(std::ranges::is_sorted(served, {}, &Served::key));

const Served* find(std::int16_t key) {
  const auto at = std::ranges::lower_bound(served, static_cast<ApiKey>(key), {}, &Served::key);
  return at == served.end() || at->key != static_cast<ApiKey>(key) ? nullptr : &*at;
}

}  // namespace

std::span<const Served> served_apis() {
  return served;
}

Handler find_handler(std::int16_t key, std::int16_t version) {
  const Served* const api = find(key);
  if (api == nullptr) return nullptr;
  if (api->key == ApiKey::api_versions) return api->handle;
  return protocol::find_api(key)->has(version) ? api->handle : nullptr;
}

TogetherHandler find_together(std::int16_t key) {
  const Served* const api = find(key);
  return api == nullptr ? nullptr : api->together;
}

}  // namespace broker
