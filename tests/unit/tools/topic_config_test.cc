#include "broker/topic_config.h"

#include <catch2/catch.hpp>
#include <set>

namespace {

using broker::ConfigSource;

broker::Config config(const std::string& more = {}) {
  return broker::Config::load(
      "node.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\nlog.dirs=/nowhere\n" + more, {}, {});
}

std::string problem(const std::string& name, std::optional<std::string> value) {
  return broker::check_topic_configs({{name, std::move(value)}}).problem.value_or("");
}

}  // namespace

TEST_CASE("the table holds every topic key of Kafka 4.4 and passes its own checks", "[tools]") {
  std::set<std::string_view> names;
  for (const broker::TopicSetting& setting : broker::topic_settings()) {
    INFO(setting.name);
    CHECK(names.insert(setting.name).second);
    CHECK_FALSE(setting.sentence.empty());
    CHECK(broker::find_topic_setting(setting.name) == &setting);
    // A default that the check refuses would refuse what DescribeConfigs shows.
    CHECK(problem(std::string(setting.name), std::string(setting.fallback)).empty());
  }
  for (const char* name : {"cleanup.policy",
                           "compression.gzip.level",
                           "compression.lz4.level",
                           "compression.type",
                           "compression.zstd.level",
                           "delete.retention.ms",
                           "errors.deadletterqueue.group.enable",
                           "file.delete.delay.ms",
                           "flush.messages",
                           "flush.ms",
                           "follower.replication.throttled.replicas",
                           "index.interval.bytes",
                           "leader.replication.throttled.replicas",
                           "local.retention.bytes",
                           "local.retention.ms",
                           "max.compaction.lag.ms",
                           "max.decompressed.message.bytes",
                           "max.message.bytes",
                           "message.timestamp.after.max.ms",
                           "message.timestamp.before.max.ms",
                           "message.timestamp.type",
                           "min.cleanable.dirty.ratio",
                           "min.compaction.lag.ms",
                           "min.insync.replicas",
                           "preallocate",
                           "remote.copy.lag.bytes",
                           "remote.copy.lag.ms",
                           "remote.log.copy.disable",
                           "remote.log.delete.on.disable",
                           "remote.storage.enable",
                           "retention.bytes",
                           "retention.ms",
                           "segment.bytes",
                           "segment.index.bytes",
                           "segment.jitter.ms",
                           "segment.ms",
                           "unclean.leader.election.enable"})
    CHECK(names.erase(name) == 1);
  CHECK(names == std::set<std::string_view>{"mirror.replication.throttled.replicas",
                                            "mirror.support.unclean.leader.election"});
}

TEST_CASE("what Kafka refuses is refused", "[tools]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(problem("no.such", "1"), Contains("no topic configuration named 'no.such'"));
  CHECK_THAT(problem("retention.ms", std::nullopt), Contains("needs a value"));
  CHECK_THAT(problem("retention.ms", "abc"), Contains("'abc' is no value for retention.ms"));
  CHECK_THAT(problem("retention.ms", "-2"), Contains("not below -1"));
  CHECK_THAT(problem("segment.bytes", "100"), Contains("from 1048576 to 2147483647"));
  CHECK_THAT(problem("segment.bytes", "2147483648"), Contains("from 1048576"));
  CHECK_THAT(problem("cleanup.policy", "foo"), Contains("use compact, delete"));
  CHECK_THAT(problem("compression.type", "ZSTD"), Contains("zstd"));
  CHECK_THAT(problem("preallocate", "maybe"), Contains("true or false"));
  CHECK_THAT(problem("min.cleanable.dirty.ratio", "2.0"), Contains("from 0 to 1"));
  CHECK_THAT(problem("min.cleanable.dirty.ratio", "nan"), Contains("from 0 to 1"));
  CHECK_THAT(problem("compression.gzip.level", "0"), Contains("-1, or 1 to 9"));
  CHECK_THAT(problem("leader.replication.throttled.replicas", "x"), Contains("PARTITION:BROKER"));
  CHECK_THAT(problem("remote.storage.enable", "true"), Contains("not served here"));
  CHECK_THAT(problem("message.format.version", "2.0"), Contains("no topic configuration"));
  CHECK_THAT(*broker::check_topic_configs(
                  {{"min.compaction.lag.ms", "10"}, {"max.compaction.lag.ms", "5"}})
                  .problem,
             Contains("may not be above"));
}

