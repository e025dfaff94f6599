// Committed offsets: who may commit, what is kept, when it goes.
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

constexpr std::int64_t day_ms = std::int64_t{24} * 60 * 60 * 1000;

OffsetCommit commit_of(const std::string& group, std::int32_t generation = -1,
                       const std::string& member = {}) {
  OffsetCommit what;
  what.group = group;
  what.generation_or_epoch = generation;
  what.member_id = member;
  what.entries.push_back({"t", {}, 0, 42, 7, "note"});
  return what;
}

}  // namespace

TEST_CASE("a consumer without a group commits, and finds it after a restart") {
  Coordinator c;
  OffsetCommit what = commit_of("simple");
  what.entries.push_back({"u", {}, 3, 1, std::nullopt, ""});
  CHECK(c.commit(what) == std::vector{ErrorCode::none, ErrorCode::none});
  c.restart();
  const CommittedOffset* found = c.state().offsets().find("simple", "t", 0);
  REQUIRE(found);
  CHECK(found->offset == 42);
  CHECK(found->leader_epoch == 7);
  CHECK(found->metadata == "note");
  CHECK(found->commit_timestamp_ms == c.now().wall_ms);
  found = c.state().offsets().find("simple", "u", 3);
  REQUIRE(found);
  CHECK(!found->leader_epoch);
  CHECK(!c.state().offsets().find("simple", "t", 1));
  CHECK(c.state().describe("simple")->state == "Empty");
  CHECK(c.state().describe("simple")->protocol_type.empty());
}

TEST_CASE("a member commits in its generation") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  CHECK(c.commit_one("g", 1, &a) == ErrorCode::none);
  CHECK(c.commit(commit_of("g", 7, a.member_id)).at(0) == ErrorCode::illegal_generation);
  CHECK(c.commit(commit_of("g", 1, "stranger")).at(0) == ErrorCode::unknown_member_id);
  CHECK(c.commit(commit_of("g", -1, a.member_id)).at(0) == ErrorCode::illegal_generation);
  CHECK(c.commit(commit_of("g", 1, "")).at(0) == ErrorCode::unknown_member_id);
  // From outside, while the group lives.
  CHECK(c.commit(commit_of("g")).at(0) == ErrorCode::unknown_member_id);
  OffsetCommit named = commit_of("g", 1, a.member_id);
  named.instance_id = "nobody";
  CHECK(c.commit(named).at(0) == ErrorCode::unknown_member_id);
  CHECK(c.state().offsets().find("g", "t", 0)->offset == 1);
  // While others join it may still write down how far it came, but not in the next generation.
  Consumer b;
  const Ticket joins = c.begin_full_join(b);
  CHECK(c.commit_one("g", 2, &a) == ErrorCode::none);
  c.take(a, c.begin_join(a));
  c.take(b, joins);
  CHECK(c.commit_one("g", 3, &a) == ErrorCode::rebalance_in_progress);
}

TEST_CASE("from outside an empty group takes commits, whoever they say they are from") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.leave("g", a.member_id);
  CHECK(c.commit(commit_of("g")).at(0) == ErrorCode::none);
  OffsetCommit named = commit_of("g");  // C09
  named.instance_id = "instance";
  CHECK(c.commit(named).at(0) == ErrorCode::none);
  CHECK(c.commit(commit_of("g", -1, "someone")).at(0) == ErrorCode::none);
  CHECK(c.commit(commit_of("g", 2, "someone")).at(0) == ErrorCode::unknown_member_id);
}

TEST_CASE("a group that is not there is called so from version 9 on") {
  Coordinator c;
  CHECK(c.commit(commit_of("no", 3, "m"), 8).at(0) == ErrorCode::illegal_generation);
  CHECK(c.commit(commit_of("no", 3, "m"), 9).at(0) == ErrorCode::group_id_not_found);
  CHECK(!c.has("no"));
}

TEST_CASE("metadata that is too long is refused, the rest is kept") {
  Coordinator c;
  OffsetCommit what = commit_of("g");
  what.entries.push_back({"t", {}, 1, 5, std::nullopt, std::string(4097, 'x')});
  what.entries.push_back({"t", {}, 2, 5, std::nullopt, std::string(4096, 'x')});
  CHECK(c.commit(what) ==
        std::vector{ErrorCode::none, ErrorCode::offset_metadata_too_large, ErrorCode::none});
  CHECK(!c.state().offsets().find("g", "t", 1));
  CHECK(c.state().offsets().count() == 2);
}

