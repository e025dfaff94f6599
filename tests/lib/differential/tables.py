"""All cases, and of which APIs a suite compares enough. Whoever serves another API adds it here."""
from lib.differential import (cluster, configs, epochs, fetch, list_offsets, produce, topics,
                              versions)

PRODUCE_FETCH = produce.CASES + fetch.CASES + list_offsets.CASES + epochs.CASES
PRODUCE_FETCH_APIS = ("Produce", "Fetch", "ListOffsets", "InitProducerId", "OffsetForLeaderEpoch")

ADMINISTRATION = versions.CASES + topics.CASES + configs.CASES + cluster.CASES
ADMINISTRATION_APIS = (
    "ApiVersions", "Metadata", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords",
    "DescribeTopicPartitions", "DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs",
    "ListConfigResources", "DescribeCluster", "DescribeLogDirs", "AlterReplicaLogDirs",
    "DescribeProducers", "ElectLeaders", "AlterPartitionReassignments",
    "ListPartitionReassignments", "DescribeQuorum", "UpdateFeatures", "DescribeClientQuotas",
    "AlterClientQuotas", "DescribeUserScramCredentials")

# By interop/groups_test.py and consumer_groups_test.py, which have Kafkas with other settings.
CLASSIC_GROUP_APIS = ("OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat",
                      "LeaveGroup", "SyncGroup", "DescribeGroups", "ListGroups", "DeleteGroups",
                      "OffsetDelete", "TxnOffsetCommit")
# By interop/transactions_test.py.
TRANSACTION_APIS = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
                    "WriteTxnMarkers", "DescribeTransactions", "ListTransactions")
CONSUMER_GROUP_APIS = ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe")

COMPARED = PRODUCE_FETCH_APIS + ADMINISTRATION_APIS + CLASSIC_GROUP_APIS + CONSUMER_GROUP_APIS + \
    TRANSACTION_APIS
