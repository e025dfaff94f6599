// Topics come, change and go; what a crash leaves behind is put in order at the next start.
#include "broker/catalog.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <fstream>
#include "broker/error.h"
#include "broker/log_store.h"

#include "tests/unit/broker/client.h"

namespace broker::test {
namespace {

namespace fs = std::filesystem;

bool has_log(const Directory& directory, const std::string& name) {
  return fs::exists(directory.path() + "/" + name + "/partition.metadata");
}

std::size_t strays(const Directory& directory) {
  std::size_t count = 0;
  for (const auto& one : fs::directory_iterator(directory.path()))
    if (one.path().string().ends_with("-stray")) ++count;
  return count;
}

NewTopic wanted(const std::string& name, std::int32_t partitions) {
  NewTopic topic;
  topic.name = name;
  topic.partitions = partitions;
  return topic;
}

}  // namespace

TEST_CASE("topic names are Kafka's") {
  CHECK(is_valid_topic_name("a.B_c-9"));
  CHECK(is_valid_topic_name(std::string(249, 'x')));
  for (const std::string name : {"", ".", "..", "a/b", "a b", "\xc3\xa4"})
    CHECK(!is_valid_topic_name(name));
  CHECK(!is_valid_topic_name(std::string(250, 'x')));
}

TEST_CASE("a topic is created everywhere at once, and survives a restart") {
  Directory directory;
  base::Uuid id;
  {
    Running broker(directory);
    const TopicPtr topic = broker.create("events", 5, {{"segment.bytes", "2000000"}});
    id = topic->id;
    CHECK(has_log(directory, "events-4"));
    auto& catalog = broker->catalog();
    const auto again = broker.run([&] { return catalog.create_topic(wanted("events", 1)); });
    CHECK(again.error() == BrokerErrc::topic_exists);
    NewTopic same_id = wanted("other", 1);
    same_id.id = id;
    CHECK(broker.run([&] { return catalog.create_topic(same_id); }).error() ==
          BrokerErrc::topic_id_in_use);
    CHECK(broker.run([&] { return catalog.create_topic(wanted("a/b", 1)); }).error() ==
          BrokerErrc::invalid_topic_name);
    CHECK(broker.run([&] { return catalog.create_topic(wanted("none", 0)); }).error() ==
          BrokerErrc::invalid_partition_count);
  }
  Running broker(directory);
  const TopicPtr topic = broker->catalog().snapshot()->find("events");
  REQUIRE(topic);
  CHECK(topic->id == id);
  CHECK(topic->partitions.size() == 5);
  CHECK(topic->configs.at("segment.bytes") == "2000000");
  CHECK(broker->catalog().snapshot()->find(id) == topic);
  CHECK(strays(directory) == 0);
}

TEST_CASE("partitions are added, settings replaced, and a deletion takes the logs along") {
  Directory directory;
  Running broker(directory);
  auto& catalog = broker->catalog();
  const TopicPtr topic = broker.create("events", 2);
  const auto fewer = broker.run([&] { return catalog.add_partitions("events", 2); });
  CHECK(fewer.error() == BrokerErrc::invalid_partition_count);
  const auto more = broker.run([&] { return catalog.add_partitions("events", 4); });
  REQUIRE(more.has_value());
  CHECK((*more)->partitions.size() == 4);
  CHECK(has_log(directory, "events-3"));
  const auto retain = [](const auto& present) -> std::optional<TopicConfigs> {
    CHECK(present.empty());
    return TopicConfigs{{"retention.ms", "1000"}};
  };
  const auto changed = broker.run([&] { return catalog.alter_topic("events", retain); });
  REQUIRE(changed.has_value());
  CHECK((*changed)->configs.size() == 1);

  const auto deleted = broker.run([&] { return catalog.delete_topic(topic->id); });
  CHECK(deleted.has_value());
  CHECK(!catalog.snapshot()->find("events"));
  CHECK(!fs::exists(directory.path() + "/events-0"));
  CHECK(broker.run([&] { return catalog.delete_topic(topic->id); }).error() ==
        BrokerErrc::unknown_topic_id);
  // The name is free for another topic.
  CHECK(broker.create("events")->id != topic->id);
}

TEST_CASE("an epoch is raised to what is asked for and never lowered") {
  Directory directory;
  Running broker(directory);
  auto& catalog = broker->catalog();
  const TopicPtr topic = broker.create("events");
  const base::TopicPartition id = {topic->id, 0};
  CHECK(*broker.run([&] { return catalog.bump_epoch(id, 7); }) == 7);
  CHECK(*broker.run([&] { return catalog.bump_epoch(id, 3); }) == 7);
  CHECK(catalog.snapshot()->find("events")->partitions[0].leader_epoch == 7);
  auto epoch_of_partition = [&]() -> boost::asio::awaitable<base::LeaderEpoch> {
    auto look = [&]() -> boost::asio::awaitable<base::LeaderEpoch> {
      co_return broker->shard_of(id).find(id)->leader_epoch();
    };
    co_return co_await on(broker->shard_of(id), look);
  };
  CHECK(broker.run(epoch_of_partition) == 7);
}

TEST_CASE("many changes at once are made one after the other") {
  Directory directory;
  Running broker(directory);
  auto& catalog = broker->catalog();
  std::vector<std::future<base::Result<TopicPtr>>> made;
  for (int i = 0; i < 20; ++i)
    made.push_back(boost::asio::co_spawn(
        broker->shard(static_cast<std::size_t>(i) % 2).executor(),
        [&catalog, i] { return catalog.create_topic(wanted("t" + std::to_string(i % 10), 2)); },
        boost::asio::use_future));
  int created = 0;
  for (auto& one : made)
    if (one.get().has_value()) ++created;
  CHECK(created == 10);
  CHECK(catalog.snapshot()->topics().size() == 10);
}

TEST_CASE("a log without a topic is moved aside, a topic without a log gets one") {
  Directory directory;
  {
    Running broker(directory);
    broker.create("events", 2);
  }
  fs::remove_all(directory.path() + "/events-1");
  fs::create_directory(directory.path() + "/orphan-0");
  std::ofstream(directory.path() + "/orphan-0/00000000000000000000.log") << "precious";
  {
    Running broker(directory);
    CHECK(has_log(directory, "events-1"));
    CHECK(!fs::exists(directory.path() + "/orphan-0"));
    CHECK(strays(directory) == 1);
    // A topic of that name starts empty, and the stray is left alone.
    broker.create("orphan");
  }
  Running broker(directory);
  CHECK(strays(directory) == 1);
  CHECK(has_log(directory, "orphan-0"));
}

TEST_CASE("a deletion that a crash interrupted is finished at the next start") {
  Directory directory;
  TopicPtr topic;
  {
    Running broker(directory);
    topic = broker.create("doomed", 2);
    // As after the transaction, before the logs are gone.
    auto& store = broker->catalog().store();
    const std::vector<storage::Write> writes = {
        {"topics/" + topic->id.to_string(), std::nullopt},
        {"deleting/" + topic->id.to_string(), storage::encode(*topic)}};
    REQUIRE(store.txn({}, writes).has_value());
  }
  REQUIRE(fs::exists(directory.path() + "/doomed-0"));
  Running broker(directory);
  CHECK(!broker->catalog().snapshot()->find("doomed"));
  CHECK(!fs::exists(directory.path() + "/doomed-0"));
  CHECK(!fs::exists(directory.path() + "/doomed-1"));
  CHECK(strays(directory) == 0);
}

TEST_CASE("a directory is served by one broker, with its own node id") {
  Directory directory;
  {
    Running broker(directory);
    Broker second(config_for(directory.path()), storage::posix_file_system());
    const auto problem = second.start();
    REQUIRE(problem);
    CHECK(problem->find("in use by another process") != std::string::npos);
  }
  Broker other(config_for(directory.path(), {"node.id=2"}), storage::posix_file_system());
  const auto problem = other.start();
  REQUIRE(problem);
  CHECK(problem->find("node.id") != std::string::npos);
}

}  // namespace broker::test
