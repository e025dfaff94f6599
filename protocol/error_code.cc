#include "protocol/error_code.h"

#include <algorithm>

namespace protocol {
namespace {

struct Known {
  ErrorCode code;
  bool retriable;
  std::string_view name;
};
using enum ErrorCode;

constexpr bool again = true;
constexpr bool never = false;

constexpr Known known[] = {
    {unknown_server_error, never, "UNKNOWN_SERVER_ERROR"},
    {none, never, "NONE"},
    {offset_out_of_range, never, "OFFSET_OUT_OF_RANGE"},
    {corrupt_message, again, "CORRUPT_MESSAGE"},
    {unknown_topic_or_partition, again, "UNKNOWN_TOPIC_OR_PARTITION"},
    {invalid_fetch_size, never, "INVALID_FETCH_SIZE"},
    {leader_not_available, again, "LEADER_NOT_AVAILABLE"},
    {not_leader_or_follower, again, "NOT_LEADER_OR_FOLLOWER"},
    {request_timed_out, again, "REQUEST_TIMED_OUT"},
    {broker_not_available, never, "BROKER_NOT_AVAILABLE"},
    {replica_not_available, again, "REPLICA_NOT_AVAILABLE"},
    {message_too_large, never, "MESSAGE_TOO_LARGE"},
    {stale_controller_epoch, never, "STALE_CONTROLLER_EPOCH"},
    {offset_metadata_too_large, never, "OFFSET_METADATA_TOO_LARGE"},
    {network_exception, again, "NETWORK_EXCEPTION"},
    {coordinator_load_in_progress, again, "COORDINATOR_LOAD_IN_PROGRESS"},
    {coordinator_not_available, again, "COORDINATOR_NOT_AVAILABLE"},
    {not_coordinator, again, "NOT_COORDINATOR"},
    {invalid_topic_exception, never, "INVALID_TOPIC_EXCEPTION"},
    {record_list_too_large, never, "RECORD_LIST_TOO_LARGE"},
    {not_enough_replicas, again, "NOT_ENOUGH_REPLICAS"},
    {not_enough_replicas_after_append, again, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"},
    {invalid_required_acks, never, "INVALID_REQUIRED_ACKS"},
    {illegal_generation, never, "ILLEGAL_GENERATION"},
    {inconsistent_group_protocol, never, "INCONSISTENT_GROUP_PROTOCOL"},
    {invalid_group_id, never, "INVALID_GROUP_ID"},
    {unknown_member_id, never, "UNKNOWN_MEMBER_ID"},
    {invalid_session_timeout, never, "INVALID_SESSION_TIMEOUT"},
    {rebalance_in_progress, never, "REBALANCE_IN_PROGRESS"},
    {invalid_commit_offset_size, never, "INVALID_COMMIT_OFFSET_SIZE"},
    {topic_authorization_failed, never, "TOPIC_AUTHORIZATION_FAILED"},
    {group_authorization_failed, never, "GROUP_AUTHORIZATION_FAILED"},
    {cluster_authorization_failed, never, "CLUSTER_AUTHORIZATION_FAILED"},
    {invalid_timestamp, never, "INVALID_TIMESTAMP"},
    {unsupported_sasl_mechanism, never, "UNSUPPORTED_SASL_MECHANISM"},
    {illegal_sasl_state, never, "ILLEGAL_SASL_STATE"},
    {unsupported_version, never, "UNSUPPORTED_VERSION"},
    {topic_already_exists, never, "TOPIC_ALREADY_EXISTS"},
    {invalid_partitions, never, "INVALID_PARTITIONS"},
    {invalid_replication_factor, never, "INVALID_REPLICATION_FACTOR"},
    {invalid_replica_assignment, never, "INVALID_REPLICA_ASSIGNMENT"},
    {invalid_config, never, "INVALID_CONFIG"},
    {not_controller, again, "NOT_CONTROLLER"},
    {invalid_request, never, "INVALID_REQUEST"},
    {unsupported_for_message_format, never, "UNSUPPORTED_FOR_MESSAGE_FORMAT"},
    {policy_violation, never, "POLICY_VIOLATION"},
    {out_of_order_sequence_number, never, "OUT_OF_ORDER_SEQUENCE_NUMBER"},
    {duplicate_sequence_number, never, "DUPLICATE_SEQUENCE_NUMBER"},
    {invalid_producer_epoch, never, "INVALID_PRODUCER_EPOCH"},
    {invalid_txn_state, never, "INVALID_TXN_STATE"},
    {invalid_producer_id_mapping, never, "INVALID_PRODUCER_ID_MAPPING"},
    {invalid_transaction_timeout, never, "INVALID_TRANSACTION_TIMEOUT"},
    {concurrent_transactions, again, "CONCURRENT_TRANSACTIONS"},
    {transaction_coordinator_fenced, never, "TRANSACTION_COORDINATOR_FENCED"},
    {transactional_id_authorization_failed, never, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
    {security_disabled, never, "SECURITY_DISABLED"},
    {operation_not_attempted, never, "OPERATION_NOT_ATTEMPTED"},
    {kafka_storage_error, again, "KAFKA_STORAGE_ERROR"},
    {log_dir_not_found, never, "LOG_DIR_NOT_FOUND"},
    {sasl_authentication_failed, never, "SASL_AUTHENTICATION_FAILED"},
    {unknown_producer_id, never, "UNKNOWN_PRODUCER_ID"},
    {reassignment_in_progress, never, "REASSIGNMENT_IN_PROGRESS"},
    {delegation_token_auth_disabled, never, "DELEGATION_TOKEN_AUTH_DISABLED"},
    {delegation_token_not_found, never, "DELEGATION_TOKEN_NOT_FOUND"},
    {delegation_token_owner_mismatch, never, "DELEGATION_TOKEN_OWNER_MISMATCH"},
    {delegation_token_request_not_allowed, never, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"},
    {delegation_token_authorization_failed, never, "DELEGATION_TOKEN_AUTHORIZATION_FAILED"},
    {delegation_token_expired, never, "DELEGATION_TOKEN_EXPIRED"},
    {invalid_principal_type, never, "INVALID_PRINCIPAL_TYPE"},
    {non_empty_group, never, "NON_EMPTY_GROUP"},
    {group_id_not_found, never, "GROUP_ID_NOT_FOUND"},
    {fetch_session_id_not_found, again, "FETCH_SESSION_ID_NOT_FOUND"},
    {invalid_fetch_session_epoch, again, "INVALID_FETCH_SESSION_EPOCH"},
    {listener_not_found, again, "LISTENER_NOT_FOUND"},
    {topic_deletion_disabled, never, "TOPIC_DELETION_DISABLED"},
    {fenced_leader_epoch, again, "FENCED_LEADER_EPOCH"},
    {unknown_leader_epoch, again, "UNKNOWN_LEADER_EPOCH"},
    {unsupported_compression_type, never, "UNSUPPORTED_COMPRESSION_TYPE"},
    {stale_broker_epoch, never, "STALE_BROKER_EPOCH"},
    {offset_not_available, again, "OFFSET_NOT_AVAILABLE"},
    {member_id_required, never, "MEMBER_ID_REQUIRED"},
    {preferred_leader_not_available, again, "PREFERRED_LEADER_NOT_AVAILABLE"},
    {group_max_size_reached, never, "GROUP_MAX_SIZE_REACHED"},
    {fenced_instance_id, never, "FENCED_INSTANCE_ID"},
    {eligible_leaders_not_available, again, "ELIGIBLE_LEADERS_NOT_AVAILABLE"},
    {election_not_needed, again, "ELECTION_NOT_NEEDED"},
    {no_reassignment_in_progress, never, "NO_REASSIGNMENT_IN_PROGRESS"},
    {group_subscribed_to_topic, never, "GROUP_SUBSCRIBED_TO_TOPIC"},
    {invalid_record, never, "INVALID_RECORD"},
    {unstable_offset_commit, again, "UNSTABLE_OFFSET_COMMIT"},
    {throttling_quota_exceeded, again, "THROTTLING_QUOTA_EXCEEDED"},
    {producer_fenced, never, "PRODUCER_FENCED"},
    {resource_not_found, never, "RESOURCE_NOT_FOUND"},
    {duplicate_resource, never, "DUPLICATE_RESOURCE"},
    {unacceptable_credential, never, "UNACCEPTABLE_CREDENTIAL"},
    {inconsistent_voter_set, never, "INCONSISTENT_VOTER_SET"},
    {invalid_update_version, never, "INVALID_UPDATE_VERSION"},
    {feature_update_failed, never, "FEATURE_UPDATE_FAILED"},
    {principal_deserialization_failure, never, "PRINCIPAL_DESERIALIZATION_FAILURE"},
    {snapshot_not_found, never, "SNAPSHOT_NOT_FOUND"},
    {position_out_of_range, never, "POSITION_OUT_OF_RANGE"},
    {unknown_topic_id, again, "UNKNOWN_TOPIC_ID"},
    {duplicate_broker_registration, never, "DUPLICATE_BROKER_REGISTRATION"},
    {broker_id_not_registered, never, "BROKER_ID_NOT_REGISTERED"},
    {inconsistent_topic_id, again, "INCONSISTENT_TOPIC_ID"},
    {inconsistent_cluster_id, never, "INCONSISTENT_CLUSTER_ID"},
    {transactional_id_not_found, never, "TRANSACTIONAL_ID_NOT_FOUND"},
    {fetch_session_topic_id_error, again, "FETCH_SESSION_TOPIC_ID_ERROR"},
    {ineligible_replica, never, "INELIGIBLE_REPLICA"},
    {new_leader_elected, never, "NEW_LEADER_ELECTED"},
    {offset_moved_to_tiered_storage, never, "OFFSET_MOVED_TO_TIERED_STORAGE"},
    {fenced_member_epoch, never, "FENCED_MEMBER_EPOCH"},
    {unreleased_instance_id, never, "UNRELEASED_INSTANCE_ID"},
    {unsupported_assignor, never, "UNSUPPORTED_ASSIGNOR"},
    {stale_member_epoch, never, "STALE_MEMBER_EPOCH"},
    {mismatched_endpoint_type, never, "MISMATCHED_ENDPOINT_TYPE"},
    {unsupported_endpoint_type, never, "UNSUPPORTED_ENDPOINT_TYPE"},
    {unknown_controller_id, never, "UNKNOWN_CONTROLLER_ID"},
    {unknown_subscription_id, never, "UNKNOWN_SUBSCRIPTION_ID"},
    {telemetry_too_large, never, "TELEMETRY_TOO_LARGE"},
    {invalid_registration, never, "INVALID_REGISTRATION"},
    {transaction_abortable, never, "TRANSACTION_ABORTABLE"},
    {invalid_record_state, never, "INVALID_RECORD_STATE"},
    {share_session_not_found, again, "SHARE_SESSION_NOT_FOUND"},
    {invalid_share_session_epoch, again, "INVALID_SHARE_SESSION_EPOCH"},
    {fenced_state_epoch, never, "FENCED_STATE_EPOCH"},
    {invalid_voter_key, never, "INVALID_VOTER_KEY"},
    {duplicate_voter, never, "DUPLICATE_VOTER"},
    {voter_not_found, never, "VOTER_NOT_FOUND"},
    {invalid_regular_expression, never, "INVALID_REGULAR_EXPRESSION"},
    {rebootstrap_required, never, "REBOOTSTRAP_REQUIRED"},
    {streams_invalid_topology, never, "STREAMS_INVALID_TOPOLOGY"},
    {streams_invalid_topology_epoch, never, "STREAMS_INVALID_TOPOLOGY_EPOCH"},
    {streams_topology_fenced, never, "STREAMS_TOPOLOGY_FENCED"},
    {share_session_limit_reached, again, "SHARE_SESSION_LIMIT_REACHED"},
    {group_deletion_failed, never, "GROUP_DELETION_FAILED"},
    {streams_topology_description_update_failed, never,
     "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"},
    {controller_id_not_registered, never, "CONTROLLER_ID_NOT_REGISTERED"},
    {read_only_topic, never, "READ_ONLY_TOPIC"},
    {cluster_mirror_already_exists, never, "CLUSTER_MIRROR_ALREADY_EXISTS"},
    {unknown_cluster_mirror, never, "UNKNOWN_CLUSTER_MIRROR"},
    {topic_already_in_cluster_mirror, never, "TOPIC_ALREADY_IN_CLUSTER_MIRROR"},
    {topic_not_in_cluster_mirror, never, "TOPIC_NOT_IN_CLUSTER_MIRROR"},
    {mirror_topic_already_paused, never, "MIRROR_TOPIC_ALREADY_PAUSED"},
    {mirror_topic_not_paused, never, "MIRROR_TOPIC_NOT_PAUSED"},
    {mirror_topic_being_stopped, never, "MIRROR_TOPIC_BEING_STOPPED"},
    {cluster_mirror_not_empty, never, "CLUSTER_MIRROR_NOT_EMPTY"},
    {cluster_mirror_authorization_failed, never, "CLUSTER_MIRROR_AUTHORIZATION_FAILED"},
    {invalid_cluster_mirror_state, never, "INVALID_CLUSTER_MIRROR_STATE"},
    {mirror_topic_not_stopped, never, "MIRROR_TOPIC_NOT_STOPPED"},
};
static_assert(std::ranges::is_sorted(known, {}, &Known::code));

const Known* find(ErrorCode code) {
  const auto* it = std::ranges::lower_bound(known, code, {}, &Known::code);
  return it != std::end(known) && it->code == code ? it : nullptr;
}

}  // namespace

std::string_view error_name(ErrorCode code) {
  const Known* k = find(code);
  return k != nullptr ? k->name : std::string_view{};
}

std::string describe_error(ErrorCode code) {
  const std::string_view name = error_name(code);
  return name.empty() ? "error " + std::to_string(static_cast<int>(code)) : std::string(name);
}

bool is_retriable(ErrorCode code) {
  const Known* k = find(code);
  return k != nullptr && k->retriable;
}

}  // namespace protocol
