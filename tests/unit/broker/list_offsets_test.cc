// ListOffsets end to end.
#include "protocol/messages/list_offsets.gen.h"

#include <thread>

#include "tests/unit/broker/requests.h"

namespace broker::test {
namespace {

using protocol::ListOffsetsRequest;
using protocol::ListOffsetsResponse;
using Found = ListOffsetsResponse::Topic::Partition;

struct Asked {
  std::int32_t partition = 0;
  std::int64_t timestamp = 0;
  std::int32_t epoch = -1;
};

ListOffsetsResponse ask(Client& client, const std::vector<Asked>& all, std::int16_t version = 11,
                        std::int8_t isolation = 0, std::int32_t replica = -1,
                        const std::string& name = "events") {
  ListOffsetsRequest request;
  request.replica_id = replica;
  request.isolation_level = isolation;
  auto& from = request.topics.emplace_back();
  from.name = name;
  for (const Asked& one : all) {
    auto& to = from.partitions.emplace_back();
    to.partition_index = one.partition;
    to.timestamp = one.timestamp;
    to.current_leader_epoch = one.epoch;
  }
  return client.call<ListOffsetsResponse>(version, request);
}

Found one(Client& client, Asked asked, std::int16_t version = 11, std::int8_t isolation = 0) {
  const auto answer = ask(client, {asked}, version, isolation);
  REQUIRE(answer.topics.size() == 1);
  REQUIRE(answer.topics[0].partitions.size() == 1);
  const Found found = answer.topics[0].partitions[0];
  // Either both are found, or one of the ends is asked for, or nothing is (A18).
  CHECK((found.timestamp >= 0 ? found.offset >= 0 : asked.timestamp < 0 || found.offset == -1));
  return found;
}

base::Buffer at_times(const std::vector<std::int64_t>& times, protocol::Codec codec) {
  protocol::BatchOptions options;
  options.codec = codec;
  protocol::BatchBuilder builder(options);
  for (const std::int64_t time : times) builder.add(time, std::nullopt, base::as_bytes("v"));
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("a time is searched inside of batches, compressed ones too (A17)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 5);
  Client client(broker.port());
  std::vector<std::int64_t> twelve;
  for (std::int64_t time = 1; time <= 12; ++time) twelve.push_back(time);
  const std::vector<std::int64_t> mixed = {50, 20, 90, 10, 90, 70};
  for (std::int32_t p = 0; p < 5; ++p) {
    const auto codec = static_cast<protocol::Codec>(p);
    REQUIRE(produce(client, *topic, at_times(twelve, codec), p).error_code == 0);
    REQUIRE(produce(client, *topic, at_times(mixed, codec), p).error_code == 0);
    for (std::int64_t time = 0; time <= 12; ++time) {
      CHECK(one(client, {p, time}).offset == std::max<std::int64_t>(time - 1, 0));
      CHECK(one(client, {p, time}).timestamp == std::max<std::int64_t>(time, 1));
    }
    CHECK(one(client, {p, 13}).offset == 12);
    CHECK(one(client, {p, 51}).offset == 14);
    CHECK(one(client, {p, 90}).offset == 14);
    CHECK(one(client, {p, 91}).offset == -1);
    CHECK(one(client, {p, -3}).offset == 14);
    CHECK(one(client, {p, -3}).timestamp == 90);
  }
}

TEST_CASE("what is not found is (-1, -1), also of an empty partition (A18)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2);
  Client client(broker.port());
  REQUIRE(produce(client, *topic, at_times({-1}, protocol::Codec::none)).error_code == 0);
  for (const std::int32_t partition : {0, 1}) {
    for (const std::int64_t timestamp : {std::int64_t{0}, std::int64_t{5}, std::int64_t{-3}}) {
      const Found found = one(client, {partition, timestamp});
      CHECK(found.error_code == 0);
      if (partition == 0 && timestamp == -3) continue;  // see the differential test
      CHECK(found.timestamp == -1);
      CHECK(found.offset == -1);
      CHECK(found.leader_epoch == -1);
    }
  }
}

TEST_CASE("ends and errors of ListOffsets") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2);
  Client client(broker.port());
  REQUIRE(produce(client, *topic, at_times({1000}, protocol::Codec::none)).error_code == 0);
  const auto error = [&](Asked asked, std::int16_t version = 11) {
    return one(client, asked, version).error_code;
  };
  CHECK(one(client, {0, -1}).offset == 1);
  CHECK(one(client, {0, -1}).leader_epoch == 0);
  CHECK(one(client, {0, -2}).offset == 0);
  CHECK(one(client, {0, -4}).offset == 0);
  CHECK(one(client, {0, -5}).offset == -1);
  CHECK(one(client, {0, -6}).offset == -1);
  CHECK(error({7, -1}) == number(ErrorCode::unknown_topic_or_partition));
  CHECK(error({-1, -1}) == number(ErrorCode::unknown_topic_or_partition));
  // An unknown kind of time is named before an unknown partition.
  for (const std::int64_t timestamp : {std::int64_t{-7}, std::int64_t{-100}})
    CHECK(error({7, timestamp}) == number(ErrorCode::unsupported_version));
  CHECK(error({0, -3}, 6) == number(ErrorCode::unsupported_version));
  CHECK(error({0, -4}, 7) == number(ErrorCode::unsupported_version));
  CHECK(error({0, -5}, 8) == number(ErrorCode::unsupported_version));
  CHECK(error({0, -6}, 10) == number(ErrorCode::unsupported_version));
  CHECK(error({0, -1, 3}) == number(ErrorCode::unknown_leader_epoch));
  CHECK(error({0, -1, -5}) == number(ErrorCode::fenced_leader_epoch));
  CHECK(error({0, -1, 0}) == 0);
}

TEST_CASE("a partition that is asked for twice is refused and answered once") {
  Directory directory;
  Running broker(directory);
  broker.create("events", 2);
  Client client(broker.port());
  const auto answer = ask(client, {{0, -1}, {1, -1}, {0, -2}});
  REQUIRE(answer.topics.size() == 1);
  REQUIRE(answer.topics[0].partitions.size() == 2);
  for (const Found& found : answer.topics[0].partitions)
    CHECK(found.error_code ==
          (found.partition_index == 0 ? number(ErrorCode::invalid_request) : 0));
}

TEST_CASE("isolation levels of ListOffsets") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  const base::TopicPartition id = {topic->id, 0};
  Client client(broker.port());
  REQUIRE(produce(client, *topic, at_times({1000}, protocol::Codec::none)).error_code == 0);
  // An open transaction, as a mirror may have copied it.
  protocol::BatchOptions options;
  options.producer_id = 5;
  options.producer_epoch = base::ProducerEpoch{0};
  options.base_sequence = 0;
  options.transactional = true;
  auto append = [&]() -> boost::asio::awaitable<base::Result<void>> {
    auto there = [&]() -> boost::asio::awaitable<base::Result<void>> {
      base::Buffer batch = batch_of({"open"}, options, 2000);
      CO_TRY_VOID(broker->shard_of(id).find(id)->append_internal(batch, 1000));
      co_return base::Result<void>();
    };
    co_return co_await on(broker->shard_of(id), std::move(there));
  };
  REQUIRE(broker.run(append).has_value());
  CHECK(one(client, {0, -1}, 11, 0).offset == 2);
  CHECK(one(client, {0, -1}, 11, 1).offset == 1);
  CHECK(one(client, {0, 1500}, 11, 0).offset == 1);
  CHECK(one(client, {0, 1500}, 11, 1).offset == -1);
  CHECK(one(client, {0, -3}, 11, 1).offset == -1);
  CHECK(one(client, {0, 500}, 11, 1).offset == 0);
  // Who is no consumer sees the log end.
  CHECK(ask(client, {{0, -1}}, 11, 1, -2).topics[0].partitions[0].offset == 2);
  CHECK(ask(client, {{0, -1}}, 11, 2).topics[0].partitions[0].error_code ==
        number(ErrorCode::unknown_server_error));
}

}  // namespace broker::test
