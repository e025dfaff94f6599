// SyncGroup, Heartbeat, LeaveGroup, sessions, and what is shown of a group.
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

ErrorCode sync_error(Coordinator& c, const Consumer& who) {
  const SyncReply* reply = c.synced(c.begin_sync(who));
  return reply ? reply->error : ErrorCode::none;
}

// Two members in a generation without an assignment; `a` leads.
void join_two(Coordinator& c, Consumer& a, Consumer& b) {
  const Ticket first = c.begin_full_join(a);
  const Ticket second = c.begin_full_join(b);
  c.pass(6000);
  c.take(a, first);
  c.take(b, second);
}

}  // namespace

TEST_CASE("everybody is told their own assignment, and who was left out an empty one") {
  Coordinator c;
  Consumer a, b;
  join_two(c, a, b);
  const Ticket waits = c.begin_sync(b);
  const Ticket leads = c.begin_sync(a, {{a.member_id, "mine"}, {"stranger", "x"}});
  REQUIRE(c.synced(leads));
  CHECK(text(c.synced(leads)->assignment) == "mine");
  CHECK(c.synced(leads)->protocol_type == "consumer");
  CHECK(c.synced(leads)->protocol_name == "range");
  REQUIRE(c.synced(waits));
  CHECK(c.synced(waits)->assignment.empty());
  // Again, and late: what is there.
  const Ticket again = c.begin_sync(a);
  REQUIRE(c.synced(again));
  CHECK(text(c.synced(again)->assignment) == "mine");
}

TEST_CASE("a sync that is wrong is told so") {
  Coordinator c;
  Consumer a;
  CHECK(sync_error(c, a) == ErrorCode::unknown_member_id);
  a.group = "";
  CHECK(sync_error(c, a) == ErrorCode::invalid_group_id);
  a.group = "g";
  c.settle(a);
  Consumer wrong = a;
  wrong.member_id = "stranger";
  CHECK(sync_error(c, wrong) == ErrorCode::unknown_member_id);
  wrong = a;
  wrong.generation = 7;
  CHECK(sync_error(c, wrong) == ErrorCode::illegal_generation);
  Consumer b;
  c.begin_full_join(b);
  CHECK(sync_error(c, a) == ErrorCode::rebalance_in_progress);
}

TEST_CASE("a sync that speaks of another protocol is refused") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  protocol::SyncGroupRequest asked;
  asked.group_id = "g";
  asked.member_id = a.member_id;
  asked.generation_id = a.generation;
  const auto error_of = [&] {
    const Decision out = c.state().sync(asked, 999, c.now());
    return std::get<SyncReply>(out.replies.at(0).answer).error;
  };
  CHECK(error_of() == ErrorCode::none);
  asked.protocol_type = "connect";
  CHECK(error_of() == ErrorCode::inconsistent_group_protocol);
  asked.protocol_type = "consumer";
  asked.protocol_name = "sticky";
  CHECK(error_of() == ErrorCode::inconsistent_group_protocol);
  asked.protocol_name = "range";
  CHECK(error_of() == ErrorCode::none);
}

TEST_CASE("who waits for the assignment is told when the group begins anew") {
  Coordinator c;
  Consumer a, b, d;
  join_two(c, a, b);
  const Ticket waits = c.begin_sync(b);
  c.begin_full_join(d);
  REQUIRE(c.synced(waits));
  CHECK(c.synced(waits)->error == ErrorCode::rebalance_in_progress);
}

TEST_CASE("a second sync of a member that waits takes the place of the first") {
  Coordinator c;
  Consumer a, b;
  join_two(c, a, b);
  const Ticket first = c.begin_sync(b);
  const Ticket second = c.begin_sync(b);
  REQUIRE(c.synced(first));
  CHECK(c.synced(first)->error == ErrorCode::rebalance_in_progress);
  CHECK(!c.synced(second));
  c.begin_sync(a, {{b.member_id, "two"}});
  REQUIRE(c.synced(second));
  CHECK(text(c.synced(second)->assignment) == "two");
}

