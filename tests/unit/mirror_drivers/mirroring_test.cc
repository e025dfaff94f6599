// The way of the data: from a source of several releases into the log, byte for byte.
#include <catch2/catch.hpp>

#include "tests/unit/mirror_drivers/fixture.h"

using namespace mirror_test;

TEST_CASE("one partition is copied byte for byte and stopped") {
  const Release release = GENERATE(kafka_2_1, kafka_2_4, kafka_2_7, kafka_4_4);
  World world(release);
  world.source.add_topic("orders", 1);
  world.source.log("orders", 0).epoch = 3;
  for (int i = 0; i < 20; ++i) world.source.produce("orders", 0, 5);
  world.boot();
  REQUIRE(world.create("m", "orders").ok());
  world.await_lag_zero("orders", 0);
  CHECK(world.same_bytes("orders", 0));
  CHECK(world.target.log("orders", 0).leader_epoch > 3);
  CHECK(world.source.fetch_version == release.fetch);
  CHECK((world.target.topic("orders")->id == world.source.topics["orders"].id) ==
        (release.metadata >= 10));
  CHECK_FALSE(world.target.log("orders", 0).writable);

  SECTION("later records follow") {
    world.source.produce("orders", 0, 7);
    world.await_lag_zero("orders", 0);
    CHECK(world.same_bytes("orders", 0));
  }
  SECTION("stopped: position, epoch, markers, reset, then open") {
    FakeLog& log = world.target.log("orders", 0);
    log.open_transactions = 2;
    const base::LeaderEpoch before = log.leader_epoch;
    CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
    world.await_state("orders", 0, "STOPPED");
    CHECK(log.writable);
    CHECK(log.leader_epoch > before);
    CHECK(log.markers == 2);
    CHECK(log.resets == 1);
    CHECK(log.end == 103);
    const std::vector<std::string> tail(log.events.end() - 4, log.events.end());
    CHECK(tail == std::vector<std::string>{"bump", "markers", "reset", "allow"});
    const auto now = world.describe("orders", 0);
    REQUIRE(now->last_mirror_position);
    CHECK(now->last_mirror_position->offset == 100);
    CHECK(now->last_mirror_position->epoch == 3);
    CHECK(now->writable);
    CHECK_FALSE(now->source_offset);  // not being heard any more, so nobody knows
  }
}

TEST_CASE("many partitions share a connection and a session") {
  World world;
  world.source.add_topic("wide", 16);
  for (int p = 0; p < 16; ++p)
    for (int i = 0; i < 5; ++i) world.source.produce("wide", p, 3);
  world.boot();
  REQUIRE(world.create("m", "wide").ok());
  for (int p = 0; p < 16; ++p) world.await_lag_zero("wide", p);
  for (int p = 0; p < 16; ++p) CHECK(world.same_bytes("wide", p));
  // Idle partitions are not named again: a long poll carries none of them.
  world.spin_for(300ms);
  REQUIRE_FALSE(world.source.last_fetches.empty());
  CHECK(world.source.last_fetches.back().topics.empty());
  CHECK(world.source.full_fetches <= 2 * 2);  // one per shard, one more after the session began
  const int before = world.source.fetches;
  world.source.produce("wide", 9, 2);
  world.await_lag_zero("wide", 9);
  CHECK(world.same_bytes("wide", 9));
  CHECK(world.source.fetches < before + 200);
}

TEST_CASE("a source that refuses fetch sessions is fetched from without") {
  World world;
  world.source.sessions = false;
  world.source.add_topic("t", 4);
  for (int p = 0; p < 4; ++p) world.source.produce("t", p, 3);
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  for (int p = 0; p < 4; ++p) world.await_lag_zero("t", p);
  world.source.produce("t", 2, 2);
  world.await_lag_zero("t", 2);
  CHECK(world.same_bytes("t", 2));
}

