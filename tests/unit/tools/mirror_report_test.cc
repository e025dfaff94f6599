#include "tools/mirror_report.h"

#include <catch2/catch.hpp>

#include "tools/mirror_wait.h"

namespace {

using protocol::DescribeClusterMirrorsResponse;
using Mirror = DescribeClusterMirrorsResponse::Mirror;
using tools::Aim;

Mirror::Topic::Partition partition(std::int32_t index, std::string state, std::int64_t source,
                                   std::int64_t destination) {
  Mirror::Topic::Partition p;
  p.partition_index = index;
  p.state_value = std::move(state);
  p.error_message.reset();
  p.source_offset = source;
  p.destination_offset = destination;
  p.bytes_copied = 100;
  return p;
}

Mirror::Topic topic(std::string name, std::vector<Mirror::Topic::Partition> partitions) {
  Mirror::Topic t;
  t.topic_name = std::move(name);
  t.desired_state = "MIRRORING";
  t.partitions = std::move(partitions);
  return t;
}

DescribeClusterMirrorsResponse mirror(std::vector<Mirror::Topic> topics) {
  DescribeClusterMirrorsResponse response;
  Mirror m;
  m.error_message.reset();
  m.mirror_name = "m1";
  m.source_bootstrap = "src:9092";
  m.topics = std::move(topics);
  response.mirrors.push_back(std::move(m));
  return response;
}

DescribeClusterMirrorsResponse example() {
  auto failed = partition(0, "FAILED", -1, 5);
  failed.retry_attempt = 3;
  failed.error_message = "the source is gone";
  auto hopeless = partition(1, "FAILED", -1, 5);
  hopeless.retry_attempt = -1;
  hopeless.error_message = std::string(100, 'x');
  return mirror({topic("b", {partition(1, "MIRRORING", 10, 10), partition(0, "MIRRORING", 9, 4)}),
                 topic("a", {failed, hopeless, partition(2, "MIRRORING", 3, 4)})});
}

}  // namespace

TEST_CASE("describe is sorted and shows what is unknown as such", "[tools]") {
  const auto rows = tools::rows_of(example());
  const std::string text = tools::describe_text(rows);
  CHECK(
      text.starts_with("MIRROR                         TOPIC                                    "
                       "PARTITION  SOURCE-OFFSET   DESTINATION-OFFSET LAG        STATE\n"));
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].topic == "a");
  CHECK(rows[3].topic == "b");
  CHECK(rows[3].partition == 0);
  CHECK(rows[3].lag() == 5);
  CHECK_FALSE(rows[0].lag());
  CHECK(rows[2].lag() == 0);  // the copy may be ahead of what was last heard of the source
  CHECK(text.find("0          -               5                  -          FAILED") !=
        std::string::npos);
  CHECK(tools::describe_text({}) == "No mirror partitions found\n");
}

TEST_CASE("failed partitions with their retries", "[tools]") {
  const std::string text = tools::failed_text(tools::rows_of(example()), 20);
  CHECK(text.find("3/20         the source is gone\n") != std::string::npos);
  CHECK(text.find("NonRetryable " + std::string(77, 'x') + "...\n") != std::string::npos);
  CHECK(text.find("MIRRORING") == std::string::npos);
  CHECK(tools::failed_text({}, 20) == "No failed partitions found\n");
}

TEST_CASE("describe --json has the fields of KIP-1279", "[tools]") {
  const auto rows = tools::rows_of(mirror({topic("t%", {partition(0, "MIRRORING", 9, 4)})}));
  const std::string json = tools::describe_json(rows);
  CHECK(json.starts_with(R"([{"mirror":"m1","topic":"t%","partition":0,"sourceOffset":9,)"
                         R"("destinationOffset":4,"lag":5,"state":"MIRRORING","retryAttempt":0,)"
                         R"("errorMessage":null,"desiredState":"MIRRORING","writable":false,)"));
  CHECK(json.ends_with("}]\n"));
  CHECK(tools::describe_json({}) == "[]\n");
  CHECK(tools::describe_json(tools::rows_of(example())).find(R"("sourceOffset":-1)") !=
        std::string::npos);
}