TEST_CASE("who does not ask for the assignment in time is dropped") {
  Coordinator c;
  Consumer a, b;
  a.session_ms = b.session_ms = 100'000;
  join_two(c, a, b);
  c.begin_sync(a, {{a.member_id, "one"}, {b.member_id, "two"}});
  CHECK(c.group().is_in(ClassicState::stable));
  c.pass(59'999);
  CHECK(c.group().is_in(ClassicState::stable));
  c.pass(1);
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
  CHECK(!c.group().find(b.member_id));
}

TEST_CASE("a leader that does not assign is replaced") {
  Coordinator c;
  Consumer a, b;
  join_two(c, a, b);
  const Ticket waits = c.begin_sync(b);
  c.pass(10'000);  // the leader's session
  REQUIRE(c.synced(waits));
  CHECK(c.synced(waits)->error == ErrorCode::rebalance_in_progress);
  const Ticket rejoins = c.begin_join(b);
  CHECK(c.take(b, rejoins).leader == b.member_id);
}

TEST_CASE("a heartbeat that is wrong is told so") {
  Coordinator c;
  Consumer a;
  CHECK(c.heartbeat(a) == ErrorCode::unknown_member_id);
  c.settle(a);
  Consumer wrong = a;
  wrong.generation = 5;
  CHECK(c.heartbeat(wrong) == ErrorCode::illegal_generation);
  wrong.member_id = "stranger";
  CHECK(c.heartbeat(wrong) == ErrorCode::unknown_member_id);
  wrong.group = "";
  CHECK(c.heartbeat(wrong) == ErrorCode::invalid_group_id);
  CHECK(c.heartbeat(a) == ErrorCode::none);
}

TEST_CASE("heartbeats and commits keep a session, silence ends it") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  for (int i = 0; i < 5; ++i) {
    c.pass(9'000);
    if (i % 2)
      CHECK(c.heartbeat(a) == ErrorCode::none);
    else
      CHECK(c.commit_one("g", i, &a) == ErrorCode::none);
  }
  c.pass(9'999);
  CHECK(c.group().members().size() == 1);
  c.pass(1);
  CHECK(c.group().is_in(ClassicState::empty));
  CHECK(c.group().generation == 2);
  CHECK(c.heartbeat(a) == ErrorCode::unknown_member_id);
}

TEST_CASE("sessions begin anew with a restart") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.pass(9'000);
  c.restart();
  CHECK(c.group().is_in(ClassicState::stable));
  c.pass(9'999);
  CHECK(c.heartbeat(a) == ErrorCode::none);
  const SyncReply* known = c.synced(c.begin_sync(a));
  REQUIRE(known);
  CHECK(text(known->assignment) == "all");
  c.restart();
  c.pass(10'000);
  CHECK(c.group().is_in(ClassicState::empty));
}

TEST_CASE("who leaves is gone at once, and the others begin anew") {
  Coordinator c;
  Consumer a, b;
  join_two(c, a, b);
  c.begin_sync(a, {});
  CHECK(c.leave("g", "stranger") == ErrorCode::unknown_member_id);
  CHECK(c.leave("nobody", a.member_id) == ErrorCode::unknown_member_id);
  CHECK(c.leave("", a.member_id) == ErrorCode::invalid_group_id);
  CHECK(c.leave("g", a.member_id) == ErrorCode::none);
  CHECK(c.leave("g", a.member_id) == ErrorCode::unknown_member_id);
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
  CHECK(c.heartbeat(b) == ErrorCode::rebalance_in_progress);
  CHECK(c.leave("g", b.member_id) == ErrorCode::none);
  CHECK(c.group().is_in(ClassicState::empty));
  CHECK(c.group().protocol_type == "consumer");
  CHECK(!c.group().protocol);
}

TEST_CASE("who leaves while its join waits is answered") {
  Coordinator c;
  Consumer a;
  const Ticket waits = c.begin_full_join(a);
  CHECK(c.leave("g", a.member_id) == ErrorCode::none);
  REQUIRE(c.joined(waits));
  CHECK(c.joined(waits)->error == ErrorCode::unknown_member_id);
  c.pass(3000);
  CHECK(c.group().is_in(ClassicState::empty));
}

TEST_CASE("who was told an id may leave before it joins") {
  Coordinator c;
  Consumer a;
  const std::string id = c.joined(c.begin_join(a))->member_id;
  CHECK(c.leave("g", id) == ErrorCode::none);
  a.member_id = id;
  const JoinReply* late = c.joined(c.begin_join(a));
  REQUIRE(late);
  CHECK(late->error == ErrorCode::unknown_member_id);
}

TEST_CASE("a group is described by its state, and in full when it is stable") {
  Coordinator c;
  CHECK(!c.state().describe("g"));
  Consumer a;
  const Ticket ticket = c.begin_full_join(a);
  CHECK(c.state().describe("g")->state == "PreparingRebalance");
  c.pass(3000);
  c.take(a, ticket);
  auto seen = c.state().describe("g");
  CHECK(seen->state == "CompletingRebalance");
  CHECK(seen->protocol.empty());
  REQUIRE(seen->members.size() == 1);
  CHECK(seen->members[0].metadata.empty());
  c.begin_sync(a, {{a.member_id, "all"}});
  seen = c.state().describe("g");
  CHECK(seen->state == "Stable");
  CHECK(seen->protocol_type == "consumer");
  CHECK(seen->protocol == "range");
  CHECK(seen->members[0].metadata == a.protocols[0].second);
  CHECK(text(seen->members[0].assignment) == "all");
  CHECK(seen->members[0].client_host == "/127.0.0.1");
  c.leave("g", a.member_id);
  CHECK(c.state().describe("g")->state == "Empty");
}

TEST_CASE("groups are listed by state and type, whatever the case of the letters") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  c.commit_one("simple", 1);
  const auto names = [&](const std::vector<std::string>& states,
                         const std::vector<std::string>& types) {
    std::string all;
    for (const ListedGroup& one : c.state().list(states, types)) all += one.id + " ";
    return all;
  };
  CHECK(names({}, {}) == "g simple ");
  CHECK(names({"stable"}, {}) == "g ");
  CHECK(names({" EMPTY ", "Dead"}, {}) == "simple ");
  CHECK(names({}, {"CLASSIC"}) == "g simple ");
  CHECK(names({}, {"consumer"}).empty());
  const auto listed = c.state().list({}, {});
  CHECK(listed[0].protocol_type == "consumer");
  CHECK(listed[0].type == "classic");
  CHECK(listed[1].protocol_type.empty());
}

TEST_CASE("an assignment that fits into no record is not kept") {
  Limits limits;
  limits.record_bytes_max = 1000;
  Coordinator c(limits);
  Consumer a;
  const Ticket ticket = c.begin_full_join(a);
  c.pass(3000);
  c.take(a, ticket);
  const Ticket sync = c.begin_sync(a, {{a.member_id, std::string(2000, 'x')}});
  REQUIRE(c.synced(sync));
  CHECK(c.synced(sync)->error == ErrorCode::unknown_server_error);
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
}

TEST_CASE("a state that is given up tells everybody who waits") {
  Coordinator c;
  Consumer a, b, d;
  join_two(c, a, b);
  c.begin_sync(b);
  Consumer other;
  other.group = "other";
  c.begin_full_join(other);
  const auto replies = c.state().abandon(ErrorCode::not_coordinator);
  CHECK(replies.size() == 2);
  CHECK(c.state().abandon(ErrorCode::not_coordinator).empty());
}
