// A source that lies, dies, comes back, or is another one today.
#include <catch2/catch.hpp>

#include "protocol/big_endian.h"
#include "protocol/error_code.h"
#include "tests/unit/mirror_drivers/fixture.h"

using namespace mirror_test;

TEST_CASE("E22: another cluster at the old address ends the mirror before anything is appended") {
  World world;
  world.copy_one();
  world.source.stop();
  world.source.cluster_id = "another-cluster";
  world.source.log("t", 0).epoch = 5;
  world.source.produce("t", 0, 50);
  world.source.start();
  world.await_state("t", 0, "FAILED");
  world.spin([&] { return world.describe("t", 0)->retry_attempt == -1; });
  world.spin_for(500ms);
  CHECK(world.target.log("t", 0).end == 5);
  const std::string said = world.describe("t", 0)->error_message.value_or("");
  INFO(said);
  CHECK(said.find("another-cluster") != std::string::npos);
  CHECK(said.find("source-cluster-id") != std::string::npos);
  SECTION("it can still be stopped") {
    world.run(world.coordinator->stop_topics("m", {}));
    world.await_state("t", 0, "STOPPED");
  }
  SECTION("also after a restart") {
    world.shut_down();
    world.boot();
    world.spin_for(500ms);
    CHECK(world.target.log("t", 0).end == 5);
    CHECK(world.state("t", 0) == "FAILED");
  }
}

TEST_CASE(
    "E22: one broker of the source that belongs to another cluster is named with its cluster") {
  World world;
  // The bootstrap server and its metadata are right, the address of the leader is not.
  FakeSource foreign(world.io, kafka_4_4);
  foreign.cluster_id = "another-cluster";
  world.copy_one();
  world.source.on_metadata = [&](protocol::MetadataResponse& response) {
    for (auto& broker : response.brokers) broker.port = foreign.port();
  };
  const bool while_fetching = GENERATE(true, false);
  if (while_fetching) {
    world.spin_for(700ms);            // some syncs
    world.source.produce("t", 0, 1);  // still comes, and the next fetch goes to the other address
  } else {
    world.source.log("t", 0).epoch = 1;  // the fetch is refused, and the leader is asked
  }
  world.spin([&] { return world.describe("t", 0)->retry_attempt == -1; });
  const std::string said = world.describe("t", 0)->error_message.value_or("");
  INFO(said);
  CHECK(said.find("another-cluster") != std::string::npos);
  CHECK(said.find("source-cluster-id") != std::string::npos);
  CHECK(foreign.fetches == 0);
  CHECK(world.target.log("t", 0).end == (while_fetching ? 6 : 5));
}

TEST_CASE("E22: the cluster id is remembered before the first append") {
  World world;
  world.source.add_topic("t", 1);
  world.source.produce("t", 0, 5);
  world.boot();
  bool seen_before_fetch = true;
  world.source.on_fetch = [&](protocol::FetchRequest&, protocol::FetchResponse&) {
    seen_before_fetch &= world.target.mirrors()[0].configs.contains("source.cluster.id");
  };
  REQUIRE(world.create("m", "t").ok());
  world.await_copied("t", 0);
  CHECK(seen_before_fetch);
}

TEST_CASE("the source goes and comes back: mirroring goes on by itself within seconds") {
  World world;
  world.copy_one();
  world.source.stop();
  world.await_state("t", 0, "FAILED");
  world.spin_for(2s);  // several failures, so that delays have grown
  world.source.log("t", 0).epoch += 1;
  world.source.produce("t", 0, 5);
  world.source.start();
  world.await_state("t", 0, "MIRRORING", 4s);
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
  CHECK_FALSE(world.describe("t", 0)->error_message);
  CHECK(world.describe("t", 0)->retry_attempt == 0);
}

