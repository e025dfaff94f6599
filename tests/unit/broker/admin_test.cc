// Topics and settings end to end: a broker in this process, a socket, real messages.
#include "broker/mirror_target.h"
#include "broker/topic_config.h"
#include "tests/unit/broker/admin_client.h"

namespace broker::test::admin {

TEST_CASE("A08: a topic that is asked for comes into being, and the first answer says not yet") {
  Directory directory;
  Running broker(directory, {"num.partitions=3"});
  Client client(broker.port());
  protocol::MetadataRequest asked;
  asked.topics.emplace().emplace_back().name = "wanted";
  const auto ask = [&](bool create) {
    asked.allow_auto_topic_creation = create;
    return client.call<protocol::MetadataResponse>(9, asked).topics.at(0);
  };
  CHECK(ask(false).error_code == number(ErrorCode::unknown_topic_or_partition));
  CHECK(ask(false).error_code == number(ErrorCode::unknown_topic_or_partition));
  CHECK(ask(true).error_code == number(ErrorCode::unknown_topic_or_partition));
  const auto there = ask(true);
  CHECK(there.error_code == 0);
  REQUIRE(there.partitions.size() == 3);
  CHECK(there.partitions[0].leader_id == 1);
  CHECK(produce(client, "wanted", "x") == 0);
  // Neither a name that collides nor an internal one.
  for (const char* name : {"a.b", "__consumer_offsets", "__mirror_state"}) {
    create(client, "a_b");
    asked.topics->at(0).name = name;
    CHECK(ask(true).error_code == number(ErrorCode::unknown_topic_or_partition));
    CHECK(ask(true).error_code == number(ErrorCode::unknown_topic_or_partition));
  }
}

TEST_CASE("a topic is not made by asking while a mirror may bring it, or when switched off") {
  Directory directory;
  const auto ask = [](Client& client, const std::string& name) {
    protocol::MetadataRequest asked;
    asked.topics.emplace().emplace_back().name = name;
    client.call<protocol::MetadataResponse>(9, asked);
    return client.call<protocol::MetadataResponse>(9, asked).topics.at(0).error_code;
  };
  {
    Running broker(directory);
    Client client(broker.port());
    storage::MirrorRecord mirror;
    mirror.name = "dr";
    REQUIRE(broker.run([&] { return broker->catalog().save_mirror(mirror); }));
    CHECK(ask(client, "early") == number(ErrorCode::unknown_topic_or_partition));
    REQUIRE(broker.run([&] { return broker->catalog().attach_topic("dr", "copy", {}, 1); }));
    CHECK(ask(client, "early") == number(ErrorCode::unknown_topic_or_partition));
    // After the failover of all that it copied the applications are at home here.
    REQUIRE(
        broker.run([&] { return broker->catalog().set_desired_state({"copy"}, desired_stopped); }));
    CHECK(ask(client, "late") == 0);
  }
  Directory other;
  Running broker(other, {"auto.create.topics.enable=false"});
  Client client(broker.port());
  CHECK(ask(client, "wanted") == number(ErrorCode::unknown_topic_or_partition));
}

TEST_CASE("A19: a bad value is an answer that names it, and the other resources are changed") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  for (const char* name : {"one", "two", "three"}) create(client, name);
  const auto answer =
      alter(client, {{topic_resource, "one", "cleanup.policy", operation_set, "compactt"},
                     {topic_resource, "two", "retention.ms", operation_set, "1234"},
                     {topic_resource, "three", "compression.type", operation_set, "SNAPPY"}});
  REQUIRE(answer.responses.size() == 3);
  CHECK(answer.responses[0].error_code == number(ErrorCode::invalid_config));
  CHECK(answer.responses[0].error_message->find("cleanup.policy") != std::string::npos);
  CHECK(answer.responses[0].error_message->find("compact, delete") != std::string::npos);
  CHECK(answer.responses[1].error_code == 0);
  CHECK(answer.responses[2].error_code == number(ErrorCode::invalid_config));
  CHECK(answer.responses[2].error_message->find("snappy") != std::string::npos);
  CHECK(describe(client, topic_resource, "two", "retention.ms").configs.at(0).value == "1234");
  CHECK(describe(client, topic_resource, "one", "cleanup.policy").configs.at(0).value == "delete");
}

TEST_CASE("A21: every topic setting of Kafka is kept and shown, an unknown one is refused") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  int number_of_topic = 0;
  for (const TopicSetting& setting : topic_settings()) {
    CAPTURE(setting.name);
    const std::string topic = "t" + std::to_string(number_of_topic++);
    const auto made =
        create(client, topic, {{std::string(setting.name), std::string(setting.fallback)}});
    CHECK(made.error_code == 0);
    const auto shown = describe(client, topic_resource, topic, std::string(setting.name));
    REQUIRE(shown.configs.size() == 1);
    // Set on the topic, although it is the default's value.
    CHECK(shown.configs[0].config_source == 1);
    CHECK(shown.configs[0].value == std::string(setting.fallback));
  }
  CHECK(create(client, "x", {{"no.such.setting", "1"}}).error_code ==
        number(ErrorCode::invalid_config));
}

TEST_CASE("A28: leader epochs rise with each restart and never fall") {
  Directory directory;
  std::int32_t last = -1;
  for (int i = 0; i < 3; ++i) {
    Running broker(directory);
    Client client(broker.port());
    if (i == 0) create(client, "events");
    protocol::MetadataRequest asked;
    asked.topics.emplace().emplace_back().name = "events";
    const auto answer = client.call<protocol::MetadataResponse>(9, asked);
    const std::int32_t epoch = answer.topics.at(0).partitions.at(0).leader_epoch;
    CHECK(epoch > last);
    last = epoch;
    protocol::DescribeTopicPartitionsRequest described;
    described.topics.emplace_back().name = "events";
    const auto same = client.call<protocol::DescribeTopicPartitionsResponse>(0, described);
    CHECK(same.topics.at(0).partitions.at(0).leader_epoch == epoch);
  }
}

