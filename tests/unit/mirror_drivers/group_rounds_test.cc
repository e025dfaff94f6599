// The offsets of the source's consumer groups: periodic rounds, the last one of a failover.
#include <catch2/catch.hpp>

#include "tests/unit/mirror_drivers/fixture.h"

using namespace mirror_test;
using mirror::CommittedOffset;

namespace {

std::optional<CommittedOffset> committed(World& world, const std::string& group, int partition = 0,
                                         const std::string& topic = "t") {
  const auto found = world.target.committed.find(group);
  if (found == world.target.committed.end()) return std::nullopt;
  const auto offset = found->second.find({topic, partition});
  if (offset == found->second.end()) return std::nullopt;
  return offset->second;
}

bool has_offset(World& world, const std::string& group, base::Offset offset, int partition = 0) {
  const auto found = committed(world, group, partition);
  return found && found->offset == offset;
}

void commit_at_source(World& world, const std::string& group, base::Offset offset,
                      int partition = 0) {
  world.source.groups[group].offsets[{"t", partition}] = {
      .offset = offset, .leader_epoch = 0, .metadata = "meta"};
}

std::optional<mirror::GroupDescription> described(World& world, const std::string& group) {
  mirror::DescribeFilter filter;
  filter.include_groups = true;
  const std::vector<mirror::MirrorDescription> all = world.run(world.coordinator->describe(filter));
  for (const auto& mirror : all)
    for (const auto& one : mirror.groups)
      if (one.name == group) return one;
  return std::nullopt;
}

std::string group_error(World& world) {
  const std::vector<mirror::MirrorDescription> all = world.run(world.coordinator->describe({}));
  return all.at(0).group_error.value_or("");
}

void stop_all(World& world) {
  CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
  world.await_state("t", 0, "STOPPED");
}

}  // namespace

TEST_CASE("committed offsets of every release's groups are taken over") {
  const Release release = GENERATE(kafka_2_1, kafka_2_4, kafka_2_7, kafka_4_4);
  World world(release);
  commit_at_source(world, "g", 3);
  commit_at_source(world, "zero", 0);
  commit_at_source(world, "workers", 2);
  world.source.groups["workers"].protocol_type = "connect";
  commit_at_source(world, "sharing", 2);
  world.source.groups["sharing"].type = "Share";
  world.source.groups["sharing"].protocol_type = "share";
  world.source.groups["g"].offsets[{"elsewhere", 0}] = {.offset = 9};
  world.copy_one();
  world.spin([&] { return has_offset(world, "g", 3) && has_offset(world, "zero", 0); });
  CHECK(committed(world, "g") ==
        CommittedOffset{.offset = 3, .leader_epoch = 0, .metadata = "meta"});
  CHECK_FALSE(committed(world, "g", 0, "elsewhere"));
  CHECK_FALSE(committed(world, "workers"));
  CHECK_FALSE(committed(world, "sharing"));

  SECTION("what moves follows, what does not is not written again") {
    world.spin_for(900ms);
    const int before = world.target.group_commits;
    world.spin_for(900ms);
    CHECK(world.target.group_commits == before);
    commit_at_source(world, "g", 5);
    world.spin([&] { return has_offset(world, "g", 5); });
    CHECK(world.target.group_commits == before + 1);
  }
  SECTION("what vanishes at the source stays here") {
    world.source.groups.erase("g");
    world.spin([&] { return !described(world, "g"); });
    CHECK(has_offset(world, "g", 3));
  }
}

TEST_CASE("which groups: by groups.include and groups.exclude") {
  World world;
  world.extra_configs["groups.include"] = "a.*,b";
  world.extra_configs["mirror.groups.exclude"] = "a-no";
  for (const char* group : {"a-yes", "a-no", "b", "bb"}) commit_at_source(world, group, 1);
  world.copy_one();
  world.spin([&] { return has_offset(world, "a-yes", 1) && has_offset(world, "b", 1); });
  CHECK_FALSE(committed(world, "a-no"));
  CHECK_FALSE(committed(world, "bb"));
  const auto listed = world.run(world.coordinator->list({}));
  CHECK(listed.at(0).groups_include == "a.*,b");
  CHECK(listed.at(0).groups_exclude == "a-no");
}