TEST_CASE("E06: a batch epoch above the metadata's is asked about before it is appended") {
  World world;
  world.copy_one();
  // The data has epoch 8 while metadata still say 7: not appended before metadata follow.
  world.source.log("t", 0).epoch = 7;
  world.source.append("t", 0, make_batch(5, 2, 8));
  // Longer than all attempts that a failure of another kind is given.
  world.spin_for(1500ms);
  CHECK(world.target.log("t", 0).end == 5);
  const int fetches = world.source.fetches;
  world.spin_for(300ms);
  CHECK(world.source.fetches - fetches < 40);  // no busy loop
  CHECK(world.describe("t", 0)->retry_attempt > 0);
  world.source.log("t", 0).epoch = 8;
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("E06: metadata are asked of another broker when those of one stay behind") {
  World world;
  FakeSource behind(world.io, kafka_4_4);
  world.bootstrap = behind.bootstrap() + "," + world.source.bootstrap();
  const auto both = [&](protocol::MetadataResponse& response) {
    response.brokers.resize(1);
    response.brokers[0].node_id = 1;
    response.brokers[0].port = world.source.port();
    response.brokers.push_back(response.brokers[0]);
    response.brokers[1].node_id = 2;
    response.brokers[1].port = behind.port();
  };
  world.source.on_metadata = behind.on_metadata = both;
  world.source.add_topic("t", 1);
  world.source.produce("t", 0, 5);
  behind.topics = world.source.topics;
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  world.await_copied("t", 0);
  world.source.log("t", 0).epoch = 8;  // the other one never hears of it
  world.source.produce("t", 0, 2);
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
  CHECK(behind.connections > 0);
  CHECK(behind.fetches == 0);
}

TEST_CASE("epoch fencing: our epoch is raised before a newer one is appended") {
  World world;
  world.copy_one();
  world.source.log("t", 0).epoch = 40;
  world.source.produce("t", 0, 5);
  world.await_copied("t", 0);
  CHECK(world.target.log("t", 0).leader_epoch > 40);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("null records are nothing new") {
  World world;
  world.copy_one();
  world.source.on_fetch = [](protocol::FetchRequest&, protocol::FetchResponse& response) {
    for (auto& topic : response.responses)
      for (auto& partition : topic.partitions) partition.records = {{}, true, {}};
  };
  world.source.produce("t", 0, 5);
  const int before = world.source.fetches;
  world.spin_for(500ms);
  CHECK(world.source.fetches - before < 60);
  CHECK(world.target.log("t", 0).end == 5);
  CHECK(world.state("t", 0) == "MIRRORING");
  world.source.on_fetch = nullptr;
  world.await_copied("t", 0);
}

TEST_CASE("a cut tail is left for the next fetch") {
  World world;
  world.source.add_topic("t", 1);
  for (int i = 0; i < 6; ++i) world.source.produce("t", 0, 5);
  world.source.on_fetch = [](protocol::FetchRequest&, protocol::FetchResponse& response) {
    for (auto& topic : response.responses)
      for (auto& partition : topic.partitions) {
        base::Bytes& bytes = partition.records.bytes;
        if (bytes.size() > 600) bytes = bytes.first(bytes.size() - 37);
      }
  };
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("damaged and disordered batches are never appended, and it heals when they are gone") {
  World world;
  world.copy_one();
  base::Buffer forged;
  const auto lie = [&](base::Buffer bytes) {
    forged = std::move(bytes);
    world.source.on_fetch = [&](protocol::FetchRequest&, protocol::FetchResponse& response) {
      for (auto& topic : response.responses)
        for (auto& partition : topic.partitions) partition.records.bytes = forged;
    };
  };
  SECTION("a flipped bit") {
    base::Buffer bytes = make_batch(5, 3, 0).bytes;
    bytes.back() ^= std::byte{4};
    lie(bytes);
  }
  SECTION("offsets from the past") {
    lie(make_batch(2, 3, 0).bytes);
  }
  SECTION("offsets that go back within the answer") {
    base::Buffer bytes = make_batch(10, 3, 0).bytes;
    const base::Buffer second = make_batch(7, 2, 0).bytes;
    bytes.insert(bytes.end(), second.begin(), second.end());
    lie(bytes);
  }
  world.source.produce("t", 0, 5);
  world.spin([&] { return world.describe("t", 0)->retry_attempt > 0; });
  CHECK(world.target.log("t", 0).end == 5);
  world.source.on_fetch = nullptr;
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("epochs that go back are refused") {
  World world;
  world.copy_one();
  world.source.log("t", 0).epoch = 9;
  world.source.produce("t", 0, 5);
  world.await_copied("t", 0);
  world.source.append("t", 0, make_batch(10, 1, 4));
  world.spin([&] { return world.describe("t", 0)->retry_attempt > 0; });
  CHECK(world.target.log("t", 0).end == 10);
}

TEST_CASE("answers to something else, without end or without sense close the connection") {
  World world;
  world.copy_one();
  SECTION("wrong correlation id") {
    world.source.wrong_correlation = true;
    world.await_state("t", 0, "FAILED");
    // As with any lost connection: tried anew with delays, and not given up.
    const int before = world.source.connections;
    world.spin_for(1500ms);
    CHECK(world.source.connections > before + 2);
    CHECK(world.source.connections < before + 60);
    CHECK(world.describe("t", 0)->retry_attempt > 0);
    world.source.wrong_correlation = false;
  }
  SECTION("a giant size") {
    world.source.on_bytes = [](base::Buffer& response) {
      protocol::store_be<std::int32_t>(response.data(), 0x7fffffff);
    };
    world.await_state("t", 0, "FAILED");
    world.source.on_bytes = nullptr;
  }
  SECTION("a negative size") {
    world.source.on_bytes = [](base::Buffer& response) {
      protocol::store_be<std::int32_t>(response.data(), -5);
    };
    world.await_state("t", 0, "FAILED");
    world.source.on_bytes = nullptr;
  }
  SECTION("noise") {
    world.source.on_bytes = [](base::Buffer& response) {
      for (std::size_t i = 8; i < response.size(); ++i) response[i] = std::byte{0xff};
    };
    world.await_state("t", 0, "FAILED");
    world.source.on_bytes = nullptr;
  }
  SECTION("silence") {
    world.source.mute = true;
    world.await_state("t", 0, "FAILED");
    world.source.mute = false;
    world.source.drop_connections();
  }
  world.source.produce("t", 0, 5);
  world.await_copied("t", 0);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("E01: what the source deleted before it was copied is told, never passed over") {
  World world;
  world.copy_one();
  world.run(world.coordinator->pause_topics("m", {}));
  world.await_state("t", 0, "PAUSED");
  world.source.produce("t", 0, 10);
  SourceLog& log = world.source.log("t", 0);
  log.start = 15;
  log.batches.clear();
  world.source.produce("t", 0, 5);
  SECTION("by default it goes on behind the gap, and shows it") {
    world.run(world.coordinator->resume_topics("m", {}));
    world.await_copied("t", 0);
    const auto now = world.describe("t", 0);
    REQUIRE(now->skipped);
    CHECK(now->skipped->from == 5);
    CHECK(now->skipped->until == 15);
    CHECK(world.target.log("t", 0).start == 15);
    // Still known after a restart.
    world.shut_down();
    world.boot();
    world.await_state("t", 0, "MIRRORING");
    CHECK(world.describe("t", 0)->skipped);
  }
}

TEST_CASE("E02: a topic that was deleted and created anew is not appended to the old copy") {
  const Release release = GENERATE(kafka_2_1, kafka_4_4);
  World world(release);
  world.source.add_topic("t", 1);
  world.source.log("t", 0).epoch = 2;
  world.source.produce("t", 0, 5);
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  world.await_copied("t", 0);
  world.source.topics.erase("t");
  world.source.add_topic("t", 1);
  world.source.produce("t", 0, 9);
  world.source.drop_connections();
  world.spin([&] { return world.describe("t", 0)->retry_attempt == -1; });
  CHECK(world.target.log("t", 0).end == 5);
}

TEST_CASE("a deleted topic fails for good after two listings, not after one") {
  World world;
  world.source.add_topic("other", 1);
  world.copy_one();
  int left_out = 1;
  world.source.on_metadata = [&](protocol::MetadataResponse& response) {
    if (left_out-- > 0)
      std::erase_if(response.topics, [](const auto& topic) { return topic.name == "t"; });
  };
  world.spin([&] { return left_out < 0; });
  world.spin_for(500ms);
  CHECK(world.state("t", 0) == "MIRRORING");
  world.source.topics.erase("t");
  world.await_state("t", 0, "FAILED");
  world.spin([&] { return world.describe("t", 0)->retry_attempt == -1; }, 25s);
  CHECK(world.target.topic("t").has_value());
}

TEST_CASE("no leader at the source: it waits, and goes on when there is one") {
  World world;
  world.copy_one();
  world.source.log("t", 0).has_leader = false;
  world.source.on_fetch = [](protocol::FetchRequest&, protocol::FetchResponse& response) {
    for (auto& topic : response.responses)
      for (auto& partition : topic.partitions)
        partition.error_code =
            static_cast<std::int16_t>(protocol::ErrorCode::not_leader_or_follower);
  };
  world.source.produce("t", 0, 5);
  world.await_state("t", 0, "FAILED");
  world.source.on_fetch = nullptr;
  world.source.log("t", 0).has_leader = true;
  world.source.log("t", 0).epoch += 1;
  world.await_copied("t", 0);
}

TEST_CASE("a leader that does not know its epoch yet is asked again until it does") {
  using enum protocol::ErrorCode;
  for (const auto error : {not_leader_or_follower, replica_not_available, fenced_leader_epoch,
                           unknown_leader_epoch, offset_not_available}) {
    World world;
    world.copy_one();
    world.source.stop();
    world.await_state("t", 0, "FAILED");
    world.source.log("t", 0).epoch += 1;
    world.source.produce("t", 0, 5);
    int refused = 0;
    world.source.on_list_offsets = [&](protocol::ListOffsetsResponse& response) {
      for (auto& topic : response.topics)
        for (auto& partition : topic.partitions) {
          partition.error_code = static_cast<std::int16_t>(error);
          ++refused;
        }
    };
    world.source.start();
    // Longer than all attempts that an answer which is an error is given.
    world.spin_for(1500ms);
    CHECK(world.describe("t", 0)->retry_attempt > 0);
    CHECK(refused > 0);
    CHECK(refused < 40);  // no busy loop
    world.source.on_list_offsets = nullptr;
    world.await_copied("t", 0);
    world.await_state("t", 0, "MIRRORING");
    CHECK(world.same_bytes("t", 0));
  }
}
