// Fetch end to end: sessions over connections, topic ids, limits, divergence. Long polls have a
// file of their own.
#include "broker/api/fetch_read.h"
#include "broker/error.h"
#include "storage/error.h"
#include "tests/unit/broker/fetching.h"

namespace broker::test {
namespace {

// A client that fetches with a session, as the Java consumer does.
struct SessionClient {
  Client client;
  std::int16_t version;
  std::int32_t id = 0;
  std::int32_t epoch = 0;

  FetchResponse call(FetchRequest request) {
    request.session_id = id;
    request.session_epoch = epoch;
    auto answer = client.call<FetchResponse>(version, request);
    if (answer.error_code == 0) {
      id = answer.session_id;
      ++epoch;
    }
    return answer;
  }
  std::vector<std::int32_t> told(const FetchRequest& request = {}) {
    const auto answer = call(request);
    CHECK(answer.error_code == 0);
    CHECK(answer.session_id == id);
    std::vector<std::int32_t> partitions;
    for (const auto& topic : answer.responses)
      for (const auto& one : topic.partitions) partitions.push_back(one.partition_index);
    return partitions;
  }
};

FetchRequest all_of(const Topic& topic, std::int32_t partitions) {
  FetchRequest request = fetch_request(topic, 0);
  for (std::int32_t i = 1; i < partitions; ++i)
    request.topics[0].partitions.push_back(wanted(i, 0));
  return request;
}

}  // namespace

TEST_CASE("whatever goes wrong, Fetch answers with what consumers know (A10)") {
  const auto check = [&](const base::Error& error) {
    INFO(error.message());
    CHECK(api::may_stand_in_fetch(api::fetch_error(error)));
  };
  // All of ours, and some numbers that are none.
  for (int code = 1; code <= 60; ++code) {
    check(make_error_code(static_cast<BrokerErrc>(code)));
    check(storage::make_error_code(static_cast<storage::StorageErrc>(code)));
    check(protocol::make_error_code(static_cast<protocol::BatchErrc>(code)));
    check(protocol::make_error_code(static_cast<protocol::CompressErrc>(code)));
    check({code, boost::system::system_category()});
  }
  CHECK(!api::may_stand_in_fetch(ErrorCode::request_timed_out));
}

TEST_CASE("a session is told what changed, in every version and on any connection") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 3);
  Client producer(broker.port());
  for (std::int16_t version = 7; version <= 18; ++version) {
    SessionClient session{Client(broker.port()), version};
    REQUIRE(session.told(all_of(*topic, 3)) == std::vector{0, 1, 2});
    CHECK(session.id > 0);
    const base::Offset end = version - 7;
    if (end > 0) CHECK(session.told(fetch_request(*topic, end, 1)).size() == 0);
    CHECK(session.told() == std::vector<std::int32_t>{});
    REQUIRE(produce(producer, *topic, batch_of({"v"}), 1).error_code == 0);
    CHECK(session.told() == std::vector{1});
    CHECK(session.told(fetch_request(*topic, end + 1, 1)) == std::vector<std::int32_t>{});

    // The connections of a broker are spread over its shards.
    for (int i = 0; i < 3; ++i) {
      SessionClient moved{Client(broker.port()), version, session.id, session.epoch};
      CHECK(moved.told() == std::vector<std::int32_t>{});
      session.epoch = moved.epoch;
    }
    FetchRequest forget;
    auto& gone = forget.forgotten_topics_data.emplace_back();
    gone.topic = topic->name;
    gone.topic_id = topic->id;
    gone.partitions = {0, 1, 2};
    CHECK(session.call(forget).session_id == 0);
  }
}

TEST_CASE("session errors are those of Kafka") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1);
  SessionClient session{Client(broker.port()), 12};
  REQUIRE(session.told(fetch_request(*topic, 0)) == std::vector{0});
  const auto error_of = [&](std::int32_t id, std::int32_t epoch, std::int16_t version) {
    FetchRequest request;
    request.session_id = id;
    request.session_epoch = epoch;
    const auto answer = session.client.call<FetchResponse>(version, request);
    CHECK(answer.session_id == 0);
    CHECK(answer.responses.empty());
    return answer.error_code;
  };
  CHECK(error_of(session.id + 2, 1, 12) == number(ErrorCode::fetch_session_id_not_found));
  CHECK(error_of(-3, 1, 12) == number(ErrorCode::fetch_session_id_not_found));
  CHECK(error_of(0, 1, 12) == number(ErrorCode::fetch_session_id_not_found));
  CHECK(error_of(session.id, 5, 12) == number(ErrorCode::invalid_fetch_session_epoch));
  CHECK(error_of(session.id, 1, 13) == number(ErrorCode::fetch_session_topic_id_error));
  CHECK(session.told() == std::vector<std::int32_t>{});
  // Closed by a full request that names it.
  FetchRequest last = fetch_request(*topic, 0);
  last.session_id = session.id;
  last.session_epoch = -1;
  CHECK(session.client.call<FetchResponse>(12, last).session_id == 0);
  CHECK(error_of(session.id, 2, 12) == number(ErrorCode::fetch_session_id_not_found));
}

