#include "broker/groups/records.h"

#include "protocol/messages/group_metadata.gen.h"
#include "protocol/messages/offset_commit_record.gen.h"
#include "protocol/record_frame.h"

namespace broker::groups {
namespace {

// Kafka 4.4's choice.
constexpr std::int16_t group_value_version = 3;
constexpr std::int16_t offset_value_version = 4;
constexpr std::int16_t offset_value_version_with_expiry = 1;

base::Buffer group_key(std::string_view group) {
  protocol::GroupMetadataKey key;
  key.group = group;
  return protocol::frame_key(key);
}

base::Buffer offset_key(std::string_view group, std::string_view topic, std::int32_t partition) {
  protocol::OffsetCommitRecordKey key;
  key.group = group;
  key.topic = topic;
  key.partition = partition;
  return protocol::frame_key(key);
}

}  // namespace

Record classic_group_record(const ClassicGroup& group) {
  protocol::GroupMetadataValue value;
  value.protocol_type = group.protocol_type.value_or("");
  value.generation = group.generation;
  value.protocol = group.protocol;
  value.leader = group.leader;
  value.current_state_timestamp = group.state_since_ms.value_or(-1);
  for (const auto& [id, from] : group.members()) {
    auto& member = value.members.emplace_back();
    member.member_id = id;
    member.group_instance_id = from.instance_id;
    member.client_id = from.client_id;
    member.client_host = from.client_host;
    member.rebalance_timeout = from.rebalance_timeout_ms;
    member.session_timeout = from.session_timeout_ms;
    if (const base::Buffer* metadata = from.metadata(group.protocol.value_or("")))
      member.subscription = *metadata;
    member.assignment = from.assignment;
  }
  return {group_key(group.group_id), protocol::frame_value(value, group_value_version)};
}

Record classic_group_tombstone(std::string_view group) {
  return {group_key(group), std::nullopt};
}

Record offset_record(std::string_view group, std::string_view topic, std::int32_t partition,
                     const CommittedOffset& offset) {
  protocol::OffsetCommitRecordValue value;
  value.offset = offset.offset;
  value.leader_epoch = offset.leader_epoch.value_or(-1);
  value.metadata = offset.metadata;
  value.commit_timestamp = offset.commit_timestamp_ms;
  value.expire_timestamp = offset.expire_timestamp_ms.value_or(-1);
  value.topic_id = offset.topic_id;
  const std::int16_t version =
      offset.expire_timestamp_ms ? offset_value_version_with_expiry : offset_value_version;
  return {offset_key(group, topic, partition), protocol::frame_value(value, version)};
}

Record offset_tombstone(std::string_view group, std::string_view topic, std::int32_t partition) {
  return {offset_key(group, topic, partition), std::nullopt};
}

}  // namespace broker::groups