TEST_CASE("the list of mirrors", "[tools]") {
  protocol::ListClusterMirrorsResponse response;
  CHECK(tools::mirror_list_text(response) == "No mirrors found\n");
  CHECK(tools::mirror_list_json(response) == "[]\n");
  response.mirrors.resize(2);
  response.mirrors[0].mirror_name = "z";
  response.mirrors[1].mirror_name = "a";
  response.mirrors[1].topic_count = 2;
  response.mirrors[1].topic_names = {"x", "y"};
  const std::string text = tools::mirror_list_text(response);
  CHECK(text.find("\na                              2          -") != std::string::npos);
  CHECK(text.find("\na ") < text.find("\nz "));
  CHECK(tools::mirror_list_json(response).find(R"("topics":["x","y"])") != std::string::npos);
}

TEST_CASE("what each aim is reached by", "[tools]") {
  const auto row = [](std::string state, std::int64_t source, std::int64_t destination,
                      bool writable = false) {
    auto p = partition(0, std::move(state), source, destination);
    p.writable = writable;
    return tools::rows_of(mirror({topic("t", {p})}))[0];
  };
  CHECK(tools::reached(Aim::caught_up, row("MIRRORING", 5, 5)));
  CHECK_FALSE(tools::reached(Aim::caught_up, row("MIRRORING", 6, 5)));
  CHECK_FALSE(tools::reached(Aim::caught_up, row("MIRRORING", -1, 5)));
  CHECK_FALSE(tools::reached(Aim::caught_up, row("LOG_ALIGNMENT", 5, 5)));
  CHECK(tools::reached(Aim::mirroring, row("MIRRORING", -1, 5)));
  CHECK(tools::reached(Aim::paused, row("PAUSED", 1, 1)));
  CHECK_FALSE(tools::reached(Aim::paused, row("PAUSING", 1, 1)));
  CHECK(tools::reached(Aim::writable, row("STOPPED", -1, 1, true)));
  CHECK_FALSE(tools::reached(Aim::writable, row("STOPPED", -1, 1)));
}

TEST_CASE("a wait sees what is done, what is left and what is hopeless", "[tools]") {
  tools::Wait wait;
  wait.mirror = "m1";
  const auto view = tools::view_of(example(), wait);
  CHECK(view.partitions == 5);
  CHECK(view.done == 2);
  CHECK(view.failed == 2);
  CHECK(view.bytes == 500u);
  CHECK_FALSE(view.lag);  // of two partitions it is unknown
  REQUIRE(view.hopeless);
  CHECK(view.hopeless->find("calque mirror recover m1 --topics a") != std::string::npos);
  CHECK_FALSE(view.hint);

  wait.topics = {"b"};
  const auto some = tools::view_of(example(), wait);
  CHECK(some.partitions == 2);
  CHECK(some.lag == 5);
  CHECK_FALSE(some.hopeless);
}

TEST_CASE("a failover waits for its partitions alone, and for no source", "[tools]") {
  auto stopped = topic("s", {partition(0, "STOPPING", -1, 3)});
  stopped.desired_state = "STOPPED";
  auto response = mirror({stopped, topic("t", {partition(0, "MIRRORING", 3, 3)})});
  response.mirrors[0].source_reachable = false;
  tools::Wait wait;
  wait.aim = Aim::writable;
  const auto view = tools::view_of(response, wait);
  CHECK(view.partitions == 1);
  CHECK(view.done == 0);
  CHECK_FALSE(view.bytes);
  CHECK_FALSE(view.lag);
  CHECK_FALSE(view.hint);
  wait.aim = Aim::caught_up;
  const auto catching_up = tools::view_of(response, wait);
  REQUIRE(catching_up.hint);
  CHECK(*catching_up.hint == "the source src:9092 is not reached: it has not answered yet");
}