TEST_CASE("none are included: the source is not asked") {
  World world;
  world.extra_configs["groups.include"] = "";
  commit_at_source(world, "g", 1);
  world.copy_one();
  world.spin_for(900ms);
  stop_all(world);
  CHECK(world.source.group_listings == 0);
}

TEST_CASE("E17: an offset ahead of the copy is clamped, shown, and raised later") {
  World world;
  world.copy_one();
  commit_at_source(world, "g", 12);
  world.spin([&] { return has_offset(world, "g", 5); });
  const auto held_back = described(world, "g");
  REQUIRE(held_back);
  CHECK(held_back->offsets == 1);
  CHECK(held_back->clamped == 1);
  CHECK(held_back->behind == 7);
  world.source.produce("t", 0, 10);
  world.spin([&] { return has_offset(world, "g", 12); });
  world.spin([&] { return described(world, "g")->clamped == 0; });
  CHECK(described(world, "g")->synced_ms);
}

TEST_CASE("a group with members here is left alone and told of") {
  World world;
  world.target.groups_with_members.insert("g");
  commit_at_source(world, "g", 2);
  commit_at_source(world, "h", 3);
  world.copy_one();
  world.spin([&] { return has_offset(world, "h", 3); });
  world.spin([&] { return described(world, "g") && described(world, "g")->error_message; });
  CHECK_THAT(*described(world, "g")->error_message, Catch::Matchers::Contains("has members here"));
  CHECK_FALSE(described(world, "h")->error_message);
  CHECK_FALSE(committed(world, "g"));
  world.target.groups_with_members.clear();
  world.spin([&] { return has_offset(world, "g", 2); });
  world.spin([&] { return !described(world, "g")->error_message; });
}

TEST_CASE("what fails at the source is tried again, and named") {
  World world;
  commit_at_source(world, "g", 2);
  SECTION("a group") {
    world.source.groups["g"].error =
        static_cast<std::int16_t>(protocol::ErrorCode::not_coordinator);
    world.copy_one();
    world.spin([&] { return described(world, "g") && described(world, "g")->error_message; });
    world.source.groups["g"].error = 0;
  }
  SECTION("a broker's list") {
    world.source.list_groups_error =
        static_cast<std::int16_t>(protocol::ErrorCode::coordinator_load_in_progress);
    world.copy_one();
    world.spin([&] { return !group_error(world).empty(); });
    CHECK_FALSE(committed(world, "g"));
    world.source.list_groups_error = 0;
  }
  world.spin([&] { return has_offset(world, "g", 2); });
  world.spin([&] { return group_error(world).empty(); });
}

TEST_CASE("the last round of a failover comes after the last byte and before the first write") {
  World world;
  // Only the last round sees what is committed from here on.
  world.extra_configs["metadata.refresh.interval.ms"] = "60000";
  world.copy_one();
  world.await_lag_zero("t", 0);
  world.spin_for(2500ms);
  commit_at_source(world, "g", 4);
  commit_at_source(world, "ahead", 99);
  std::vector<std::string> before;
  bool writable = true;
  world.target.on_group_commit = [&](const mirror::GroupCommit&) {
    before = world.target.log("t", 0).events;
    writable = world.target.log("t", 0).writable;
  };
  stop_all(world);
  CHECK(has_offset(world, "g", 4));
  CHECK(has_offset(world, "ahead", 5));
  CHECK_FALSE(writable);
  CHECK(std::ranges::find(before, "markers") == before.end());
  CHECK(std::ranges::find(before, "reset") == before.end());
  CHECK(world.target.log("t", 0).end > 5);  // what is ours comes behind

  SECTION("E16: nothing is taken over after it") {
    commit_at_source(world, "g", 5);
    world.spin_for(900ms);
    CHECK(has_offset(world, "g", 4));
  }
  SECTION("mirrored again, the source's offsets hold again") {
    world.target.committed.clear();  // before: the next round may be as fast as the start
    mirror::StartTopics again;
    again.names = {"t"};
    CHECK(world.run(world.coordinator->start_topics("m", again)).outcome.ok());
    world.await_state("t", 0, "MIRRORING");
    world.spin([&] { return has_offset(world, "g", 4); });
  }
}

