// Offsets committed in transactions: pending until the marker, then committed or gone.
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

constexpr std::int64_t retention_ms = std::int64_t{7} * 24 * 60 * 60 * 1000;
constexpr base::ProducerId ann = 1000, bob = 1001;

OffsetCommit staged_by(const Consumer& who) {
  OffsetCommit what;
  what.group = who.group;
  what.generation_or_epoch = who.generation;
  what.member_id = who.member_id;
  what.instance_id = who.instance_id;
  what.entries.push_back({"t", {}, 0, 42, 7, "note"});
  return what;
}

std::optional<base::Offset> committed(Coordinator& c, const std::string& group,
                                      const std::string& topic = "t", std::int32_t partition = 0) {
  const CommittedOffset* found = c.state().offsets().find(group, topic, partition);
  return found ? std::optional(found->offset) : std::nullopt;
}

bool is_pending(Coordinator& c, const std::string& group, const std::string& topic = "t",
                std::int32_t partition = 0) {
  return c.state().pending_offsets().has(group, topic, partition);
}

}  // namespace

TEST_CASE("an offset in a transaction counts once that has committed") {
  Coordinator c;
  CHECK(c.stage_one(ann, "g", 5) == ErrorCode::none);
  CHECK(!committed(c, "g"));
  CHECK(is_pending(c, "g"));
  CHECK(c.state().describe("g")->state == "Empty");
  c.restart();
  CHECK(!committed(c, "g"));
  CHECK(is_pending(c, "g"));
  CHECK(c.stage_one(ann, "g", 6) == ErrorCode::none);
  c.end_transaction(bob, true);  // another's
  CHECK(is_pending(c, "g"));
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 6);
  CHECK(c.state().offsets().find("g", "t", 0)->leader_epoch == 3);
  CHECK(!is_pending(c, "g"));
  c.end_transaction(ann, false);  // a marker that comes again, or of a transaction elsewhere
  c.restart();
  CHECK(committed(c, "g") == 6);
}

TEST_CASE("an offset in a transaction that is aborted was never there") {
  Coordinator c;
  c.commit_one("g", 1);
  c.stage_one(ann, "g", 5);
  c.stage_one(ann, "h", 5);
  c.end_transaction(ann, false);
  CHECK(committed(c, "g") == 1);
  CHECK(!committed(c, "h"));
  CHECK(c.state().pending_offsets() == PendingOffsets());
  c.compact();
  c.restart();
  CHECK(committed(c, "g") == 1);
  CHECK(!c.has("h"));
}

TEST_CASE("C14: a commit that came after the staged one stays, before and after a restart") {
  Coordinator c;
  c.stage_one(ann, "g", 5);
  c.commit_one("g", 7);
  SECTION("committed") {
    c.end_transaction(ann, true);
  }
  SECTION("committed, after a restart") {
    c.restart();
    c.end_transaction(ann, true);
  }
  SECTION("aborted") {
    c.end_transaction(ann, false);
  }
  CHECK(committed(c, "g") == 7);
  c.restart();
  CHECK(committed(c, "g") == 7);
  c.compact();
  c.restart();
  CHECK(committed(c, "g") == 7);
}

TEST_CASE("C14: of two transactions the later record counts, not the later marker") {
  Coordinator c;
  c.commit_one("g", 1);
  c.stage_one(ann, "g", 5);
  c.stage_one(bob, "g", 8);
  c.end_transaction(bob, true);
  CHECK(committed(c, "g") == 8);
  CHECK(is_pending(c, "g"));
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 8);
  c.compact();
  c.restart();
  CHECK(committed(c, "g") == 8);

  c.stage_one(ann, "g", 9);
  c.stage_one(bob, "g", 10);
  c.end_transaction(bob, false);
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 9);
  c.compact();
  c.restart();
  CHECK(committed(c, "g") == 9);
}

TEST_CASE("C14: nothing expires that a transaction is about to commit, nor its group") {
  Coordinator c;
  c.commit_one("g", 1);
  c.commit_one("g", 1, nullptr, "u");
  c.stage_one(ann, "g", 2);
  c.stage_one(ann, "only-pending", 2);
  c.pass(2 * retention_ms);
  c.clean();
  CHECK(committed(c, "g") == 1);
  CHECK(!committed(c, "g", "u"));
  CHECK(c.has("g"));
  CHECK(c.has("only-pending"));
  c.restart();
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 2);
  CHECK(committed(c, "only-pending") == 2);
  c.clean();  // their age counts from the commit, not from the marker
  CHECK(!c.has("g"));
  CHECK(!c.has("only-pending"));
}

TEST_CASE("C15: metadata that is too long leaves nothing behind, the rest is taken") {
  Coordinator c;
  OffsetCommit what;
  what.group = "g";
  what.entries.push_back({"t", {}, 0, 5, std::nullopt, std::string(5000, 'x')});
  what.entries.push_back({"t", {}, 1, 6, std::nullopt, std::string(4096, 'x')});
  CHECK(c.stage(ann, what) == std::vector{ErrorCode::offset_metadata_too_large, ErrorCode::none});
  CHECK(!is_pending(c, "g"));
  CHECK(is_pending(c, "g", "t", 1));
  c.end_transaction(ann, true);
  CHECK(c.state().pending_offsets() == PendingOffsets());
  CHECK(!committed(c, "g"));
  CHECK(committed(c, "g", "t", 1) == 6);

  what.entries.pop_back();
  const std::size_t written = c.log().size();
  CHECK(c.stage(ann, what) == std::vector{ErrorCode::offset_metadata_too_large});
  CHECK(c.log().size() == written);
}

