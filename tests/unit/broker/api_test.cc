// The data APIs end to end: a broker in this process, a socket, real messages.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "protocol/error_code.h"
#include "protocol/messages/api_versions.gen.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/init_producer_id.gen.h"
#include "protocol/messages/list_offsets.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_for_leader_epoch.gen.h"
#include "protocol/messages/produce.gen.h"
#include "protocol/record.h"
#include "tests/unit/broker/requests.h"

namespace broker::test {

using protocol::ListOffsetsRequest;
using protocol::ListOffsetsResponse;
using protocol::MetadataRequest;
using protocol::MetadataResponse;

TEST_CASE("ApiVersions answers a version of the future in version 0 and goes on (A01)") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  // Version 127, header v2, whatever body.
  base::Buffer request = {std::byte{0}, std::byte{18}, std::byte{0},   std::byte{127},
                          std::byte{0}, std::byte{0},  std::byte{0},   std::byte{7},
                          std::byte{0}, std::byte{1},  std::byte{'x'}, std::byte{0},
                          std::byte{1}, std::byte{1},  std::byte{0}};
  REQUIRE(client.socket().send(framed(request)));
  CHECK(base::to_hex(client.receive()) == "00000007002300000001001200000005");

  protocol::ApiVersionsRequest asked;
  asked.client_software_name = "test";
  asked.client_software_version = "1.0";
  asked.cluster_id.reset();
  for (std::int16_t version = 0; version <= 5; ++version) {
    const auto answer = client.call<protocol::ApiVersionsResponse>(version, asked);
    CHECK(answer.error_code == 0);
    REQUIRE(!answer.api_keys.empty());
    CHECK(answer.api_keys[0].api_key == 0);
    CHECK(answer.api_keys[0].min_version == 0);
    CHECK(answer.api_keys[0].max_version == 13);
    for (const auto& one : answer.api_keys) CHECK(one.api_key < 100);
    // A range that begins with 0 is told to those alone that can read it.
    CHECK(answer.supported_features.size() == (version >= 4 ? 2 : 0));
    CHECK(answer.finalized_features.size() == (version >= 3 ? 2 : 0));
  }
  // Our own clients see the mirrors' APIs too, with which a mirror asks its source for a loop.
  asked.client_software_name = "calque";
  for (std::int16_t version = 0; version <= 5; ++version) {
    const auto answer = client.call<protocol::ApiVersionsResponse>(version, asked);
    CHECK(answer.error_code == 0);
    const bool listed = std::ranges::any_of(answer.api_keys, [](const auto& one) {
      return one.api_key == static_cast<std::int16_t>(protocol::ApiKey::describe_cluster_mirrors);
    });
    CHECK(listed == (version >= 3));
  }
  asked.client_software_name = "-test";
  CHECK(client.call<protocol::ApiVersionsResponse>(3, asked).error_code ==
        number(ErrorCode::invalid_request));
  asked.client_software_name = "test";
  asked.cluster_id = "another";
  asked.node_id = 1;
  CHECK(client.call<protocol::ApiVersionsResponse>(5, asked).error_code ==
        number(ErrorCode::rebootstrap_required));
}