TEST_CASE("a session that the source evicts is opened anew") {
  World world;
  world.source.add_topic("t", 2);
  world.source.produce("t", 0, 3);
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  world.await_lag_zero("t", 0);
  world.source.sessions = false;  // answers FETCH_SESSION_ID_NOT_FOUND from now on
  world.source.produce("t", 0, 3);
  world.source.produce("t", 1, 3);
  world.await_lag_zero("t", 0);
  world.await_lag_zero("t", 1);
  CHECK(world.state("t", 0) == "MIRRORING");
}

TEST_CASE("offsets 0 and three billion in one answer") {
  World world;
  world.source.add_topic("gap", 1);
  world.source.append("gap", 0, make_batch(0, 1, 0));
  world.source.append("gap", 0, make_batch(3'000'000'000, 2, 0));
  world.boot();
  REQUIRE(world.create("m", "gap").ok());
  world.await_lag_zero("gap", 0);
  CHECK(world.same_bytes("gap", 0));
}

TEST_CASE("E36: the source's log start lies inside a batch") {
  World world;
  world.source.add_topic("cut", 1);
  world.source.produce("cut", 0, 10);
  world.source.produce("cut", 0, 10);
  world.source.log("cut", 0).start = 4;
  world.boot();
  REQUIRE(world.create("m", "cut").ok());
  world.await_lag_zero("cut", 0);
  CHECK(world.same_bytes("cut", 0));
  CHECK(world.target.log("cut", 0).start == 4);
  CHECK(world.target.log("cut", 0).end == 20);
  CHECK_FALSE(world.describe("cut", 0)->skipped);  // nothing was missed: the copy begins there
}

TEST_CASE("topics are discovered, excluded, and get more partitions") {
  World world;
  world.source.add_topic("a.one", 1);
  world.source.add_topic("a.no", 1);
  world.source.add_topic("__internal", 1);
  world.source.add_topic("other", 1);
  world.boot();
  world.extra_configs["topics.exclude"] = "__.*,a\\.no";
  REQUIRE(world.create("m", "a\\..*,__.*").ok());
  world.await_state("a.one", 0, "MIRRORING");
  CHECK_FALSE(world.target.topic("a.no"));
  CHECK_FALSE(world.target.topic("__internal"));
  CHECK_FALSE(world.target.topic("other"));
  world.source.add_topic("a.two", 1);
  world.source.topics["a.one"].partitions.resize(3);
  world.source.produce("a.one", 2, 4);
  world.await_state("a.two", 0, "MIRRORING");
  world.await_lag_zero("a.one", 2);
  CHECK(world.target.topic("a.one")->leader_epochs.size() == 3);
}

TEST_CASE("the topics of the source's coordinators are not discovered, whatever the lists say") {
  World world;
  for (const std::string name : {"__consumer_offsets", "__transaction_state", "a", "z"})
    world.source.add_topic(name, 1);
  world.boot();
  world.extra_configs["topics.exclude"] = "nothing";
  REQUIRE(world.create("m", ".*").ok());
  world.await_state("a", 0, "MIRRORING");
  world.await_state("z", 0, "MIRRORING");
  CHECK_FALSE(world.target.topic("__consumer_offsets"));
  CHECK_FALSE(world.target.topic("__transaction_state"));
}

TEST_CASE(
    "a topic stays the same when its source gets topic ids, and is another one with another id") {
  World world(kafka_2_7);
  world.copy_one();
  CHECK(world.target.topic("t")->source_id == base::Uuid());
  world.source.release = kafka_4_4;
  world.source.drop_connections();
  world.source.produce("t", 0, 5);
  world.await_copied("t", 0);
  world.spin([&] { return world.target.topic("t")->source_id == world.source.topics["t"].id; });
  CHECK(world.source.fetch_version == kafka_4_4.fetch);
  CHECK(world.same_bytes("t", 0));
  SECTION("also after a restart") {
    world.shut_down();
    world.boot();
  }
  world.source.produce("t", 0, 5);
  world.await_copied("t", 0);
  world.source.topics.erase("t");
  world.source.add_topic("t", 1);
  world.source.produce("t", 0, 40);
  world.spin([&] { return world.describe("t", 0)->retry_attempt == -1; });
  CHECK(world.describe("t", 0)->error_message->find("created anew") != std::string::npos);
  CHECK(world.target.log("t", 0).end == 15);
}
