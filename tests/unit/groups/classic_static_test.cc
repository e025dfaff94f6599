// Members with an instance id, which keep their place over a restart.
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

Consumer named(const std::string& instance) {
  Consumer who;
  who.instance_id = instance;
  return who;
}

// Both in one stable generation; `a` leads.
struct TwoStatic {
  Coordinator c;
  Consumer a = named("a"), b = named("b");
  TwoStatic() {
    const Ticket first = c.begin_join(a);
    const Ticket second = c.begin_join(b);
    c.pass(6000);
    c.take(a, first);
    c.take(b, second);
    c.begin_sync(a, {{a.member_id, "one"}, {b.member_id, "two"}});
    c.begin_sync(b);
  }
};

}  // namespace

TEST_CASE("a static member joins at once, under an id made of its instance id") {
  Coordinator c;
  Consumer a = named("inst");
  const Ticket ticket = c.begin_join(a);
  CHECK(!c.joined(ticket));
  c.pass(3000);
  c.take(a, ticket);
  CHECK(a.member_id.starts_with("inst-"));
}

TEST_CASE("a static member that comes back has its assignment, without a rebalance") {
  TwoStatic two;
  Consumer again = named("b");
  const Ticket ticket = two.c.begin_join(again);
  const JoinReply& reply = two.c.take(again, ticket);
  CHECK(again.member_id != two.b.member_id);
  CHECK(reply.generation == 1);
  CHECK(!reply.skip_assignment);
  CHECK(reply.members.empty());
  CHECK(two.c.group().is_in(ClassicState::stable));
  CHECK(text(two.c.synced(two.c.begin_sync(again))->assignment) == "two");
  CHECK(two.c.heartbeat(two.a) == ErrorCode::none);
  // The one before is fenced.
  CHECK(two.c.heartbeat(two.b) == ErrorCode::fenced_instance_id);
  CHECK(two.c.synced(two.c.begin_sync(two.b))->error == ErrorCode::fenced_instance_id);
  CHECK(two.c.joined(two.c.begin_join(two.b))->error == ErrorCode::fenced_instance_id);
  CHECK(two.c.commit_one("g", 5, &two.b) == ErrorCode::fenced_instance_id);
  CHECK(two.c.leave("g", two.b.member_id, "b") == ErrorCode::fenced_instance_id);
  // It is still known after a restart.
  two.c.restart();
  CHECK(two.c.heartbeat(again) == ErrorCode::none);
}

TEST_CASE("a static leader that comes back is told not to assign") {
  TwoStatic two;
  Consumer again = named("a");
  JoinReply reply = two.c.take(again, two.c.begin_join(again));
  CHECK(reply.skip_assignment);
  CHECK(reply.leader == again.member_id);
  CHECK(reply.members.size() == 2);
  // An older one is told that it does not lead.
  Consumer older = named("a");
  older.version = 8;
  reply = two.c.take(older, two.c.begin_join(older));
  CHECK(!reply.skip_assignment);
  CHECK(reply.leader == again.member_id);
  CHECK(reply.members.empty());
  CHECK(two.c.group().is_leader(older.member_id));
}

TEST_CASE("a static member that comes back with another protocol makes the group begin anew") {
  TwoStatic two;
  Consumer again = named("b");
  again.protocols = {{"sticky", bytes("s")}, {"range", subscription({"t"})}};
  const Ticket ticket = two.c.begin_join(again);
  CHECK(two.c.joined(ticket));  // both would still vote for range: one each
  Coordinator c;
  Consumer alone = named("x");
  alone.protocols = {{"range", subscription({"t"})}, {"sticky", bytes("s")}};
  c.settle(alone);
  Consumer changed = named("x");
  changed.protocols = {{"sticky", bytes("s")}};
  const Ticket changes = c.begin_join(changed);
  CHECK(c.take(changed, changes).generation == 2);
  CHECK(c.group().protocol == "sticky");
}

