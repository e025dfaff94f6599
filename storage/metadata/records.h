// What the metadata store holds, as plain structs; encode/decode go through protobuf.
// `unknown_fields` carries what a newer release wrote, so that it survives a read-modify-write by
// this one.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace storage {

struct PartitionRecord {
  base::NodeId leader = 0;
  base::LeaderEpoch leader_epoch = 0;
};

struct TopicRecord {
  std::string name;
  base::Uuid id;
  std::vector<PartitionRecord> partitions;
  std::map<std::string, std::string> configs;  // only what was set on the topic
  bool internal = false;
  // KIP-1279's metadata record: the mirror that the topic belongs to, and what is wanted of it.
  std::string mirror;              // empty: none
  std::int8_t desired_state = -1;  // MIRRORING 3, PAUSED 5, STOPPED 7, UNKNOWN -1
  // Of a mirrored topic: its id at the source, where that is not `id`. Zero: the source had no ids.
  std::optional<base::Uuid> source_id = {};
  std::string unknown_fields = {};
};

struct MirrorRecord {
  std::string name;
  std::map<std::string, std::string>
      configs;  // KIP-1279 k.3: bootstrap.servers, source.cluster.id, topics.include …
  std::int64_t created_ms = 0;
  std::string unknown_fields = {};
};

struct ProducerIdBlockRecord {
  base::ProducerId next = 0;  // everything below was handed out or may have been
  std::string unknown_fields = {};
};

struct ClusterRecord {
  std::string cluster_id;
  std::string unknown_fields = {};
};

// What was set at run time for one broker, for all of them, or for a group.
struct BrokerConfigsRecord {
  std::map<std::string, std::string> values;
  std::string unknown_fields = {};
};

// By type (user, client-id) the name that the quota is for; without a name the default entity.
using QuotaEntity = std::map<std::string, std::optional<std::string>, std::less<>>;

struct ClientQuotaRecord {
  QuotaEntity entity;
  std::map<std::string, double> values;
  std::string unknown_fields = {};
};

std::string encode(const TopicRecord& record);
std::string encode(const MirrorRecord& record);
std::string encode(const ProducerIdBlockRecord& record);
std::string encode(const ClusterRecord& record);
std::string encode(const BrokerConfigsRecord& record);
std::string encode(const ClientQuotaRecord& record);
base::Result<TopicRecord> decode_topic(const std::string& value);
base::Result<MirrorRecord> decode_mirror(const std::string& value);
base::Result<ProducerIdBlockRecord> decode_producer_id_block(const std::string& value);
base::Result<ClusterRecord> decode_cluster(const std::string& value);
base::Result<BrokerConfigsRecord> decode_broker_configs(const std::string& value);
base::Result<ClientQuotaRecord> decode_client_quota(const std::string& value);

}  // namespace storage
