// Commands: stop, pause, start, delete, and what survives a restart.
#include <algorithm>
#include <catch2/catch.hpp>

#include "mirror/control_types.h"
#include "tests/unit/mirror_drivers/fixture.h"

using namespace mirror_test;
namespace error = mirror::control_error;

namespace {

std::int16_t first_error(const mirror::TopicsOutcome& outcome) {
  return outcome.outcome.error;
}

}  // namespace

TEST_CASE("pause holds, resume goes on") {
  World world;
  world.copy_one();
  CHECK(world.run(world.coordinator->pause_topics("m", {})).outcome.ok());
  world.await_state("t", 0, "PAUSED");
  world.source.produce("t", 0, 5);
  world.spin_for(300ms);
  const int fetches = world.source.fetches;
  world.spin_for(300ms);
  CHECK(world.source.fetches == fetches);
  CHECK(world.target.log("t", 0).end == 5);
  CHECK_FALSE(world.target.log("t", 0).writable);

  SECTION("paused it stays over a restart, and fetches nothing (E11)") {
    world.shut_down();
    world.boot();
    world.await_state("t", 0, "PAUSED");
    const int before = world.source.fetches;
    world.spin_for(700ms);
    CHECK(world.source.fetches == before);
    CHECK(world.target.log("t", 0).end == 5);
  }
  CHECK(world.run(world.coordinator->resume_topics("m", {})).outcome.ok());
  world.await_lag_zero("t", 0);
  CHECK(world.same_bytes("t", 0));
}

TEST_CASE("stop succeeds when the source is dead, and from FAILED") {
  World world;
  world.copy_one(30);
  world.source.stop();
  for (int p = 0; p < 30; ++p) world.await_state("t", p, "FAILED");
  CHECK_FALSE(world.describe("t", 0)->lag);  // never 0 while nobody is heard
  const auto begun = std::chrono::steady_clock::now();
  CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
  for (int p = 0; p < 30; ++p) world.await_state("t", p, "STOPPED");
  CHECK(std::chrono::steady_clock::now() - begun < 10s);
  for (int p = 0; p < 30; ++p) CHECK(world.target.log("t", p).writable);
}

TEST_CASE("stop succeeds when the source takes requests and never answers") {
  World world;
  world.copy_one();
  world.source.mute = true;
  CHECK(world.run(world.coordinator->stop_topics("m", {})).outcome.ok());
  world.await_state("t", 0, "STOPPED", 5s);
  CHECK(world.target.log("t", 0).writable);
}

TEST_CASE("a stopped partition opens again after a restart, without its source") {
  World world;
  world.copy_one();
  world.run(world.coordinator->stop_topics("m", {}));
  world.await_state("t", 0, "STOPPED");
  world.source.stop();
  world.shut_down();
  world.target.log("t", 0).writable = false;  // as the broker begins
  const base::Offset end = world.target.log("t", 0).end;
  world.boot();
  world.spin([&] { return world.target.log("t", 0).writable; });
  CHECK(world.target.log("t", 0).end == end);
  CHECK(world.state("t", 0) == "STOPPED");
}

TEST_CASE("a restart goes on where the log ends") {
  World world;
  world.copy_one();
  world.shut_down();
  world.source.produce("t", 0, 9);
  world.boot();
  world.await_lag_zero("t", 0);
  CHECK(world.same_bytes("t", 0));
  // Nothing that was there was copied again.
  int restarts = 0;
  for (const std::string& event : world.target.log("t", 0).events)
    restarts += event.starts_with("restart") || event.starts_with("truncate 0");
  CHECK(restarts <= 1);  // the very first alignment of an empty log
}

TEST_CASE("a stopped topic is not discovered again, and starts when told to") {
  World world;
  world.copy_one();
  world.run(world.coordinator->stop_topics("m", {}));
  world.await_state("t", 0, "STOPPED");
  world.source.add_topic("t2", 1);
  world.spin_for(900ms);
  CHECK(world.state("t", 0) == "STOPPED");
  const base::Offset local_end = world.target.log("t", 0).end;
  CHECK(local_end == 6);  // with the reset record, which is not the source's
  world.source.produce("t", 0, 3);
  CHECK(world.run(world.coordinator->start_topics("m", {})).outcome.ok());
  world.await_lag_zero("t", 0);
  CHECK(world.same_bytes("t", 0));  // cut back to the last mirror position first
  CHECK_FALSE(world.target.log("t", 0).writable);
}

TEST_CASE("delete is refused until all is STOPPED, then leaves an ordinary topic") {
  World world;
  world.copy_one(2);
  CHECK(world.run(world.coordinator->remove("m")).error == error::cluster_mirror_not_empty);
  world.run(world.coordinator->stop_topics("m", {}));
  world.await_state("t", 0, "STOPPED");
  world.await_state("t", 1, "STOPPED");
  CHECK(world.run(world.coordinator->remove("m")).ok());
  CHECK(world.target.mirrors().empty());
  CHECK(world.target.topic("t")->mirror.empty());
  CHECK(world.target.log("t", 0).writable);
  CHECK(world.run(world.coordinator->remove("m")).error == error::unknown_cluster_mirror);
  // Nothing of it is left in the state topic.
  int left = 0;
  std::map<std::string, bool> alive;
  world.run([](World& w, std::map<std::string, bool>& out) -> boost::asio::awaitable<void> {
    const auto note = [&out](base::Bytes key, std::optional<base::Bytes> value) {
      out[std::string(base::as_text(key))] = value.has_value();
    };
    const auto done = co_await w.target.replay_state(note);
    CHECK(done.has_value());
  }(world, alive));
  for (const auto& [key, is_alive] : alive) left += is_alive;
  CHECK(left == 0);
}