TEST_CASE("a member commits in a transaction by its generation") {
  Coordinator c;
  Consumer a;
  a.instance_id = "i";
  c.settle(a);
  const auto error = [&](const OffsetCommit& what) { return c.stage(ann, what, 3).at(0); };
  CHECK(error(staged_by(a)) == ErrorCode::none);
  OffsetCommit what = staged_by(a);
  what.generation_or_epoch = a.generation + 1;
  CHECK(error(what) == ErrorCode::illegal_generation);
  what = staged_by(a);
  what.generation_or_epoch = -1;
  CHECK(error(what) == ErrorCode::illegal_generation);
  what = staged_by(a);
  what.member_id = "stranger";
  CHECK(error(what) == ErrorCode::fenced_instance_id);
  what.instance_id.reset();
  CHECK(error(what) == ErrorCode::unknown_member_id);
  what = staged_by(a);
  what.instance_id = "nobody";
  CHECK(error(what) == ErrorCode::unknown_member_id);
  what = staged_by(a);
  what.member_id.clear();
  what.instance_id.reset();
  CHECK(error(what) == ErrorCode::unknown_member_id);
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 42);
}

TEST_CASE("a producer that names no member is let through while the group lives") {
  Coordinator c;
  Consumer a, b;
  c.settle(a);
  CHECK(c.stage_one(ann, "g", 1) == ErrorCode::none);
  // ... and a member while others join, or wait for their assignment.
  const Ticket joins = c.begin_full_join(b);
  CHECK(c.stage(ann, staged_by(a)).at(0) == ErrorCode::none);
  c.take(a, c.begin_join(a));
  c.take(b, joins);
  REQUIRE(c.group().is_in(ClassicState::completing_rebalance));
  CHECK(c.stage(ann, staged_by(a)).at(0) == ErrorCode::none);
  CHECK(c.stage_one(ann, "g", 3) == ErrorCode::none);
}

TEST_CASE("a group that is not there is called so in a transaction from version 6 on") {
  Coordinator c;
  Consumer nobody;
  nobody.generation = 3;
  nobody.member_id = "m";
  CHECK(c.stage(ann, staged_by(nobody), 5).at(0) == ErrorCode::illegal_generation);
  CHECK(c.stage(ann, staged_by(nobody), 6).at(0) == ErrorCode::group_id_not_found);
  CHECK(!c.has("g"));
  // An error of all is that of partitions with bad metadata too.
  OffsetCommit what = staged_by(nobody);
  what.entries.push_back({"t", {}, 1, 5, std::nullopt, std::string(5000, 'x')});
  CHECK(c.stage(ann, what, 6) ==
        std::vector{ErrorCode::group_id_not_found, ErrorCode::group_id_not_found});
}

TEST_CASE("offsets that are deleted are so with what is pending") {
  Coordinator c;
  const auto all_gone = [&] {
    CHECK(c.state().pending_offsets() == PendingOffsets());
    c.end_transaction(ann, true);
    c.end_transaction(bob, true);
    CHECK(c.state().offsets().count() == 0);
    c.restart();
    CHECK(c.state().offsets().count() == 0);
  };
  c.commit_one("g", 1);
  c.stage_one(ann, "g", 2);
  c.stage_one(ann, "g", 2, "u");
  c.stage_one(bob, "g", 3, "u");
  SECTION("OffsetDelete") {
    const auto done = c.run(c.state().delete_offsets({"g", {{"t", {0}}, {"u", {0, 1}}}}));
    CHECK(done.topics == std::vector{ErrorCode::none, ErrorCode::none});
    all_gone();
  }
  SECTION("DeleteGroups") {
    CHECK(c.run(c.state().delete_group("g")) == ErrorCode::none);
    CHECK(!c.has("g"));
    all_gone();
    CHECK(!c.has("g"));
  }
  SECTION("the topics are deleted") {
    c.forget_topic("u");
    CHECK(is_pending(c, "g"));
    CHECK(!is_pending(c, "g", "u"));
    c.forget_topic("t");
    all_gone();
  }
  SECTION("what is staged afterwards counts") {
    c.run(c.state().delete_offsets({"g", {{"t", {0}}}}));
    c.stage_one(ann, "g", 4);
    c.end_transaction(ann, true);
    CHECK(committed(c, "g") == 4);
  }
}

TEST_CASE("a mirror does not touch a group that a transaction is about to commit offsets of") {
  Coordinator c;
  OffsetCommit what;
  what.group = "g";
  what.entries.push_back({"t", {}, 0, 90, 7, ""});
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  c.stage_one(ann, "g", 95);
  what.entries[0].offset = 91;
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::non_empty_group);
  CHECK(committed(c, "g") == 90);
  c.end_transaction(ann, true);
  CHECK(committed(c, "g") == 95);
  what.entries[0].offset = 96;
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  CHECK(committed(c, "g") == 96);
  const std::size_t written = c.log().size();
  CHECK(c.run(c.state().commit_mirrored(what, c.now())) == ErrorCode::none);
  CHECK(c.log().size() == written);
}

TEST_CASE("offsets of many groups and topics are staged by one producer") {
  Coordinator c;
  for (const char* group : {"g", "h", "i"})
    for (const char* topic : {"t", "u"})
      CHECK(c.stage_one(ann, group, 5, topic) == ErrorCode::none);
  c.commit_one("h", 6, nullptr, "u");
  c.restart();
  c.end_transaction(ann, true);
  CHECK(c.state().offsets().count() == 6);
  CHECK(committed(c, "h", "u") == 6);
  CHECK(committed(c, "i", "u") == 5);
}