TEST_CASE("Metadata tells the advertised listener, leaders and real epochs in every version") {
  Directory directory;
  Running broker(directory, {"advertised.listeners=PLAINTEXT://some.host:19092",
                             "auto.create.topics.enable=false"});
  const TopicPtr topic = broker.create("events", 3);
  Client client(broker.port());
  for (std::int16_t version = 0; version <= 13; ++version) {
    MetadataRequest asked;
    if (version == 0)
      asked.topics.emplace();
    else
      asked.topics.reset();
    const auto all = client.call<MetadataResponse>(version, asked);
    REQUIRE(all.brokers.size() == 1);
    CHECK(all.brokers[0].host == "some.host");
    CHECK(all.brokers[0].port == 19092);
    REQUIRE(all.topics.size() == 1);
    CHECK(all.topics[0].name == "events");
    REQUIRE(all.topics[0].partitions.size() == 3);
    CHECK(all.topics[0].partitions[2].leader_id == 1);
    if (version >= 2) CHECK(all.cluster_id == broker->cluster_id());
    if (version >= 7) CHECK(all.topics[0].partitions[0].leader_epoch == 0);
    if (version >= 10) CHECK(all.topics[0].topic_id == topic->id);

    asked.topics.emplace();
    asked.topics->emplace_back().name = "events";
    asked.topics->emplace_back().name = "absent";
    asked.topics->emplace_back().name = "not/legal";
    const auto some = client.call<MetadataResponse>(version, asked);
    REQUIRE(some.topics.size() == 3);
    CHECK(some.topics[0].error_code == 0);
    CHECK(some.topics[1].error_code == number(ErrorCode::unknown_topic_or_partition));
    CHECK(some.topics[2].error_code == number(ErrorCode::invalid_topic_exception));
  }
  MetadataRequest asked;
  asked.topics.emplace();
  CHECK(client.call<MetadataResponse>(1, asked).topics.empty());
  asked.topics->emplace_back().topic_id = topic->id;
  asked.topics->back().name.reset();
  asked.topics->emplace_back().topic_id.bytes[0] = std::byte{9};
  asked.topics->back().name.reset();
  const auto by_id = client.call<MetadataResponse>(12, asked);
  REQUIRE(by_id.topics.size() == 2);
  CHECK(by_id.topics[0].name == "events");
  CHECK(by_id.topics[1].error_code == number(ErrorCode::unknown_topic_id));
  CHECK(!by_id.topics[1].name);
}

TEST_CASE("what was produced is fetched, byte for byte, in every version") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  base::Offset expected = 0;
  for (std::int16_t version = 3; version <= 13; ++version) {
    const base::Buffer batch = batch_of({fmt::format("v{}", version), "second"});
    const auto answer = produce(client, *topic, batch, 0, version);
    CHECK(answer.error_code == 0);
    CHECK(answer.base_offset == expected);
    CHECK(answer.log_append_time_ms == -1);
    if (version >= 5) CHECK(answer.log_start_offset == 0);
    expected += 2;
  }
  std::optional<base::Buffer> first;
  for (std::int16_t version = 4; version <= 18; ++version) {
    const auto answer = client.call<FetchResponse>(version, fetch_request(*topic, 0));
    CHECK(answer.session_id == 0);
    REQUIRE(answer.responses.size() == 1);
    const auto& partition = answer.responses[0].partitions.at(0);
    CHECK(partition.error_code == 0);
    CHECK(partition.high_watermark == expected);
    CHECK(partition.last_stable_offset == expected);
    CHECK(!partition.records.null);
    const auto values = values_in(partition.records.bytes);
    REQUIRE(values.size() == static_cast<std::size_t>(expected));
    CHECK(values[0] == "v3");
    if (!first) first = base::to_buffer(partition.records.bytes);
    CHECK(protocol::same(*first, partition.records.bytes));
  }
}

TEST_CASE("large answers go out from the file unchanged") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("large", 1, {{"max.message.bytes", "2000000"}});
  Client client(broker.port());
  const std::string big(900'000, 'x');
  for (int i = 0; i < 5; ++i) REQUIRE(produce(client, *topic, batch_of({big})).error_code == 0);
  FetchRequest request = fetch_request(*topic, 0);
  request.topics[0].partitions[0].partition_max_bytes = 10 << 20;
  const auto answer = client.call<FetchResponse>(12, request);
  const auto values = values_in(answer.responses.at(0).partitions.at(0).records.bytes);
  REQUIRE(values.size() == 5);
  CHECK(values[4] == big);
}