TEST_CASE("B31: a name of 249 characters can be created, filled and deleted") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  const std::string name(249, 'n');
  REQUIRE(create(client, name, {}, 3).error_code == 0);
  CHECK(produce(client, name, "x", 2) == 0);
  CHECK(delete_topic(client, name) == 0);
  CHECK(has_directory(directory, "-delete"));
  REQUIRE(create(client, name, {}, 3).error_code == 0);
  CHECK(create(client, name + "n").error_code == number(ErrorCode::invalid_topic_exception));
}

TEST_CASE("deleting topics can be switched off") {
  Directory directory;
  Running broker(directory, {"delete.topic.enable=false"});
  Client client(broker.port());
  create(client, "events");
  CHECK(delete_topic(client, "events") == number(ErrorCode::topic_deletion_disabled));
  CHECK(delete_topic(client, "events", 2) == number(ErrorCode::invalid_request));
  CHECK(broker->catalog().snapshot()->find("events"));
}

TEST_CASE("settings of the broker change at run time, for topics too, and survive a restart") {
  Directory directory;
  const auto source = [](Client& client, std::int8_t type, const std::string& name,
                         const std::string& key) {
    const auto shown = describe(client, type, name, key).configs.at(0);
    return shown.value.value_or("") + " " + std::to_string(shown.config_source);
  };
  {
    Running broker(directory, {"log.retention.hours=1"});
    Client client(broker.port());
    create(client, "events");
    CHECK(source(client, topic_resource, "events", "retention.ms") == "3600000 5");
    const auto answer =
        alter(client, {{broker_resource, "", "log.retention.ms", operation_set, "5000"},
                       {broker_resource, "1", "log.retention.ms", operation_set, "4000"}});
    CHECK(answer.responses.at(0).error_code == 0);
    CHECK(answer.responses.at(1).error_code == 0);
    CHECK(source(client, topic_resource, "events", "retention.ms") == "4000 2");
    CHECK(source(client, broker_resource, "1", "log.retention.ms") == "4000 2");
    CHECK(source(client, broker_resource, "", "log.retention.ms") == "5000 3");
    // These two, server.properties and the default.
    CHECK(describe(client, broker_resource, "1", "log.retention.ms").configs[0].synonyms.size() ==
          4);
  }
  Running broker(directory);
  Client client(broker.port());
  CHECK(source(client, topic_resource, "events", "retention.ms") == "4000 2");
  alter(client, {{broker_resource, "1", "log.retention.ms", operation_remove, std::nullopt}});
  CHECK(source(client, topic_resource, "events", "retention.ms") == "5000 3");
  const std::vector<std::pair<std::string, ErrorCode>> refused = {
      {"node.id", ErrorCode::invalid_request},
      {"log.cleaner.threads", ErrorCode::invalid_request},
      {"no.such.setting", ErrorCode::invalid_config}};
  for (const auto& [key, code] : refused)
    CHECK(alter(client, {{broker_resource, "1", key, operation_set, "7"}})
              .responses.at(0)
              .error_code == number(code));
  // What it speaks of acts at once.
  alter(client, {{broker_resource, "", "message.max.bytes", operation_set, "100"}});
  CHECK(produce(client, "events", std::string(200, 'x')) == number(ErrorCode::message_too_large));
}

TEST_CASE("AlterConfigs takes away what it does not name") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  create(client, "events", {{"retention.ms", "1"}, {"segment.ms", "2"}});
  protocol::AlterConfigsRequest request;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = topic_resource;
  resource.resource_name = "events";
  auto& config = resource.configs.emplace_back();
  config.name = "segment.ms";
  config.value = "3";
  request.validate_only = true;
  CHECK(client.call<protocol::AlterConfigsResponse>(2, request).responses.at(0).error_code == 0);
  CHECK(broker->catalog().snapshot()->find("events")->configs.size() == 2);
  request.validate_only = false;
  CHECK(client.call<protocol::AlterConfigsResponse>(2, request).responses.at(0).error_code == 0);
  CHECK(broker->catalog().snapshot()->find("events")->configs == TopicConfigs{{"segment.ms", "3"}});
}

TEST_CASE("coordinators' topics are internal and compacted, whoever makes them") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  for (const std::string name : {"__transaction_state", "__consumer_offsets"}) {
    const auto attached = broker.run(
        [&] { return broker->mirror_target().attach_topic("dr", name, base::Uuid(), 1); });
    REQUIRE(attached.has_error());
    CHECK(attached.error() == mirror::TargetErrc::already_exists);
    const auto made =
        create(client, name, {{"cleanup.policy", "delete"}, {"segment.bytes", "2000000"}}, 3);
    CHECK(made.error_code == 0);
    CHECK(made.num_partitions == 3);
    CHECK(produce(client, name, "forged") == number(ErrorCode::invalid_topic_exception));
    const auto policy = describe(client, topic_resource, name, "cleanup.policy");
    CHECK(policy.configs.at(0).value == "compact");
    const auto bytes = describe(client, topic_resource, name, "segment.bytes");
    CHECK(bytes.configs.at(0).value == "2000000");
  }
}

}  // namespace broker::test::admin