TEST_CASE("without room for a session a consumer is served all the same") {
  Directory directory;
  Running broker(directory, {"max.incremental.fetch.session.cache.slots=0"});
  const TopicPtr topic = broker.create("events", 2);
  SessionClient session{Client(broker.port()), 12};
  for (int i = 0; i < 3; ++i) {
    session.epoch = 0;
    const auto answer = session.call(all_of(*topic, 2));
    CHECK(answer.session_id == 0);
    CHECK(answer.responses.at(0).partitions.size() == 2);
  }
}

TEST_CASE("a failed read stays in the session until it was told to be well (A24)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 3);
  SessionClient session{Client(broker.port()), 12};
  FetchRequest request = all_of(*topic, 3);
  request.topics[0].partitions[1].fetch_offset = 99;
  CHECK(session.told(request) == std::vector{0, 1, 2});
  CHECK(session.told() == std::vector{1});
  CHECK(session.told() == std::vector{1});
  CHECK(session.told(fetch_request(*topic, 0, 1)) == std::vector{1});
  CHECK(session.told() == std::vector<std::int32_t>{});
}

TEST_CASE("topic ids over deletion and re-creation (A26)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr old = broker.create("events");
  const TopicPtr other = broker.create("other");
  SessionClient session{Client(broker.port()), 13};
  FetchRequest request = fetch_request(*old, 0);
  request.topics.push_back(fetch_request(*other, 0).topics[0]);
  REQUIRE(session.call(request).responses.size() == 2);
  REQUIRE(broker.run([&] { return broker->catalog().delete_topic(old->id); }).has_value());

  Client client(broker.port());
  CHECK(client.call<FetchResponse>(13, fetch_request(*old, 0))
            .responses.at(0)
            .partitions[0]
            .error_code == number(ErrorCode::unknown_topic_id));
  CHECK(client.call<FetchResponse>(12, fetch_request(*old, 0))
            .responses.at(0)
            .partitions[0]
            .error_code == number(ErrorCode::unknown_topic_or_partition));
  auto answer = session.call({});
  REQUIRE(answer.responses.size() == 1);
  CHECK(answer.responses[0].topic_id == old->id);
  CHECK(answer.responses[0].partitions[0].error_code ==
        number(ErrorCode::unknown_topic_or_partition));

  const TopicPtr reborn = broker.create("events");
  REQUIRE(reborn->id != old->id);
  for (int i = 0; i < 2; ++i) {
    answer = session.call({});
    REQUIRE(answer.responses.size() == 1);
    CHECK(answer.responses[0].topic_id == old->id);
    CHECK(answer.responses[0].partitions[0].error_code == number(ErrorCode::inconsistent_topic_id));
  }
  request = fetch_request(*reborn, 0);
  auto& gone = request.forgotten_topics_data.emplace_back();
  gone.topic_id = old->id;
  gone.partitions = {0};
  answer = session.call(request);
  REQUIRE(answer.responses.size() == 1);
  CHECK(answer.responses[0].topic_id == reborn->id);
  CHECK(answer.responses[0].partitions[0].error_code == 0);
}

TEST_CASE("later partitions get what is left, cut where it ends") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 3);
  Client client(broker.port());
  const base::Buffer batch = batch_of({std::string(900, 'x')});
  for (std::int32_t p = 0; p < 3; ++p)
    for (int i = 0; i < 3; ++i) REQUIRE(produce(client, *topic, batch, p).error_code == 0);
  const auto sizes = [&](std::int32_t total, std::int32_t each) {
    FetchRequest request = all_of(*topic, 3);
    request.max_bytes = total;
    for (auto& one : request.topics[0].partitions) one.partition_max_bytes = each;
    const auto answer = client.call<FetchResponse>(12, request);
    std::vector<std::size_t> found;
    for (const auto& one : answer.responses.at(0).partitions)
      found.push_back(one.records.bytes.size());
    return found;
  };
  const std::size_t n = batch.size();
  const auto limit = static_cast<std::int32_t>(n);
  CHECK(sizes(1, 1 << 20) == std::vector<std::size_t>{n, 0, 0});  // A12
  CHECK(sizes(1 << 20, 1) == std::vector<std::size_t>{n, 0, 0});
  CHECK(sizes(1 << 20, limit) == std::vector<std::size_t>{n, n, n});
  CHECK(sizes(1 << 20, limit + 100) == std::vector<std::size_t>{n + 100, n + 100, n + 100});
  CHECK(sizes(limit * 4 - 1, 1 << 20) == std::vector<std::size_t>{3 * n, 0, 0});
  CHECK(sizes(limit * 4, 1 << 20) == std::vector<std::size_t>{3 * n, n, 0});
  CHECK(sizes(limit * 5 + 9, 1 << 20) == std::vector<std::size_t>{3 * n, 2 * n + 9, 0});
}

