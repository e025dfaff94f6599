#include "broker/config.h"

#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "broker/properties.h"

namespace broker {
namespace {

const std::string minimal = "node.id=4\nlog.dirs=/data\nlisteners=PLAINTEXT://127.0.0.1:9092\n";

std::string problem_of(const std::string& properties, const std::vector<std::string>& more = {}) {
  try {
    Config::load(properties, more, {});
  } catch (const ConfigError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("four settings suffice") {
  const Config config =
      Config::load(minimal + "advertised.listeners=PLAINTEXT://broker.example:9092\n", {}, {});
  CHECK(config.node_id() == 4);
  CHECK(config.log_directory() == "/data");
  CHECK(config.listeners().at(0).host == "127.0.0.1");
  CHECK(config.listeners().at(0).port == 9092);
  CHECK(config.advertised().at(0).host == "broker.example");
  CHECK(config.integer("socket.request.max.bytes") == 104857600);
  CHECK(config.warnings().empty());
  CHECK(config.shard_count() >= 1);
}

TEST_CASE("there are as many shards as CPUs that may be used, not as the machine has") {
  cpu_set_t usable;
  REQUIRE(::sched_getaffinity(0, sizeof usable, &usable) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &usable)) CPU_SET(cpu, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const std::size_t shards = Config::load(minimal, {}, {}).shard_count();
  REQUIRE(::sched_setaffinity(0, sizeof usable, &usable) == 0);
  CHECK(shards == 1);
}

TEST_CASE("a setting that Kafka knows and we do not is a warning that names it") {
  for (const std::string key :
       {"num.replica.fetchers", "zookeeper.connect", "log.message.format.version",
        "listener.name.internal.ssl.key.password", "group.coordinator.threads"}) {
    const Config config = Config::load(minimal + key + "=1\n", {}, {});
    REQUIRE(config.warnings().size() == 1);
    CHECK(config.warnings()[0].find(key) != std::string::npos);
    CHECK(config.warnings()[0].find("line 4") != std::string::npos);
  }
}

TEST_CASE("an unknown setting is an error that names it and the one that was meant") {
  const std::string problem = problem_of(minimal + "log.segment.byte=1000000\n");
  CHECK(problem.find("log.segment.byte") != std::string::npos);
  CHECK(problem.find("did you mean log.segment.bytes?") != std::string::npos);
  CHECK(problem_of(minimal + "entirely.made.up=1\n").find("remove it") != std::string::npos);
}

TEST_CASE("values outside their range are refused with what to write") {
  CHECK(problem_of(minimal + "log.segment.bytes=big\n").find("a whole number from 14") !=
        std::string::npos);
  CHECK(problem_of(minimal + "socket.request.max.bytes=0\n").find("from 1 to") !=
        std::string::npos);
  CHECK(!problem_of(minimal + "message.max.bytes=99999999999\n").empty());
  CHECK(problem_of(minimal + "compression.type=rar\n").find("zstd") != std::string::npos);
}

TEST_CASE("what is missing or does not fit together is said") {
  CHECK(problem_of("log.dirs=/data\n").find("node.id") != std::string::npos);
  CHECK(problem_of("node.id=1\n").find("log.dirs") != std::string::npos);
  CHECK(problem_of("node.id=1\nlog.dirs=/a,/b\n").find("leave one") != std::string::npos);
  CHECK(problem_of("node.id=1\nbroker.id=2\nlog.dirs=/a\n").find("remove broker.id") !=
        std::string::npos);
  CHECK(!problem_of(minimal + "listeners=PLAINTEXT://:x\n").empty());
  CHECK(!problem_of(minimal + "listeners=127.0.0.1:9092\n").empty());
  CHECK(problem_of(minimal + "listeners=SSL://:9093\n").find("only PLAINTEXT") !=
        std::string::npos);
  CHECK(problem_of(minimal + "listeners=PLAINTEXT://0.0.0.0:9092\n").find("advertised.listeners") !=
        std::string::npos);
  CHECK(!problem_of(minimal + "advertised.listeners=OTHER://h:1\n").empty());
  CHECK(!problem_of(minimal, {"node.id"}).empty());
}

TEST_CASE("an existing KRaft server.properties is taken as it is") {
  const Config config = Config::load(
      "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
      "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
      "advertised.listeners=PLAINTEXT://here:9092\n"
      "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
      "log.dirs=/tmp/x\nnum.network.threads=3\noffsets.topic.replication.factor=1\n",
      {}, {});
  CHECK(config.listeners().size() == 1);
  CHECK(config.warnings().size() == 4);
}

TEST_CASE("overrides win over the environment, which wins over the file") {
  const Config config =
      Config::load(minimal + "log.segment.bytes=1000\nlog.roll.ms=5\nnum.partitions=2\n",
                   {"log.segment.bytes=3000"},
                   {"CALQUE_LOG_SEGMENT_BYTES=2000", "CALQUE_LOG_ROLL_MS=6", "CALQUE_SHARDS=3",
                    "HOME=/root", "CALQUE_NO_SUCH_THING=1"});
  CHECK(config.integer("log.segment.bytes") == 3000);
  CHECK(config.integer("log.roll.ms") == 6);
  CHECK(config.integer("num.partitions") == 2);
  CHECK(config.shard_count() == 3);
  REQUIRE(config.warnings().size() == 1);
  CHECK(config.warnings()[0].find("CALQUE_NO_SUCH_THING") != std::string::npos);
}

TEST_CASE("the table and the help text agree") {
  const std::string help = describe_settings();
  for (const Setting& one : settings()) {
    CHECK(help.find(std::string(one.name)) != std::string::npos);
    CHECK(one.sentence.ends_with("."));
    CHECK(find_setting(one.name) == &one);
    // A default must be a value that would be accepted.
    if (one.fallback && !one.fallback->empty())
      CHECK(problem_of(minimal, {std::string(one.name) + "=" + std::string(*one.fallback)}) == "");
  }
  CHECK(find_setting("no.such.setting") == nullptr);
  CHECK(std::ranges::is_sorted(kafka_setting_names()));
}

TEST_CASE("properties are read as Java reads them") {
  const auto read = parse_properties(
      "# comment\n! another\n\n a = 1 \r\nb:2\nc 3\nd=x\\\n   y\ne=\\u\\:\\=\nf\n  g=a=b:c\n");
  REQUIRE(read.size() == 7);
  CHECK(read[0].key == "a");
  CHECK(read[0].value == "1");
  CHECK(read[0].line == 4);
  CHECK(read[1].value == "2");
  CHECK(read[2].key == "c");
  CHECK(read[2].value == "3");
  CHECK(read[3].value == "xy");
  CHECK(read[4].value == "u:=");
  CHECK(read[5].key == "f");
  CHECK(read[5].value.empty());
  CHECK(read[6].value == "a=b:c");
}

}  // namespace broker