TEST_CASE("what the latest join says of timeouts holds") {
  TwoStatic two;
  Consumer again = named("b");  // C07
  again.session_ms = 6000;
  again.rebalance_ms = 7000;
  two.c.take(again, two.c.begin_join(again));
  two.c.pass(6000);
  CHECK(!two.c.group().find(again.member_id));
  CHECK(two.c.group().is_in(ClassicState::preparing_rebalance));
}

TEST_CASE("a static member that comes back between join and sync makes the group begin anew") {
  Coordinator c;
  Consumer a = named("a"), b = named("b");
  const Ticket first = c.begin_join(a);
  const Ticket second = c.begin_join(b);
  c.pass(6000);
  c.take(a, first);
  c.take(b, second);
  const Ticket waits = c.begin_sync(b);
  Consumer again = named("b");  // C05
  const Ticket rejoins = c.begin_join(again);
  REQUIRE(c.synced(waits));
  CHECK(c.synced(waits)->error == ErrorCode::fenced_instance_id);
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
  const Ticket leads = c.begin_join(a);
  CHECK(c.take(a, leads).generation == 2);
  CHECK(c.take(again, rejoins).generation == 2);
  c.begin_sync(a, {{again.member_id, "two"}});
  CHECK(text(c.synced(c.begin_sync(again))->assignment) == "two");
}

TEST_CASE("a duplicate of a static member that joins is fenced") {
  Coordinator c;
  Consumer a = named("a");
  const Ticket first = c.begin_join(a);
  Consumer twin = named("a");
  const Ticket second = c.begin_join(twin);
  REQUIRE(c.joined(first));
  CHECK(c.joined(first)->error == ErrorCode::fenced_instance_id);
  c.pass(3000);
  c.take(twin, second);
  CHECK(c.group().members().size() == 1);
}

TEST_CASE("static members that are silent are waited for until their session ends") {
  TwoStatic two;
  Consumer fresh;
  fresh.session_ms = 300'000;
  const Ticket joins = two.c.begin_full_join(fresh);
  two.c.pass(9'000);
  CHECK(!two.c.joined(joins));
  two.c.pass(1'000);
  CHECK(two.c.take(fresh, joins).members.size() == 1);
}

TEST_CASE("a rebalance goes on without static members, and they keep their place") {
  TwoStatic two;
  Consumer fresh;
  fresh.rebalance_ms = 60'000;
  const Ticket joins = two.c.begin_full_join(fresh);
  for (int i = 0; i < 12; ++i) {
    two.c.heartbeat(two.a);
    two.c.heartbeat(two.b);
    two.c.pass(5'000);
  }
  const JoinReply& reply = two.c.take(fresh, joins);
  CHECK(reply.members.size() == 3);
  CHECK(reply.leader == fresh.member_id);
}

TEST_CASE("without anybody who joins the group waits for static members") {
  TwoStatic two;
  Consumer passing;
  const Ticket joins = two.c.begin_full_join(passing);
  CHECK(two.c.leave("g", passing.member_id) == ErrorCode::none);
  REQUIRE(two.c.joined(joins));
  for (int i = 0; i < 20; ++i) {
    two.c.heartbeat(two.a);
    two.c.heartbeat(two.b);
    two.c.pass(5'000);
  }
  CHECK(two.c.group().is_in(ClassicState::preparing_rebalance));
  two.c.pass(10'000);  // both sessions
  CHECK(two.c.group().is_in(ClassicState::empty));
}

TEST_CASE("an administrator removes a static member by its instance id") {
  TwoStatic two;
  CHECK(two.c.leave("g", "", "nobody") == ErrorCode::unknown_member_id);
  CHECK(two.c.leave("g", "") == ErrorCode::unknown_member_id);
  CHECK(two.c.leave("g", "", "b") == ErrorCode::none);
  CHECK(two.c.group().members().size() == 1);
  CHECK(two.c.heartbeat(two.b) == ErrorCode::unknown_member_id);
}

TEST_CASE("a member that was told an id may not take an instance id with it") {
  Coordinator c;
  Consumer a;
  a.member_id = c.joined(c.begin_join(a))->member_id;
  a.instance_id = "a";
  CHECK(c.joined(c.begin_join(a))->error == ErrorCode::unknown_server_error);
}