TEST_CASE("offsets of a group expire so long after it became empty") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.commit_one("g", 1, &a);
  for (int day = 0; day < 10; ++day) {
    for (int i = 0; i < 24 * 60 * 10; ++i) {
      if (i % 100) continue;
      c.heartbeat(a);
    }
    c.pass(9'000);
    c.clean();
  }
  c.pass(10'000);
  CHECK(c.group().is_in(ClassicState::empty));
  c.pass(7 * day_ms - 10'000);
  c.clean();
  CHECK(c.state().offsets().find("g", "t", 0));
  c.pass(10'000);
  c.clean();
  CHECK(!c.state().offsets().find("g", "t", 0));
  CHECK(!c.has());
  c.restart();
  CHECK(!c.has());
}

TEST_CASE("nothing expires while a group rebalances, or what it consumes") {
  Coordinator c;
  Consumer a;
  a.session_ms = 1'800'000;
  c.settle(a);
  c.commit_one("g", 1, &a);
  c.commit_one("g", 1, &a, "other");
  // The clock on the wall alone: sessions are not touched.
  Now later = c.now();
  later.wall_ms += 8 * day_ms;
  Decision decided = c.state().clean(later);
  REQUIRE(decided.records.size() == 1);  // "other" is not subscribed to any more
  Consumer b;
  c.begin_full_join(b);
  CHECK(c.state().clean(later).records.empty());  // C01
}

TEST_CASE("offsets of a consumer without a group expire one by one") {
  Coordinator c;
  c.commit_one("simple", 1, nullptr, "early");
  c.pass(3 * day_ms);
  c.commit_one("simple", 1, nullptr, "late");
  c.pass(4 * day_ms);
  c.clean();
  CHECK(!c.state().offsets().find("simple", "early", 0));
  CHECK(c.state().offsets().find("simple", "late", 0));
  CHECK(c.has("simple"));
  c.pass(3 * day_ms);
  c.clean();
  CHECK(!c.has("simple"));
}

TEST_CASE("an offset with a retention of its own keeps to it") {
  Coordinator c;
  OffsetCommit what = commit_of("simple");
  what.retention_ms = 1000;
  c.commit(what, 4);
  c.commit_one("simple", 1, nullptr, "other");
  c.restart();
  c.pass(999);
  c.clean();
  CHECK(c.state().offsets().count() == 2);
  c.pass(1);
  c.clean();
  CHECK(!c.state().offsets().find("simple", "t", 0));
  CHECK(c.state().offsets().count() == 1);
}

TEST_CASE("a group without offsets goes when it is empty, one with members stays") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.clean();
  CHECK(c.has());
  c.leave("g", a.member_id);
  c.clean();
  CHECK(!c.has());
}

TEST_CASE("a deleted group is gone for good, with its offsets") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.commit_one("g", 1, &a);
  CHECK(c.run(c.state().delete_group("no")) == ErrorCode::group_id_not_found);
  CHECK(c.run(c.state().delete_group("g")) == ErrorCode::non_empty_group);
  c.leave("g", a.member_id);
  CHECK(c.run(c.state().delete_group("g")) == ErrorCode::none);
  CHECK(!c.has());
  c.restart();  // C10
  CHECK(!c.has());
  CHECK(c.state().offsets().count() == 0);
  CHECK(c.run(c.state().delete_group("g")) == ErrorCode::group_id_not_found);
}

TEST_CASE("offsets are deleted of topics that the group does not consume") {
  Coordinator c;
  CHECK(c.run(c.state().delete_offsets({"g", {{"t", {0}}}})).error ==
        ErrorCode::group_id_not_found);
  Consumer a;
  c.settle(a);
  c.commit_one("g", 1, &a);
  c.commit_one("g", 1, &a, "other");
  const auto both = c.run(c.state().delete_offsets({"g", {{"t", {0}}, {"other", {0, 5}}}}));
  CHECK(both.topics == std::vector{ErrorCode::group_subscribed_to_topic, ErrorCode::none});
  CHECK(c.state().offsets().find("g", "t", 0));
  CHECK(!c.state().offsets().find("g", "other", 0));
  c.leave("g", a.member_id);
  CHECK(c.run(c.state().delete_offsets({"g", {{"t", {0}}}})).topics[0] == ErrorCode::none);
  CHECK(c.state().offsets().count() == 0);

  Consumer worker;
  worker.group = "connect";
  worker.protocol_type = "connect";
  c.settle(worker);
  CHECK(c.run(c.state().delete_offsets({"connect", {{"t", {0}}}})).error ==
        ErrorCode::non_empty_group);
}

TEST_CASE("offsets of a topic that is deleted go") {
  Coordinator c;
  c.commit_one("one", 1, nullptr, "t");
  c.commit_one("one", 1, nullptr, "u");
  c.commit_one("two", 1, nullptr, "t");
  c.forget_topic("t");
  CHECK(c.state().offsets().count() == 1);
  CHECK(c.state().offsets().find("one", "u", 0));
}

TEST_CASE("a mirror's offsets are kept as they came, unless the group lives here") {
  Coordinator c;
  OffsetCommit what = commit_of("g");
  what.entries[0].commit_timestamp_ms = 12345;
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  CHECK(c.state().offsets().find("g", "t", 0)->commit_timestamp_ms == 12345);
  CHECK(c.state().offsets().find("g", "t", 0)->leader_epoch == 7);
  // The same again is not written again.
  const std::size_t written = c.log().size();
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  what.entries[0].commit_timestamp_ms.reset();
  const Now later = {c.now().monotonic_ms, c.now().wall_ms + 1000};
  CHECK(c.run(c.state().commit_mirrored(what, later)) == ErrorCode::none);
  CHECK(c.log().size() == written);
  what.entries[0].offset = 50;
  CHECK(c.run(c.state().commit_mirrored(what, later)) == ErrorCode::none);
  CHECK(c.state().offsets().find("g", "t", 0)->commit_timestamp_ms == later.wall_ms);

  Consumer a;
  c.begin_join(a);  // was told an id
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::non_empty_group);
  c.pass(10'000);
  c.settle(a);
  what.entries[0].offset = 99;
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::non_empty_group);
  CHECK(c.state().offsets().find("g", "t", 0)->offset == 50);
  c.leave("g", a.member_id);
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  CHECK(c.state().offsets().find("g", "t", 0)->offset == 99);
}