TEST_CASE("limits hold, but the first batch always comes whole (A12)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2);
  Client client(broker.port());
  const std::string big(100'000, 'x');
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i < 2; ++i)
      REQUIRE(produce(client, *topic, batch_of({big}), p).error_code == 0);
  FetchRequest request = fetch_request(*topic, 0);
  request.max_bytes = 1;
  request.topics[0].partitions[0].partition_max_bytes = 1;
  request.topics[0].partitions.push_back(request.topics[0].partitions[0]);
  request.topics[0].partitions[1].partition = 1;
  auto answer = client.call<FetchResponse>(12, request);
  CHECK(values_in(answer.responses[0].partitions[0].records.bytes).size() == 1);
  CHECK(answer.responses[0].partitions[1].records.bytes.empty());
  CHECK(!answer.responses[0].partitions[1].records.null);

  request.max_bytes = 250'000;
  for (auto& one : request.topics[0].partitions) one.partition_max_bytes = 1 << 20;
  answer = client.call<FetchResponse>(12, request);
  CHECK(values_in(answer.responses[0].partitions[0].records.bytes).size() == 2);
  CHECK(answer.responses[0].partitions[1].records.bytes.empty());
}

TEST_CASE("errors come per partition, with empty records, never null (A03)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  REQUIRE(produce(client, *topic, batch_of({"a"})).error_code == 0);
  Topic absent;
  absent.name = "absent";
  absent.id.bytes[3] = std::byte{1};
  for (std::int16_t version = 4; version <= 18; ++version) {
    auto answer = client.call<FetchResponse>(version, fetch_request(*topic, 1'000'000'000));
    auto& partition = answer.responses.at(0).partitions.at(0);
    CHECK(partition.error_code == number(ErrorCode::offset_out_of_range));
    CHECK(!partition.records.null);
    CHECK(partition.records.bytes.empty());

    answer = client.call<FetchResponse>(version, fetch_request(absent, 0));
    CHECK(answer.responses.at(0).partitions.at(0).error_code ==
          number(version >= 13 ? ErrorCode::unknown_topic_id
                               : ErrorCode::unknown_topic_or_partition));
    CHECK(!answer.responses[0].partitions[0].records.null);

    answer = client.call<FetchResponse>(version, fetch_request(*topic, 0, 5));
    CHECK(answer.responses.at(0).partitions.at(0).error_code ==
          number(ErrorCode::unknown_topic_or_partition));
  }
  FetchRequest request = fetch_request(*topic, 0);
  request.topics[0].partitions[0].current_leader_epoch = 7;
  CHECK(client.call<FetchResponse>(9, request).responses[0].partitions[0].error_code ==
        number(ErrorCode::unknown_leader_epoch));
  request = fetch_request(*topic, 0);
  request.session_id = 5;
  request.session_epoch = 3;
  CHECK(client.call<FetchResponse>(12, request).error_code ==
        number(ErrorCode::fetch_session_id_not_found));
}

TEST_CASE("a long poll ends with the first record, or when its time is up") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2);
  Client waiting(broker.port());
  FetchRequest request = fetch_request(*topic, 0);
  request.max_wait_ms = 15'000;
  request.topics[0].partitions.push_back(request.topics[0].partitions[0]);
  request.topics[0].partitions[1].partition = 1;
  REQUIRE(waiting.socket().send(encode_request(12, request)));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Client producer(broker.port());
  const auto began = std::chrono::steady_clock::now();
  REQUIRE(produce(producer, *topic, batch_of({"now"}), 1).error_code == 0);
  const base::Buffer answer = waiting.receive();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  protocol::ResponseHeader header;
  base::Bytes body;
  FetchResponse response;
  REQUIRE(protocol::decode(answer, protocol::ApiKey::fetch, 12, header, body));
  REQUIRE(decode(body, 12, response));
  CHECK(values_in(response.responses.at(0).partitions.at(1).records.bytes) ==
        std::vector<std::string>{"now"});

  request.max_wait_ms = 50;
  request.min_bytes = 100'000;
  const auto empty = waiting.call<FetchResponse>(12, request);
  CHECK(empty.responses[0].partitions[1].error_code == 0);
  CHECK(values_in(empty.responses[0].partitions[1].records.bytes).size() == 1);
}