TEST_CASE("what makes no sense is refused with a code and a sentence") {
  World world;
  world.copy_one();
  auto& c = *world.coordinator;
  CHECK(world.create("m", "x").error == error::cluster_mirror_already_exists);
  CHECK(world.create("bad name", "x").error == error::invalid_request);
  CHECK(world.create("r", "(").error == error::invalid_regular_expression);
  CHECK(world.run(c.create("n", {})).error == error::invalid_config);
  world.extra_configs = {{"no.such.key", "1"}};
  const mirror::Outcome unknown_key = world.create("n", "x");
  CHECK(unknown_key.error == error::invalid_config);
  CHECK(unknown_key.message.find("no.such.key") != std::string::npos);
  CHECK(first_error(world.run(c.stop_topics("none", {}))) == error::unknown_cluster_mirror);
  CHECK(first_error(world.run(c.resume_topics("m", {{"t"}, {}}))) ==
        error::mirror_topic_not_paused);
  CHECK(first_error(world.run(c.pause_topics("m", {{"zzz"}, {}}))) ==
        error::topic_not_in_cluster_mirror);
  CHECK(first_error(world.run(c.pause_topics("m", {{}, {"("}}))) ==
        error::invalid_regular_expression);
  world.run(c.stop_topics("m", {{"t"}, {}}));
  CHECK(first_error(world.run(c.pause_topics("m", {{"t"}, {}}))) ==
        error::mirror_topic_being_stopped);
}

TEST_CASE("a topic by name starts as soon as the source has it") {
  World world;
  world.boot();
  REQUIRE(world.create("m", "").ok());
  mirror::StartTopics start;
  start.names = {"late.topic"};
  CHECK(world.run(world.coordinator->start_topics("m", start)).outcome.ok());
  world.source.add_topic("lateXtopic", 1);
  world.source.add_topic("late.topic", 1);
  world.source.produce("late.topic", 0, 3);
  world.spin([&] { return world.target.topic("late.topic").has_value(); });
  world.await_lag_zero("late.topic", 0);
  CHECK_FALSE(world.target.topic("lateXtopic"));
}

TEST_CASE("a mirror that belongs to none, or another topic of the name, is shown as a conflict") {
  World world;
  world.source.add_topic("t", 1);
  world.target.add_ordinary_topic("t", base::Uuid{{std::byte{1}}}, 1);
  world.boot();
  REQUIRE(world.create("m", "t").ok());
  world.spin([&] {
    const auto all = world.run(world.coordinator->describe({}));
    return all.size() == 1 && all[0].topics.size() == 1 && all[0].topics[0].error_message;
  });
  CHECK(world.target.topic("t")->mirror.empty());
}

TEST_CASE("list and describe filter") {
  World world;
  world.copy_one();
  auto& c = *world.coordinator;
  REQUIRE(world.create("other", "none").ok());
  CHECK(world.run(c.list({})).size() == 2);
  mirror::ListFilter by_name;
  by_name.mirrors = {"m"};
  const auto listed = world.run(c.list(by_name));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].topics == std::vector<std::string>{"t"});
  CHECK(listed[0].source_cluster_id == "source-cluster-id");
  mirror::DescribeFilter unknown;
  unknown.mirrors = {"m", "gone"};
  const auto described = world.run(c.describe(unknown));
  REQUIRE(described.size() == 2);
  CHECK(described[1].outcome.error == error::unknown_cluster_mirror);
}

TEST_CASE("a state that cannot be written is written later, and nothing goes on before") {
  World world;
  world.copy_one();
  world.target.fail_state_appends = 3;
  world.run(world.coordinator->stop_topics("m", {}));
  world.await_state("t", 0, "STOPPED");
  CHECK(world.target.fail_state_appends == 0);
  CHECK(world.target.log("t", 0).resets == 1);
}

TEST_CASE("a topic that was deleted here and made anew between two syncs is copied anew") {
  World world;
  world.copy_one();
  world.run(world.coordinator->stop_topics("m", {{"t"}, {}}));
  world.await_state("t", 0, "STOPPED");
  const bool same_id = GENERATE(true, false);
  CAPTURE(same_id);
  if (!same_id) {
    world.source.topics.erase("t");
    world.source.add_topic("t", 1);
    world.source.produce("t", 0, 8);
  }
  world.target.remove_topic("t");
  REQUIRE(
      world.run(world.target.attach_topic("m", "t", world.source.topics["t"].id, 1)).has_value());
  world.await_lag_zero("t", 0);
  CHECK(world.same_bytes("t", 0));
  // What was known of the old one, that clients may write, was not applied to the new one.
  CHECK(std::ranges::count(world.target.log("t", 0).events, "allow") == 0);
  CHECK_FALSE(world.target.log("t", 0).writable);
  // Commands reach it.
  CHECK(world.run(world.coordinator->pause_topics("m", {})).outcome.ok());
  world.await_state("t", 0, "PAUSED");
  world.shut_down();
  world.boot();
  world.await_state("t", 0, "PAUSED");
}