TEST_CASE("a failover of many partitions settles all of them") {
  World world;
  world.extra_configs["metadata.refresh.interval.ms"] = "60000";
  world.copy_one(20);
  for (int p = 0; p < 20; ++p) world.await_lag_zero("t", p);
  for (int p = 0; p < 20; ++p) commit_at_source(world, "g", 1 + p % 5, p);
  const int listings = world.source.group_listings;
  CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
  for (int p = 0; p < 20; ++p) world.await_state("t", p, "STOPPED");
  for (int p = 0; p < 20; ++p) CHECK(has_offset(world, "g", 1 + p % 5, p));
  CHECK(world.source.group_listings < listings + 6);
  CHECK(described(world, "g")->offsets == 20);
}

TEST_CASE("a failover does not wait for a source that is away, mute or refuses") {
  World world;
  world.copy_one();
  commit_at_source(world, "g", 2);
  world.spin([&] { return has_offset(world, "g", 2); });
  commit_at_source(world, "g", 4);
  SECTION("away") {
    world.source.stop();
    world.await_state("t", 0, "FAILED");
  }
  SECTION("it has just died") {
    world.source.stop();
  }
  SECTION("mute") {
    world.source.mute = true;
  }
  SECTION("hangs up") {
    world.source.mute_groups = true;
  }
  const auto begun = std::chrono::steady_clock::now();
  stop_all(world);
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  CHECK(world.target.log("t", 0).writable);
  // Those of the last round hold. (A periodic one may have seen the newer ones.)
  CHECK((has_offset(world, "g", 2) || has_offset(world, "g", 4)));
}

TEST_CASE("groups of a topic that was created anew at the source are not taken for the old one's") {
  World world;
  world.copy_one();
  commit_at_source(world, "g", 2);
  world.spin([&] { return has_offset(world, "g", 2); });
  world.source.topics.erase("t");
  world.source.add_topic("t", 1);
  commit_at_source(world, "g", 1);
  world.await_state("t", 0, "FAILED");
  world.spin_for(900ms);
  stop_all(world);
  CHECK(has_offset(world, "g", 2));
}

TEST_CASE("a broker that ends in the middle of a failover does not wait for the source") {
  World world;
  world.copy_one();
  world.source.mute = true;
  CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
  world.spin_for(100ms);
  const auto begun = std::chrono::steady_clock::now();
  world.shut_down();
  CHECK(std::chrono::steady_clock::now() - begun < 800ms);
  // And the next start carries it through, with a source that answers again.
  world.source.mute = false;
  commit_at_source(world, "g", 3);
  world.boot();
  world.await_state("t", 0, "STOPPED");
}

TEST_CASE("groups of an old source, which are asked for one by one, are asked for together") {
  World world(kafka_2_1);
  constexpr int groups = 250;
  for (int i = 0; i < groups; ++i) commit_at_source(world, "g-" + std::to_string(i), i % 5);
  world.source.groups["g-7"].error =
      static_cast<std::int16_t>(protocol::ErrorCode::not_coordinator);
  world.copy_one();
  world.spin([&] { return has_offset(world, "g-249", 249 % 5); });
  for (int i = 0; i < groups; ++i)
    if (i != 7) CHECK(has_offset(world, "g-" + std::to_string(i), i % 5));
  CHECK_FALSE(committed(world, "g-7"));
  CHECK(world.source.with_others_behind > groups / 2);
  world.source.groups["g-7"].error = 0;
  world.spin([&] { return has_offset(world, "g-7", 2); });
}
