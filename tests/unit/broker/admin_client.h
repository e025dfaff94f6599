// Administration over a socket, in few words.
#pragma once
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "broker/partition.h"
#include "broker/retention.h"
#include "protocol/error_code.h"
#include "protocol/messages/alter_client_quotas.gen.h"
#include "protocol/messages/alter_configs.gen.h"
#include "protocol/messages/create_topics.gen.h"
#include "protocol/messages/delete_records.gen.h"
#include "protocol/messages/delete_topics.gen.h"
#include "protocol/messages/describe_configs.gen.h"
#include "protocol/messages/describe_topic_partitions.gen.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/incremental_alter_configs.gen.h"
#include "protocol/messages/list_offsets.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/produce.gen.h"
#include "tests/unit/broker/client.h"

namespace broker::test::admin {

namespace fs = std::filesystem;
using protocol::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr std::int8_t topic_resource = 2, broker_resource = 4;
constexpr std::int8_t operation_set = 0, operation_remove = 1;

inline std::int16_t number(ErrorCode code) {
  return static_cast<std::int16_t>(code);
}

inline protocol::CreateTopicsResponse::Topic create(Client& client, const std::string& name,
                                                    std::map<std::string, std::string> configs = {},
                                                    std::int32_t partitions = 1) {
  protocol::CreateTopicsRequest request;
  auto& topic = request.topics.emplace_back();
  topic.name = name;
  topic.num_partitions = partitions;
  topic.replication_factor = -1;
  for (const auto& [key, value] : configs) {
    auto& config = topic.configs.emplace_back();
    config.name = key;
    config.value = value;
  }
  return client.call<protocol::CreateTopicsResponse>(7, request).topics.at(0);
}

inline std::int16_t delete_topic(Client& client, const std::string& name,
                                 std::int16_t version = 5) {
  protocol::DeleteTopicsRequest request;
  request.topic_names.push_back(name);
  return client.call<protocol::DeleteTopicsResponse>(version, request).responses.at(0).error_code;
}

inline std::int16_t produce(Client& client, const std::string& topic, const std::string& value,
                            std::int32_t partition = 0, std::int32_t* throttle_ms = nullptr) {
  const base::Buffer batch = batch_of({value});
  protocol::ProduceRequest request;
  request.transactional_id.reset();
  request.acks = -1;
  request.timeout_ms = 1000;
  auto& to = request.topic_data.emplace_back();
  to.name = topic;
  auto& data = to.partition_data.emplace_back();
  data.index = partition;
  data.records.bytes = batch;
  const auto answer = client.call<protocol::ProduceResponse>(9, request);
  if (throttle_ms != nullptr) *throttle_ms = answer.throttle_time_ms;
  return answer.responses.at(0).partition_responses.at(0).error_code;
}

inline protocol::FetchResponse fetch(Client& client, const std::string& topic,
                                     base::Offset offset) {
  protocol::FetchRequest request;
  request.min_bytes = 1;
  request.max_bytes = 1 << 20;
  auto& from = request.topics.emplace_back();
  from.topic = topic;
  auto& one = from.partitions.emplace_back();
  one.fetch_offset = offset;
  one.partition_max_bytes = 1 << 20;
  return client.call<protocol::FetchResponse>(11, request);
}

inline base::Offset earliest(Client& client, const std::string& topic) {
  protocol::ListOffsetsRequest request;
  auto& asked = request.topics.emplace_back();
  asked.name = topic;
  asked.partitions.emplace_back().timestamp = -2;
  return client.call<protocol::ListOffsetsResponse>(5, request)
      .topics.at(0)
      .partitions.at(0)
      .offset;
}

struct Change {
  std::int8_t type;
  std::string resource, key;
  std::int8_t operation;
  std::optional<std::string> value;
};
inline protocol::IncrementalAlterConfigsResponse alter(Client& client,
                                                       const std::vector<Change>& all) {
  protocol::IncrementalAlterConfigsRequest request;
  for (const Change& one : all) {
    auto& resource = request.resources.emplace_back();
    resource.resource_type = one.type;
    resource.resource_name = one.resource;
    auto& config = resource.configs.emplace_back();
    config.name = one.key;
    config.config_operation = one.operation;
    config.value = one.value;
  }
  return client.call<protocol::IncrementalAlterConfigsResponse>(1, request);
}

inline protocol::DescribeConfigsResponse::Result describe(Client& client, std::int8_t type,
                                                          const std::string& name,
                                                          const std::string& key) {
  protocol::DescribeConfigsRequest request;
  request.include_synonyms = true;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = type;
  resource.resource_name = name;
  resource.configuration_keys.emplace().push_back(key);
  return client.call<protocol::DescribeConfigsResponse>(4, request).results.at(0);
}

inline std::int16_t set_quota(Client& client, const std::string& type,
                              std::optional<std::string> name, const std::string& key,
                              std::optional<double> value) {
  protocol::AlterClientQuotasRequest request;
  auto& entry = request.entries.emplace_back();
  auto& part = entry.entity.emplace_back();
  part.entity_type = type;
  part.entity_name = std::move(name);
  auto& op = entry.ops.emplace_back();
  op.key = key;
  op.value = value.value_or(0);
  op.remove = !value;
  return client.call<protocol::AlterClientQuotasResponse>(1, request).entries.at(0).error_code;
}

inline bool has_directory(const Directory& directory, const std::string& suffix) {
  for (const auto& entry : fs::directory_iterator(directory.path()))
    if (entry.path().filename().string().ends_with(suffix)) return true;
  return false;
}

// One round of retention on every shard.
inline void check_retention(Running& broker) {
  for (std::size_t i = 0; i < broker->shard_count(); ++i) {
    Shard& shard = broker->shard(i);
    auto round = [&]() -> boost::asio::awaitable<void> {
      Retention retention(*broker, shard);
      co_await retention.check_all();
      co_await retention.remove_expired();
    };
    boost::asio::co_spawn(shard.executor(), std::move(round), boost::asio::use_future).get();
  }
}

}  // namespace broker::test::admin
