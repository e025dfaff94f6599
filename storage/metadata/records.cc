#include "storage/metadata/records.h"

#include <cstring>

#include "storage/error.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpedantic"
#include "storage/metadata/metadata.pb.h"
#pragma GCC diagnostic pop

namespace storage {
namespace {

// Encodings that stand one after the other are read as one message.
template <class Message, class Record>
std::string finish(const Message& message, const Record& record) {
  return message.SerializeAsString() + record.unknown_fields;
}

template <class Message>
base::Result<Message> parse(const std::string& value) {
  Message message;
  if (!message.ParseFromString(value)) return StorageErrc::corrupt_file;
  return message;
}

base::Result<base::Uuid> to_uuid(const std::string& bytes) {
  base::Uuid id;
  if (bytes.size() != id.bytes.size()) return StorageErrc::corrupt_file;
  std::memcpy(id.bytes.data(), bytes.data(), id.bytes.size());
  return id;
}

template <class Map>
std::map<std::string, std::string> sorted(const Map& map) {
  return {map.begin(), map.end()};
}

}  // namespace

std::string encode(const TopicRecord& record) {
  wire::Topic message;
  message.set_name(record.name);
  message.set_id(record.id.bytes.data(), record.id.bytes.size());
  for (const PartitionRecord& one : record.partitions) {
    wire::Partition* partition = message.add_partitions();
    partition->set_leader(one.leader);
    partition->set_leader_epoch(one.leader_epoch);
  }
  message.mutable_configs()->insert(record.configs.begin(), record.configs.end());
  message.set_internal(record.internal);
  message.set_mirror(record.mirror);
  message.set_desired_state(record.desired_state);
  if (record.source_id)
    message.set_source_id(record.source_id->bytes.data(), record.source_id->bytes.size());
  return finish(message, record);
}

base::Result<TopicRecord> decode_topic(const std::string& value) {
  TRY(auto message, parse<wire::Topic>(value));
  TopicRecord record;
  record.name = message.name();
  TRY(record.id, to_uuid(message.id()));
  for (const wire::Partition& one : message.partitions())
    record.partitions.push_back({one.leader(), one.leader_epoch()});
  record.configs = sorted(message.configs());
  record.internal = message.internal();
  record.mirror = message.mirror();
  if (message.has_desired_state())
    record.desired_state = static_cast<std::int8_t>(message.desired_state());
  if (message.has_source_id()) {
    TRY(record.source_id, to_uuid(message.source_id()));
  }
  // What is left of the message then is what this release does not know.
  message.clear_name();
  message.clear_id();
  message.clear_partitions();
  message.clear_configs();
  message.clear_internal();
  message.clear_mirror();
  message.clear_desired_state();
  message.clear_source_id();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

std::string encode(const MirrorRecord& record) {
  wire::Mirror message;
  message.set_name(record.name);
  message.mutable_configs()->insert(record.configs.begin(), record.configs.end());
  message.set_created_ms(record.created_ms);
  return finish(message, record);
}

base::Result<MirrorRecord> decode_mirror(const std::string& value) {
  TRY(auto message, parse<wire::Mirror>(value));
  MirrorRecord record;
  record.name = message.name();
  record.configs = sorted(message.configs());
  record.created_ms = message.created_ms();
  message.clear_name();
  message.clear_configs();
  message.clear_created_ms();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

std::string encode(const ProducerIdBlockRecord& record) {
  wire::ProducerIdBlock message;
  message.set_next(record.next);
  return finish(message, record);
}

base::Result<ProducerIdBlockRecord> decode_producer_id_block(const std::string& value) {
  TRY(auto message, parse<wire::ProducerIdBlock>(value));
  ProducerIdBlockRecord record;
  record.next = message.next();
  message.clear_next();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

std::string encode(const ClusterRecord& record) {
  wire::Cluster message;
  message.set_cluster_id(record.cluster_id);
  return finish(message, record);
}

base::Result<ClusterRecord> decode_cluster(const std::string& value) {
  TRY(auto message, parse<wire::Cluster>(value));
  ClusterRecord record;
  record.cluster_id = message.cluster_id();
  message.clear_cluster_id();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

std::string encode(const BrokerConfigsRecord& record) {
  wire::BrokerConfigs message;
  message.mutable_values()->insert(record.values.begin(), record.values.end());
  return finish(message, record);
}

base::Result<BrokerConfigsRecord> decode_broker_configs(const std::string& value) {
  TRY(auto message, parse<wire::BrokerConfigs>(value));
  BrokerConfigsRecord record;
  record.values = sorted(message.values());
  message.clear_values();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

std::string encode(const ClientQuotaRecord& record) {
  wire::ClientQuota message;
  for (const auto& [type, name] : record.entity) {
    wire::QuotaEntityPart* const part = message.add_entity();
    part->set_type(type);
    if (name) part->set_name(*name);
  }
  message.mutable_values()->insert(record.values.begin(), record.values.end());
  return finish(message, record);
}

base::Result<ClientQuotaRecord> decode_client_quota(const std::string& value) {
  TRY(auto message, parse<wire::ClientQuota>(value));
  ClientQuotaRecord record;
  for (const wire::QuotaEntityPart& part : message.entity()) {
    std::optional<std::string>& name = record.entity[part.type()];
    if (part.has_name()) name = part.name();
  }
  record.values = {message.values().begin(), message.values().end()};
  message.clear_entity();
  message.clear_values();
  record.unknown_fields = message.SerializeAsString();
  return record;
}

}  // namespace storage