TEST_CASE("Produce checks what Kafka checks") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1, {{"max.message.bytes", "1000"}});
  const TopicPtr compacted = broker.create("keyed", 1, {{"cleanup.policy", "compact"}});
  Client client(broker.port());

  base::Buffer batch = batch_of({"a"});
  batch.back() ^= std::byte{1};
  CHECK(produce(client, *topic, batch).error_code == number(ErrorCode::corrupt_message));
  CHECK(produce(client, *topic, batch_of({std::string(2000, 'x')})).error_code ==
        number(ErrorCode::message_too_large));
  CHECK(produce(client, *compacted, batch_of({"no key"})).error_code ==
        number(ErrorCode::invalid_record));
  CHECK(produce(client, *topic, batch_of({"a"}), 9).error_code ==
        number(ErrorCode::unknown_topic_or_partition));
  CHECK(produce(client, *topic, batch_of({"a"}), 0, 9, 2).error_code ==
        number(ErrorCode::invalid_required_acks));
  protocol::BatchOptions options;
  options.producer_id = 1;
  options.producer_epoch = base::ProducerEpoch{0};
  options.base_sequence = 0;
  options.transactional = true;
  const base::Buffer good = batch_of({"a"}, options);
  CHECK(produce(client, *topic, good).error_code ==
        number(ErrorCode::transactional_id_authorization_failed));
  ProduceRequest transactional = produce_request(*topic, 0, good);
  transactional.transactional_id = "t";
  const auto answer = client.call<ProduceResponse>(9, transactional);
  CHECK(answer.responses[0].partition_responses[0].error_code ==
        number(ErrorCode::not_enough_replicas));  // there is no coordinator yet
  CHECK(answer.responses[0].partition_responses[0].error_message->find("coordinator") !=
        std::string::npos);
  // Nothing of all that left a trace.
  CHECK(produce(client, *topic, batch_of({"a"})).base_offset == 0);
}

TEST_CASE("acks=0 is not answered, and a failure closes the connection") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  REQUIRE(
      client.socket().send(encode_request(9, produce_request(*topic, 0, batch_of({"quiet"}), 0))));
  // The next answer is that of the next request.
  CHECK(produce(client, *topic, batch_of({"loud"})).base_offset == 1);
  REQUIRE(
      client.socket().send(encode_request(9, produce_request(*topic, 4, batch_of({"lost"}), 0))));
  CHECK(client.socket().is_closed_by_peer());
}

TEST_CASE("an idempotent producer's batch is stored once") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  protocol::InitProducerIdRequest init;
  init.transactional_id.reset();
  const auto id = client.call<protocol::InitProducerIdResponse>(4, init);
  REQUIRE(id.error_code == 0);
  CHECK(id.producer_id >= 0);
  CHECK(id.producer_epoch == 0);
  protocol::BatchOptions options;
  options.producer_id = id.producer_id;
  options.producer_epoch = id.producer_epoch;
  options.base_sequence = 0;
  CHECK(produce(client, *topic, batch_of({"a", "b"}, options)).base_offset == 0);
  CHECK(produce(client, *topic, batch_of({"a", "b"}, options)).base_offset == 0);
  options.base_sequence = 2;
  CHECK(produce(client, *topic, batch_of({"c"}, options)).base_offset == 2);
  options.base_sequence = 9;
  CHECK(produce(client, *topic, batch_of({"gap"}, options)).error_code ==
        number(ErrorCode::out_of_order_sequence_number));
  init.transactional_id = "t";
  CHECK(client.call<protocol::InitProducerIdResponse>(4, init).error_code ==
        number(ErrorCode::not_coordinator));
}

TEST_CASE("producer ids are never given twice, whatever restarts lie between") {
  Directory directory;
  std::set<base::ProducerId> seen;
  for (int round = 0; round < 3; ++round) {
    Running broker(directory);
    Client client(broker.port());
    protocol::InitProducerIdRequest init;
    init.transactional_id.reset();
    for (int i = 0; i < 5; ++i) {
      const auto id = client.call<protocol::InitProducerIdResponse>(0, init).producer_id;
      CHECK(seen.insert(id).second);
    }
  }
}

