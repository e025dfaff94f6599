// Every request handler, one file each in this folder: broker/api/<name>.cc.
#pragma once
#include "broker/handler.h"

namespace broker::api {

Task<Response> produce(Broker&, Shard&, Request);
Task<std::vector<Response>> produce_together(Broker&, Shard&, std::vector<Request>);
Task<Response> fetch(Broker&, Shard&, Request);
Task<Response> list_offsets(Broker&, Shard&, Request);
Task<Response> metadata(Broker&, Shard&, Request);
Task<Response> api_versions(Broker&, Shard&, Request);
Task<Response> init_producer_id(Broker&, Shard&, Request);
Task<Response> offset_for_leader_epoch(Broker&, Shard&, Request);

Task<Response> add_partitions_to_txn(Broker&, Shard&, Request);
Task<Response> add_offsets_to_txn(Broker&, Shard&, Request);
Task<Response> end_txn(Broker&, Shard&, Request);
Task<Response> write_txn_markers(Broker&, Shard&, Request);
Task<Response> describe_transactions(Broker&, Shard&, Request);
Task<Response> list_transactions(Broker&, Shard&, Request);

Task<Response> create_topics(Broker&, Shard&, Request);
Task<Response> delete_topics(Broker&, Shard&, Request);
Task<Response> create_partitions(Broker&, Shard&, Request);
Task<Response> describe_configs(Broker&, Shard&, Request);
Task<Response> describe_cluster(Broker&, Shard&, Request);
Task<Response> delete_records(Broker&, Shard&, Request);
Task<Response> describe_topic_partitions(Broker&, Shard&, Request);
Task<Response> alter_configs(Broker&, Shard&, Request);
Task<Response> incremental_alter_configs(Broker&, Shard&, Request);
Task<Response> list_config_resources(Broker&, Shard&, Request);
Task<Response> describe_log_dirs(Broker&, Shard&, Request);
Task<Response> alter_replica_log_dirs(Broker&, Shard&, Request);
Task<Response> describe_producers(Broker&, Shard&, Request);
Task<Response> elect_leaders(Broker&, Shard&, Request);
Task<Response> alter_partition_reassignments(Broker&, Shard&, Request);
Task<Response> list_partition_reassignments(Broker&, Shard&, Request);
Task<Response> describe_quorum(Broker&, Shard&, Request);
Task<Response> update_features(Broker&, Shard&, Request);
Task<Response> describe_client_quotas(Broker&, Shard&, Request);
Task<Response> alter_client_quotas(Broker&, Shard&, Request);
Task<Response> describe_user_scram_credentials(Broker&, Shard&, Request);

Task<Response> find_coordinator(Broker&, Shard&, Request);
Task<Response> join_group(Broker&, Shard&, Request);
Task<Response> sync_group(Broker&, Shard&, Request);
Task<Response> consumer_group_describe(Broker&, Shard&, Request);
Task<Response> consumer_group_heartbeat(Broker&, Shard&, Request);
Task<Response> heartbeat(Broker&, Shard&, Request);
Task<Response> leave_group(Broker&, Shard&, Request);
Task<Response> offset_commit(Broker&, Shard&, Request);
Task<Response> offset_fetch(Broker&, Shard&, Request);
Task<Response> offset_delete(Broker&, Shard&, Request);
Task<Response> txn_offset_commit(Broker&, Shard&, Request);
Task<Response> describe_groups(Broker&, Shard&, Request);
Task<Response> list_groups(Broker&, Shard&, Request);
Task<Response> delete_groups(Broker&, Shard&, Request);

Task<Response> create_cluster_mirror(Broker&, Shard&, Request);
Task<Response> start_mirror_topics(Broker&, Shard&, Request);
Task<Response> stop_mirror_topics(Broker&, Shard&, Request);
Task<Response> pause_mirror_topics(Broker&, Shard&, Request);
Task<Response> resume_mirror_topics(Broker&, Shard&, Request);
Task<Response> recover_mirror_topics(Broker&, Shard&, Request);
Task<Response> list_cluster_mirrors(Broker&, Shard&, Request);
Task<Response> describe_cluster_mirrors(Broker&, Shard&, Request);
Task<Response> delete_cluster_mirror(Broker&, Shard&, Request);

}  // namespace broker::api