TEST_CASE("what Kafka takes is taken, in one spelling", "[tools]") {
  const auto checked =
      broker::check_topic_configs({{"retention.ms", " 77 "},
                                   {"retention.ms", "78"},
                                   {"preallocate", "TRUE"},
                                   {"cleanup.policy", "compact, delete"},
                                   {"leader.replication.throttled.replicas", "*"},
                                   {"mirror.unclean.leader.election.enable", "true"}});
  CHECK_FALSE(checked.problem);
  CHECK(checked.configs ==
        broker::TopicConfigs{{"retention.ms", "78"},
                             {"preallocate", "true"},
                             {"cleanup.policy", "compact, delete"},
                             {"leader.replication.throttled.replicas", "*"},
                             {"mirror.support.unclean.leader.election", "true"}});
  CHECK(problem("cleanup.policy", "").empty());
  CHECK(problem("follower.replication.throttled.replicas", "0:1, 1:2").empty());
}

TEST_CASE("a value comes from the topic, the broker or the table, in this order", "[tools]") {
  const auto& setting = *broker::find_topic_setting("segment.bytes");
  const auto plain = broker::effective_value(setting, {}, config());
  CHECK(plain.value == "1073741824");
  CHECK(plain.source == ConfigSource::fallback);
  const auto of_broker = config("log.segment.bytes=2000000\n");
  const auto from_broker = broker::effective_value(setting, {}, of_broker);
  CHECK(from_broker.value == "2000000");
  CHECK(from_broker.source == ConfigSource::static_broker);
  const auto own = broker::effective_value(setting, {{"segment.bytes", "3000000"}}, of_broker);
  CHECK(own.value == "3000000");
  CHECK(own.source == ConfigSource::topic);
  REQUIRE(own.synonyms.size() == 3);
  CHECK(own.synonyms[1].name == "log.segment.bytes");
  CHECK(own.synonyms[2].source == ConfigSource::fallback);
}

TEST_CASE("hours and minutes of the broker become milliseconds of the topic", "[tools]") {
  const auto value = [](const char* name, const std::string& setting) {
    return broker::effective_value(*broker::find_topic_setting(name), {}, config(setting)).value;
  };
  CHECK(value("segment.ms", "log.roll.hours=2\n") == "7200000");
  CHECK(value("segment.ms", "log.roll.hours=2\nlog.roll.ms=5\n") == "5");
}

TEST_CASE("storage settings follow, and bad values count as absent", "[tools]") {
  const auto log = broker::log_config({{"segment.bytes", "5000000"},
                                       {"max.message.bytes", "77"},
                                       {"message.timestamp.type", "LogAppendTime"},
                                       {"cleanup.policy", "compact,delete"},
                                       {"segment.ms", "rubbish"}},
                                      config());
  CHECK(log.segment_bytes == 5'000'000u);
  CHECK(log.max_message_bytes == 77u);
  CHECK(log.log_append_time);
  CHECK(log.compacted);
  CHECK(log.segment_ms == 604'800'000);
  CHECK_FALSE(broker::log_config({}, config()).compacted);
}

TEST_CASE("produce rules follow the topic", "[tools]") {
  const auto plain = broker::produce_rules({}, config());
  CHECK_FALSE(plain.compression_type);
  CHECK_FALSE(plain.timestamp_before_max_ms);
  CHECK(plain.timestamp_after_max_ms == 3'600'000);
  CHECK(plain.max_message_bytes == 1'048'588u);
  const auto own = broker::produce_rules(
      {{"compression.type", "uncompressed"}, {"message.timestamp.before.max.ms", "1000"}},
      config());
  CHECK(own.compression_type == protocol::Codec::none);
  CHECK(own.timestamp_before_max_ms == 1000);
  CHECK(broker::produce_rules({{"compression.type", "zstd"}}, config()).compression_type ==
        protocol::Codec::zstd);
}
