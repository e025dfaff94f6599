// Long polls: what they wait for, and what ends them.
#include "tests/unit/broker/fetching.h"

namespace broker::test {

TEST_CASE("partitions that do not exist do not end a long poll") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Topic absent;
  absent.name = "absent";
  absent.id.bytes[0] = std::byte{7};
  FetchRequest request = waiting_request(*topic, 0);
  request.topics.push_back(fetch_request(absent, 0).topics[0]);
  for (const std::int16_t version : {std::int16_t{11}, std::int16_t{13}}) {
    Client producer(broker.port());
    const Poll found = poll(broker, request, version, [&] {
      REQUIRE(produce(producer, *topic, batch_of({"v"})).error_code == 0);
    });
    CHECK(found.took < soon);
    REQUIRE(found.answer.responses.size() == 2);
    CHECK(!found.answer.responses[0].partitions[0].records.bytes.empty());
    CHECK(found.answer.responses[1].partitions[0].error_code != 0);
    request.topics[0].partitions[0].fetch_offset = 1;
  }
  // With nothing else to wait for the answer comes at once.
  const auto began = std::chrono::steady_clock::now();
  Client client(broker.port());
  client.call<FetchResponse>(11, waiting_request(absent, 0));
  CHECK(std::chrono::steady_clock::now() - began < soon);
}

TEST_CASE("a long poll ends when its topic is deleted, written anew, or changes hands") {
  Directory directory;
  Running broker(directory);
  SECTION("deleted") {
    const TopicPtr topic = broker.create("events");
    for (const std::int16_t version : {std::int16_t{11}, std::int16_t{16}}) {
      const TopicPtr doomed = broker.create("doomed");
      FetchRequest request = waiting_request(*topic, 0);
      request.topics.push_back(waiting_request(*doomed, 0).topics[0]);
      const Poll found = poll(broker, request, version, [&] {
        REQUIRE(broker.run([&] { return broker->catalog().delete_topic(doomed->id); }).has_value());
      });
      CHECK(found.took < soon);
      REQUIRE(found.answer.responses.size() == 2);
      CHECK(found.answer.responses[0].partitions[0].error_code == 0);
      CHECK(found.answer.responses[1].partitions[0].error_code ==
            number(ErrorCode::unknown_topic_or_partition));
    }
  }
  SECTION("the leader epoch rises") {
    const TopicPtr topic = broker.create("events");
    FetchRequest request = waiting_request(*topic, 0);
    request.topics[0].partitions[0].current_leader_epoch = 0;
    const base::TopicPartition id = {topic->id, 0};
    const Poll found = poll(broker, request, 12, [&] {
      REQUIRE(broker.run([&] { return broker->catalog().bump_epoch(id, 3); }).has_value());
    });
    CHECK(found.took < soon);
    CHECK(found.answer.responses.at(0).partitions[0].error_code ==
          number(ErrorCode::fenced_leader_epoch));
  }
  SECTION("a mirror is done with it") {
    const TopicPtr topic = mirrored(broker, {{0, 0}});
    const Poll found = poll(broker, waiting_request(*topic, 2), 12, [&] {
      std::vector<std::string> names = {"events"};
      REQUIRE(broker
                  .run([&] {
                    return broker->mirror_target().set_desired_state(names, desired_stopped);
                  })
                  .has_value());
      REQUIRE(on_partition(broker, {topic->id, 0},
                           [](Partition& partition) -> Task<base::Result<void>> {
                             co_return partition.allow_writes();
                           })
                  .has_value());
    });
    CHECK(found.took < soon);
    CHECK(found.answer.responses.at(0).partitions[0].error_code == 0);
  }
  SECTION("a mirror cuts its log") {
    const TopicPtr topic = mirrored(broker, {{0, 0}, {2, 0}});
    const Poll found = poll(broker, waiting_request(*topic, 4), 12, [&] {
      REQUIRE(on_partition(broker, {topic->id, 0},
                           [](Partition& partition) -> Task<base::Result<void>> {
                             co_return co_await partition.truncate_to(2);
                           })
                  .has_value());
    });
    CHECK(found.took < soon);
    CHECK(found.answer.responses.at(0).partitions[0].error_code ==
          number(ErrorCode::offset_out_of_range));
  }
  SECTION("a mirror appends") {
    const TopicPtr topic = mirrored(broker, {{0, 0}});
    const Poll found = poll(broker, waiting_request(*topic, 2), 12, [&] {
      REQUIRE(on_partition(broker, {topic->id, 0},
                           [](Partition& partition) -> Task<base::Result<void>> {
                             protocol::BatchOptions options;
                             options.base_offset = 2;
                             options.partition_leader_epoch = 0;
                             const base::Buffer batch = batch_of({"new"}, options);
                             CO_TRY_VOID(partition.append_verbatim(batch, 1000));
                             co_return base::Result<void>();
                           })
                  .has_value());
    });
    CHECK(found.took < soon);
    CHECK(values_in(found.answer.responses.at(0).partitions[0].records.bytes) ==
          std::vector<std::string>{"new"});
  }
}

TEST_CASE("records at the end of a sealed segment do not wait for more") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1, {{"segment.bytes", "1048576"}});
  Client client(broker.port());
  for (int i = 0; i < 3; ++i)
    REQUIRE(produce(client, *topic, batch_of({std::string(600'000, 'x')})).error_code == 0);
  FetchRequest request = waiting_request(*topic, 0);
  request.min_bytes = 1'000'000;
  const auto began = std::chrono::steady_clock::now();
  CHECK(values_in(fetch(client, request, 12).records.bytes).size() == 1);
  CHECK(std::chrono::steady_clock::now() - began < soon);
}

}  // namespace broker::test
