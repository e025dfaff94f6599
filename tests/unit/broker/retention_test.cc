// What takes old records away: retention, DeleteRecords, deletion of topics.
#include "tests/unit/broker/admin_client.h"

namespace broker::test::admin {

TEST_CASE("a deleted topic's files stay for log.segment.delete.delay.ms") {
  Directory directory;
  Running broker(directory, {"log.segment.delete.delay.ms=600"});
  Client client(broker.port());
  create(client, "events");
  CHECK(delete_topic(client, "events") == 0);
  CHECK(!fs::exists(directory.path() + "/events-0"));
  CHECK(has_directory(directory, "-delete"));
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (has_directory(directory, "-delete") && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!has_directory(directory, "-delete"));
}

TEST_CASE("DeleteRecords moves the log start for good, and not beyond the high watermark") {
  Directory directory;
  const auto delete_to = [](Client& client, const std::string& topic, base::Offset offset) {
    protocol::DeleteRecordsRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    asked.partitions.emplace_back().offset = offset;
    return client.call<protocol::DeleteRecordsResponse>(2, request).topics.at(0).partitions.at(0);
  };
  {
    Running broker(directory);
    Client client(broker.port());
    create(client, "events");
    for (int i = 0; i < 5; ++i) produce(client, "events", "x");
    CHECK(delete_to(client, "events", 6).error_code == number(ErrorCode::offset_out_of_range));
    CHECK(delete_to(client, "events", -2).error_code == number(ErrorCode::offset_out_of_range));
    CHECK(delete_to(client, "events", 3).low_watermark == 3);
    CHECK(delete_to(client, "events", 1).low_watermark == 3);  // it never goes back
    CHECK(earliest(client, "events") == 3);
    CHECK(fetch(client, "events", 2).responses.at(0).partitions.at(0).error_code ==
          number(ErrorCode::offset_out_of_range));
    CHECK(delete_to(client, "nowhere", 0).error_code ==
          number(ErrorCode::unknown_topic_or_partition));
    CHECK(delete_to(client, "events", -1).low_watermark == 5);
    // A copy begins where its source does.
    REQUIRE(broker.run([&] { return broker->catalog().attach_topic("dr", "copy", {}, 1); }));
    CHECK(delete_to(client, "copy", 0).error_code == number(ErrorCode::policy_violation));
  }
  Running broker(directory);
  Client client(broker.port());
  CHECK(earliest(client, "events") == 5);
}

TEST_CASE("retention drops old segments of own topics and never touches a mirrored one") {
  Directory directory;
  Running broker(directory, {"log.segment.bytes=400", "log.segment.delete.delay.ms=0",
                             "log.initial.task.delay.ms=3600000"});
  Client client(broker.port());
  create(client, "by-size", {{"retention.bytes", "1000"}, {"retention.ms", "-1"}});
  create(client, "by-time");  // its records are of 1970
  create(client, "kept", {{"retention.ms", "-1"}});
  create(client, "compacted", {{"cleanup.policy", "compact"}});
  create(client, "future", {{"message.timestamp.type", "LogAppendTime"}});
  for (int i = 0; i < 20; ++i)
    for (const char* topic : {"by-size", "by-time", "kept", "future"})
      REQUIRE(produce(client, topic, std::string(100, 'x')) == 0);
  create(client, "copied");
  for (int i = 0; i < 20; ++i) REQUIRE(produce(client, "copied", std::string(100, 'x')) == 0);
  REQUIRE(broker.run([&] { return broker->catalog().attach_topic("dr", "copied", {}, 1); }));

  check_retention(broker);
  CHECK(earliest(client, "by-size") > 10);
  CHECK(earliest(client, "by-size") < 20);
  CHECK(earliest(client, "by-time") == 20);
  CHECK(earliest(client, "kept") == 0);
  CHECK(earliest(client, "future") == 0);
  CHECK(earliest(client, "copied") == 0);
  // Stopped but not yet handed over by its mirror: still not ours.
  REQUIRE(
      broker.run([&] { return broker->catalog().set_desired_state({"copied"}, desired_stopped); }));
  check_retention(broker);
  CHECK(earliest(client, "copied") == 0);
  // The next one's offset goes on where the last one's ended (B29).
  REQUIRE(produce(client, "by-time", "x") == 0);
  CHECK(fetch(client, "by-time", 20).responses.at(0).partitions.at(0).high_watermark == 21);
}

TEST_CASE("A18: nothing is found by time where retention has taken everything") {
  Directory directory;
  Running broker(directory, {"log.segment.delete.delay.ms=0", "log.initial.task.delay.ms=3600000"});
  Client client(broker.port());
  create(client, "events", {{"retention.ms", "1"}});
  REQUIRE(produce(client, "events", "x") == 0);
  check_retention(broker);
  protocol::ListOffsetsRequest request;
  auto& asked = request.topics.emplace_back();
  asked.name = "events";
  asked.partitions.emplace_back().timestamp = 0;
  const auto found =
      client.call<protocol::ListOffsetsResponse>(5, request).topics.at(0).partitions.at(0);
  CHECK(found.offset == -1);
  CHECK(found.timestamp == -1);
}

}  // namespace broker::test::admin