TEST_CASE("ListOffsets finds the ends, times and the greatest timestamp") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  REQUIRE(produce(client, *topic, batch_of({"a", "b"}, {}, 1'000)).error_code == 0);
  REQUIRE(produce(client, *topic, batch_of({"c"}, {}, 9'000)).error_code == 0);
  REQUIRE(produce(client, *topic, batch_of({"d"}, {}, 5'000)).error_code == 0);
  const auto ask = [&](std::int64_t timestamp, std::int16_t version) {
    ListOffsetsRequest request;
    request.replica_id = -1;
    auto& from = request.topics.emplace_back();
    from.name = topic->name;
    auto& one = from.partitions.emplace_back();
    one.partition_index = 0;
    one.timestamp = timestamp;
    return client.call<ListOffsetsResponse>(version, request).topics.at(0).partitions.at(0);
  };
  for (std::int16_t version = 1; version <= 11; ++version) {
    CHECK(ask(-1, version).offset == 4);
    CHECK(ask(-1, version).timestamp == -1);
    CHECK(ask(-2, version).offset == 0);
    CHECK(ask(1'001, version).offset == 1);
    CHECK(ask(1'001, version).timestamp == 1'001);
    CHECK(ask(1'002, version).offset == 2);
    CHECK(ask(9'001, version).offset == -1);
    CHECK(ask(9'001, version).timestamp == -1);
    if (version >= 4) CHECK(ask(-1, version).leader_epoch == 0);
    if (version >= 7) {
      CHECK(ask(-3, version).offset == 2);
      CHECK(ask(-3, version).timestamp == 9'000);
    } else {
      CHECK(ask(-3, version).error_code == number(ErrorCode::unsupported_version));
    }
  }
  CHECK(ask(-4, 8).offset == 0);
  CHECK(ask(-5, 9).offset == -1);
  CHECK(ask(-6, 11).offset == -1);
  CHECK(ask(-6, 11).error_code == 0);
  CHECK(ask(-6, 10).error_code == number(ErrorCode::unsupported_version));
}

TEST_CASE("the leader epoch rises with every start and OffsetForLeaderEpoch knows them (A28)") {
  Directory directory;
  std::string name = "events";
  for (base::LeaderEpoch epoch = 0; epoch < 3; ++epoch) {
    Running broker(directory);
    const TopicPtr topic =
        epoch == 0 ? broker.create(name) : broker->catalog().snapshot()->find(name);
    REQUIRE(topic);
    CHECK(topic->partitions[0].leader_epoch == epoch);
    Client client(broker.port());
    REQUIRE(produce(client, *topic, batch_of({"one"})).base_offset == epoch);
  }
  Running broker(directory);
  Client client(broker.port());
  protocol::OffsetForLeaderEpochRequest request;
  auto& from = request.topics.emplace_back();
  from.topic = name;
  for (std::int32_t epoch : {0, 1, 2, 3, 4}) {
    auto& one = from.partitions.emplace_back();
    one.partition = 0;
    one.leader_epoch = epoch;
  }
  for (std::int16_t version = 2; version <= 4; ++version) {
    const auto answer = client.call<protocol::OffsetForLeaderEpochResponse>(version, request);
    const auto& ends = answer.topics.at(0).partitions;
    REQUIRE(ends.size() == 5);
    for (std::int32_t epoch : {0, 1, 2, 3}) {
      const auto& one = ends[static_cast<std::size_t>(epoch)];
      CHECK(one.leader_epoch == epoch);
      CHECK(one.end_offset == (epoch < 3 ? epoch + 1 : 3));
    }
    CHECK(ends[4].leader_epoch == -1);  // of the future
    CHECK(ends[4].end_offset == -1);
  }
}

}  // namespace broker::test
