// Requests of the data APIs as tests send them, and what their answers say.
#pragma once
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "protocol/error_code.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/produce.gen.h"
#include "protocol/record.h"
#include "tests/unit/broker/client.h"

namespace broker::test {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using ProducedPartition = ProduceResponse::Response::PartitionResponse;
using FetchedPartition = FetchResponse::Response::Partition;

inline std::int16_t number(ErrorCode code) {
  return static_cast<std::int16_t>(code);
}

inline ProduceRequest produce_request(const Topic& topic, std::int32_t partition,
                                      base::Bytes records, std::int16_t acks = -1) {
  ProduceRequest request;
  request.transactional_id.reset();
  request.acks = acks;
  request.timeout_ms = 1000;
  auto& to = request.topic_data.emplace_back();
  to.name = topic.name;
  to.topic_id = topic.id;
  auto& data = to.partition_data.emplace_back();
  data.index = partition;
  data.records.bytes = records;
  return request;
}

inline ProducedPartition produce(Client& client, const Topic& topic, base::Bytes records,
                                 std::int32_t partition = 0, std::int16_t version = 13,
                                 std::int16_t acks = -1) {
  const auto answer =
      client.call<ProduceResponse>(version, produce_request(topic, partition, records, acks));
  REQUIRE(answer.responses.size() == 1);
  REQUIRE(answer.responses[0].partition_responses.size() == 1);
  return answer.responses[0].partition_responses[0];
}

inline FetchRequest::Topic::Partition wanted(std::int32_t partition, base::Offset offset) {
  FetchRequest::Topic::Partition one;
  one.partition = partition;
  one.fetch_offset = offset;
  one.partition_max_bytes = 1 << 20;
  return one;
}

inline FetchRequest fetch_request(const Topic& topic, base::Offset offset,
                                  std::int32_t partition = 0) {
  FetchRequest request;
  request.max_wait_ms = 0;
  request.min_bytes = 1;
  auto& from = request.topics.emplace_back();
  from.topic = topic.name;
  from.topic_id = topic.id;
  from.partitions.push_back(wanted(partition, offset));
  return request;
}

inline FetchedPartition fetch(Client& client, const FetchRequest& request,
                              std::int16_t version = 18) {
  auto answer = client.call<FetchResponse>(version, request);
  CHECK(answer.error_code == 0);
  REQUIRE(answer.responses.size() == 1);
  REQUIRE(answer.responses[0].partitions.size() == 1);
  return answer.responses[0].partitions[0];
}

inline std::vector<std::string> values_in(base::Bytes batches) {
  std::vector<std::string> values;
  protocol::BatchIterator it(batches, protocol::CrcCheck::yes);
  while (it.next()) {
    auto reader = protocol::RecordReader::open(it.batch());
    REQUIRE(reader.has_value());
    protocol::Record record;
    while (reader->next(record)) values.emplace_back(base::as_text(*record.value));
    CHECK(!reader->error());
  }
  return values;
}

}  // namespace broker::test