TEST_CASE("a fetch inside a gap of offsets finds what comes after it (A15)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = mirrored(broker, {{0, 0}, {2, 0}, {7, 0}});
  Client client(broker.port());
  for (const base::Offset offset : {4, 5, 6}) {
    const FetchedPartition found = fetch(client, fetch_request(*topic, offset), 12);
    CHECK(found.error_code == 0);
    CHECK(protocol::parse_batch(found.records.bytes)->base_offset == 7);
  }
  CHECK(protocol::parse_batch(fetch(client, fetch_request(*topic, 3), 12).records.bytes)
            ->base_offset == 2);
}

TEST_CASE(
    "an empty partition begins and ends at 0, and ends one above its last record (A13, A14)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  FetchedPartition found = fetch(client, fetch_request(*topic, 0));
  CHECK(found.high_watermark == 0);
  CHECK(found.log_start_offset == 0);
  CHECK(found.last_stable_offset == 0);
  for (int i = 0; i < 40; ++i) REQUIRE(produce(client, *topic, batch_of({"v"})).base_offset == i);
  found = fetch(client, fetch_request(*topic, 40));
  CHECK(found.error_code == 0);
  CHECK(found.high_watermark == 40);
  CHECK(found.last_stable_offset == 40);
}

TEST_CASE("a diverged log is told where it parts, not that it is out of range") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = mirrored(broker, {{0, 1}, {2, 3}, {4, 3}});
  Client client(broker.port());
  const auto ask = [&](base::LeaderEpoch epoch, base::Offset offset) {
    FetchRequest request = fetch_request(*topic, offset);
    request.topics[0].partitions[0].last_fetched_epoch = epoch;
    return fetch(client, request, 12);
  };
  const auto diverges = [&](base::LeaderEpoch epoch, base::Offset offset, base::LeaderEpoch to,
                            base::Offset end) {
    const FetchedPartition found = ask(epoch, offset);
    CHECK(found.error_code == 0);
    CHECK(found.diverging_epoch.epoch == to);
    CHECK(found.diverging_epoch.end_offset == end);
    CHECK(found.high_watermark == 6);
    CHECK(found.records.bytes.empty());
  };
  diverges(1, 3, 1, 2);  // more of epoch 1 than there is
  diverges(2, 2, 1, 2);  // an epoch that is not here
  diverges(3, 9, 3, 6);  // beyond the log end
  diverges(1, 99, 1, 2);
  CHECK(ask(1, 2).diverging_epoch.epoch == -1);
  CHECK(!ask(1, 2).records.bytes.empty());
  CHECK(ask(3, 6).error_code == 0);
  CHECK(ask(8, 2).error_code == number(ErrorCode::offset_out_of_range));  // of the future
  CHECK(ask(1, -1).error_code == number(ErrorCode::offset_out_of_range));
}

TEST_CASE("a follower is told that it is none") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  FetchRequest request = fetch_request(*topic, 0);
  request.replica_id = request.replica_state.replica_id = 7;
  for (std::int16_t version : {std::int16_t{4}, std::int16_t{12}, std::int16_t{18}}) {
    const FetchedPartition found = fetch(client, request, version);
    CHECK(found.error_code == number(ErrorCode::not_leader_or_follower));
    if (version < 16) continue;
    CHECK(found.current_leader.leader_id == 1);
    CHECK(found.current_leader.leader_epoch == 0);
  }
  CHECK(client.call<FetchResponse>(18, request).node_endpoints.empty());  // it knows them
  request.topics[0].partitions[0].current_leader_epoch = 0;
  CHECK(fetch(client, request, 12).error_code == number(ErrorCode::unknown_leader_epoch));
  request.replica_id = request.replica_state.replica_id = -2;  // a tool
  CHECK(fetch(client, request, 12).error_code == 0);
}

TEST_CASE("a fenced leader epoch comes with the one that holds") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  const base::TopicPartition id = {topic->id, 0};
  REQUIRE(broker.run([&] { return broker->catalog().bump_epoch(id, 5); }).has_value());
  Client client(broker.port());
  FetchRequest request = fetch_request(*topic, 0);
  request.topics[0].partitions[0].current_leader_epoch = 4;
  const auto answer = client.call<FetchResponse>(18, request);
  const FetchedPartition& found = answer.responses.at(0).partitions.at(0);
  CHECK(found.error_code == number(ErrorCode::fenced_leader_epoch));
  CHECK(found.current_leader.leader_epoch == 5);
  REQUIRE(answer.node_endpoints.size() == 1);
  CHECK(answer.node_endpoints[0].host == "127.0.0.1");
}

TEST_CASE("isolation levels that do not exist are refused as a whole") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  FetchRequest request = fetch_request(*topic, 0);
  request.isolation_level = 2;
  auto answer = client.call<FetchResponse>(12, request);
  CHECK(answer.error_code == number(ErrorCode::unknown_server_error));
  CHECK(answer.responses.at(0).partitions.at(0).error_code == answer.error_code);
  answer = client.call<FetchResponse>(13, request);
  CHECK(answer.error_code == number(ErrorCode::unknown_server_error));
  CHECK(answer.responses.empty());
}

}  // namespace broker::test
