// Settings of groups: the table, what may be set, and that it acts.
#include "broker/group_settings.h"

#include "broker/config_change.h"
#include "protocol/messages/consumer_group_heartbeat.gen.h"
#include "protocol/messages/find_coordinator.gen.h"
#include "protocol/messages/list_config_resources.gen.h"
#include "tests/unit/broker/admin_client.h"

namespace broker::test::admin {
namespace {

constexpr std::int8_t group_resource = 32;

Config broker_with(std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), {"node.id=1", "log.dirs=/nowhere"});
  return Config::load("", overrides, {});
}

std::optional<std::string> problem(std::string_view name, std::string value,
                                   const Config& broker = broker_with({})) {
  return group_value_problem(*find_group_setting(name), broker, value);
}

std::string kept(std::string_view name, std::string value) {
  REQUIRE_FALSE(group_value_problem(*find_group_setting(name), broker_with({}), value));
  return value;
}

}  // namespace

TEST_CASE("every setting of a group is found, and has a default that is allowed") {
  CHECK(group_settings().size() == 26);
  for (const GroupSetting& one : group_settings()) {
    CAPTURE(one.setting.name);
    CHECK(find_group_setting(one.setting.name) == &one);
    CHECK_FALSE(problem(one.setting.name, std::string(*one.setting.fallback)));
    CHECK_FALSE(effective_value(one, {}, broker_with({})).synonyms.empty());
  }
  CHECK(find_group_setting("consumer.session.timeout") == nullptr);
  CHECK(find_group_setting("zzz") == nullptr);
}

TEST_CASE("what a group may set lies within what the broker allows") {
  CHECK_FALSE(problem("consumer.session.timeout.ms", "45000"));
  CHECK(problem("consumer.session.timeout.ms", "44999")->find("45000 to 60000") !=
        std::string::npos);
  const Config wider = broker_with(
      {"group.consumer.min.session.timeout.ms=1000", "group.consumer.max.session.timeout.ms=2000"});
  CHECK_FALSE(problem("consumer.session.timeout.ms", "1000", wider));
  CHECK(problem("consumer.session.timeout.ms", "2001", wider));
  CHECK(problem("consumer.session.timeout.ms", "45000", wider));
  CHECK(kept("consumer.heartbeat.interval.ms", " 6000 ") == "6000");
  CHECK(kept("consumer.assignor.offload.enable", "TRUE") == "TRUE");
  CHECK(problem("consumer.assignor.offload.enable", "yes"));
  CHECK(kept("streams.rack.aware.assignment.tags", "a, b") == "a,b");
  for (const char* bad : {"a,,b", "a,a", ","}) {
    CHECK(problem("streams.rack.aware.assignment.tags", bad));
  }
  CHECK(problem("errors.deadletterqueue.topic.name", "__x"));
  for (const char* good : {"latest", "earliest", "by_duration:P1D", "by_duration:PT0S",
                           "by_duration:p2dt3h4m5.5s", "by_duration:PT1H5S"})
    CHECK_FALSE(problem("share.auto.offset.reset", good));
  for (const char* bad :
       {"", "Latest", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:P1DT",
        "by_duration:P1H", "by_duration:PT1D", "by_duration:PT1M1H", "by_duration:P1DT1.5H",
        "by_duration:PT.5S", "by_duration:PT1", "by_duration:PTT1S", "by_duration:P1D1D"})
    CHECK(problem("share.auto.offset.reset", bad));
}

TEST_CASE("a group goes by its own settings, or the nearest that are allowed now") {
  groups::consumer::Settings of_broker;
  of_broker.max_size = 7;
  const ConfigValues own = {{"consumer.session.timeout.ms", "50000"},
                            {"consumer.heartbeat.interval.ms", "6000"}};
  const auto settings = settings_of_group(own, broker_with({}), of_broker);
  CHECK(settings.session_timeout_ms == 50'000);
  CHECK(settings.heartbeat_interval_ms == 6000);
  CHECK(settings.assignment_interval_ms == of_broker.assignment_interval_ms);
  CHECK(settings.max_size == 7);
  const Config narrower = broker_with({"group.consumer.max.session.timeout.ms=48000",
                                       "group.consumer.min.heartbeat.interval.ms=9000"});
  CHECK(settings_of_group(own, narrower, of_broker).session_timeout_ms == 48'000);
  CHECK(settings_of_group(own, narrower, of_broker).heartbeat_interval_ms == 9000);
}

TEST_CASE("all changes of a group's settings, or none") {
  const Config broker = broker_with({});
  ConfigValues values = {{"consumer.session.timeout.ms", "50000"}};
  const ConfigChange good{"consumer.heartbeat.interval.ms", ConfigOperation::set, "6000"};
  CHECK(apply_to_group({good, {"no.such", ConfigOperation::set, "1"}}, broker, values)->code ==
        ErrorCode::invalid_config);
  CHECK(values.size() == 1);
  CHECK_FALSE(apply_to_group({good, {"no.such", ConfigOperation::remove, {}}}, broker, values));
  CHECK(values.size() == 2);
  CHECK(check_group_operations({good, {"no.such", ConfigOperation::append, "1"}}));
  CHECK_FALSE(check_group_operations({good}));
}

TEST_CASE("members are told a group's new interval at once, also after a restart") {
  Directory directory;
  const std::vector<std::string> settings = {"offsets.topic.num.partitions=1"};
  protocol::ConsumerGroupHeartbeatRequest beat;
  beat.group_id = "g";
  beat.member_id = "m";
  beat.rebalance_timeout_ms = 60'000;
  beat.subscribed_topic_names.emplace();
  beat.topic_partitions.emplace();
  const auto interval = [&](Client& client) {
    for (int i = 0; i < 500; ++i) {
      const auto told = client.call<protocol::ConsumerGroupHeartbeatResponse>(1, beat);
      if (told.error_code == 0) return told.heartbeat_interval_ms;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it loads
    }
    return -1;
  };
  const auto listed = [](Client& client) {
    protocol::ListConfigResourcesRequest asked;
    asked.resource_types = {group_resource};
    return client.call<protocol::ListConfigResourcesResponse>(1, asked).config_resources.size();
  };
  const std::string key = "consumer.heartbeat.interval.ms";
  {
    Running broker(directory, settings);
    Client client(broker.port());
    protocol::FindCoordinatorRequest find;
    find.coordinator_keys = {"g"};
    client.call<protocol::FindCoordinatorResponse>(4, find);
    CHECK(interval(client) == 5000);
    const auto set = [&](std::int8_t operation, std::optional<std::string> value) {
      return alter(client, {{group_resource, "g", key, operation, std::move(value)}})
          .responses.at(0)
          .error_code;
    };
    CHECK(set(operation_set, "4999") == number(ErrorCode::invalid_config));
    CHECK(set(operation_set, "7000") == 0);
    CHECK(interval(client) == 7000);
    CHECK(set(operation_remove, {}) == 0);
    CHECK(interval(client) == 5000);
    CHECK(listed(client) == 0);
    CHECK(set(operation_set, "8000") == 0);
    CHECK(listed(client) == 1);
    const auto shown = describe(client, group_resource, "g", key).configs.at(0);
    CHECK(shown.value == "8000");
    CHECK(shown.config_source == 8);
    CHECK(describe(client, group_resource, "other", key).configs.at(0).value == "5000");
  }
  Running broker(directory, settings);
  Client client(broker.port());
  CHECK(interval(client) == 8000);
  CHECK(listed(client) == 1);
}

}  // namespace broker::test::admin
