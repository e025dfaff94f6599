#include "protocol/api_table.h"

#include <algorithm>
#include <array>

#include "protocol/messages/all.gen.h"

namespace protocol {
namespace {

template <class Request, class Response>
consteval ApiInfo row(std::string_view name, std::int16_t advertised_min = Request::min_version) {
  static_assert(Request::api_key == Response::api_key);
  static_assert(Request::min_version == Response::min_version);
  static_assert(Request::max_version == Response::max_version);
  static_assert(Request::flexible_since == Response::flexible_since);
  return {Request::api_key,        name,           Request::min_version, Request::max_version,
          Request::flexible_since, advertised_min, Request::max_version};
}

// Produce is advertised from 0 although 0-2 are refused: librdkafka before 2.8 looks for those
// versions when it decides what codecs it may use (KAFKA-18659).
constexpr std::array apis = {
    row<ProduceRequest, ProduceResponse>("Produce", 0),
    row<FetchRequest, FetchResponse>("Fetch"),
    row<ListOffsetsRequest, ListOffsetsResponse>("ListOffsets"),
    row<MetadataRequest, MetadataResponse>("Metadata"),
    row<OffsetCommitRequest, OffsetCommitResponse>("OffsetCommit"),
    row<OffsetFetchRequest, OffsetFetchResponse>("OffsetFetch"),
    row<FindCoordinatorRequest, FindCoordinatorResponse>("FindCoordinator"),
    row<JoinGroupRequest, JoinGroupResponse>("JoinGroup"),
    row<HeartbeatRequest, HeartbeatResponse>("Heartbeat"),
    row<LeaveGroupRequest, LeaveGroupResponse>("LeaveGroup"),
    row<SyncGroupRequest, SyncGroupResponse>("SyncGroup"),
    row<DescribeGroupsRequest, DescribeGroupsResponse>("DescribeGroups"),
    row<ListGroupsRequest, ListGroupsResponse>("ListGroups"),
    row<SaslHandshakeRequest, SaslHandshakeResponse>("SaslHandshake"),
    row<ApiVersionsRequest, ApiVersionsResponse>("ApiVersions"),
    row<CreateTopicsRequest, CreateTopicsResponse>("CreateTopics"),
    row<DeleteTopicsRequest, DeleteTopicsResponse>("DeleteTopics"),
    row<DeleteRecordsRequest, DeleteRecordsResponse>("DeleteRecords"),
    row<InitProducerIdRequest, InitProducerIdResponse>("InitProducerId"),
    row<OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse>("OffsetForLeaderEpoch"),
    row<AddPartitionsToTxnRequest, AddPartitionsToTxnResponse>("AddPartitionsToTxn"),
    row<AddOffsetsToTxnRequest, AddOffsetsToTxnResponse>("AddOffsetsToTxn"),
    row<EndTxnRequest, EndTxnResponse>("EndTxn"),
    row<WriteTxnMarkersRequest, WriteTxnMarkersResponse>("WriteTxnMarkers"),
    row<TxnOffsetCommitRequest, TxnOffsetCommitResponse>("TxnOffsetCommit"),
    row<DescribeConfigsRequest, DescribeConfigsResponse>("DescribeConfigs"),
    row<AlterConfigsRequest, AlterConfigsResponse>("AlterConfigs"),
    row<AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse>("AlterReplicaLogDirs"),
    row<DescribeLogDirsRequest, DescribeLogDirsResponse>("DescribeLogDirs"),
    row<SaslAuthenticateRequest, SaslAuthenticateResponse>("SaslAuthenticate"),
    row<CreatePartitionsRequest, CreatePartitionsResponse>("CreatePartitions"),
    row<DeleteGroupsRequest, DeleteGroupsResponse>("DeleteGroups"),
    row<ElectLeadersRequest, ElectLeadersResponse>("ElectLeaders"),
    row<IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse>("IncrementalAlterConfigs"),
    row<AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse>(
        "AlterPartitionReassignments"),
    row<ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse>(
        "ListPartitionReassignments"),
    row<OffsetDeleteRequest, OffsetDeleteResponse>("OffsetDelete"),
    row<DescribeClientQuotasRequest, DescribeClientQuotasResponse>("DescribeClientQuotas"),
    row<AlterClientQuotasRequest, AlterClientQuotasResponse>("AlterClientQuotas"),
    row<DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse>(
        "DescribeUserScramCredentials"),
    row<DescribeQuorumRequest, DescribeQuorumResponse>("DescribeQuorum"),
    row<UpdateFeaturesRequest, UpdateFeaturesResponse>("UpdateFeatures"),
    row<DescribeClusterRequest, DescribeClusterResponse>("DescribeCluster"),
    row<DescribeProducersRequest, DescribeProducersResponse>("DescribeProducers"),
    row<DescribeTransactionsRequest, DescribeTransactionsResponse>("DescribeTransactions"),
    row<ListTransactionsRequest, ListTransactionsResponse>("ListTransactions"),
    row<ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse>("ConsumerGroupHeartbeat"),
    row<ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse>("ConsumerGroupDescribe"),
    row<ListConfigResourcesRequest, ListConfigResourcesResponse>("ListConfigResources"),
    row<DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse>("DescribeTopicPartitions"),
    row<CreateClusterMirrorRequest, CreateClusterMirrorResponse>("CreateClusterMirror"),
    row<StartMirrorTopicsRequest, StartMirrorTopicsResponse>("StartMirrorTopics"),
    row<StopMirrorTopicsRequest, StopMirrorTopicsResponse>("StopMirrorTopics"),
    row<ListClusterMirrorsRequest, ListClusterMirrorsResponse>("ListClusterMirrors"),
    row<DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse>("DescribeClusterMirrors"),
    row<PauseMirrorTopicsRequest, PauseMirrorTopicsResponse>("PauseMirrorTopics"),
    row<ResumeMirrorTopicsRequest, ResumeMirrorTopicsResponse>("ResumeMirrorTopics"),
    row<DeleteClusterMirrorRequest, DeleteClusterMirrorResponse>("DeleteClusterMirror"),
    row<RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse>("RecoverMirrorTopics"),
};
static_assert(std::ranges::is_sorted(apis, {}, &ApiInfo::key));

}  // namespace

std::span<const ApiInfo> all_apis() {
  return apis;
}

const ApiInfo* find_api(std::int16_t key) {
  const auto it = std::ranges::lower_bound(apis, static_cast<ApiKey>(key), {}, &ApiInfo::key);
  return it != apis.end() && it->key == static_cast<ApiKey>(key) ? &*it : nullptr;
}

}  // namespace protocol
