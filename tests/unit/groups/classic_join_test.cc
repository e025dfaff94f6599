// JoinGroup: how a group comes to its next generation.
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

struct Two {
  Coordinator c;
  Consumer a, b;
  Two() { settle(); }
  // Both in generation 2, `a` leads.
  void settle() {
    c.settle(a);
    const Ticket joins = c.begin_full_join(b);
    const Ticket rejoins = c.begin_join(a);
    c.take(a, rejoins);
    c.take(b, joins);
    const Ticket waits = c.begin_sync(b);
    CHECK(!c.synced(waits));
    c.begin_sync(a, {{a.member_id, "one"}, {b.member_id, "two"}});
    REQUIRE(c.synced(waits));
    CHECK(text(c.synced(waits)->assignment) == "two");
  }
};

ErrorCode join_error(Coordinator& c, const Consumer& who) {
  const JoinReply* reply = c.joined(c.begin_join(who));
  return reply ? reply->error : ErrorCode::none;
}

}  // namespace

TEST_CASE("a new member is told its id first, from version 4 on") {
  Coordinator c;
  Consumer who;
  const JoinReply* told = c.joined(c.begin_join(who));
  REQUIRE(told);
  CHECK(told->error == ErrorCode::member_id_required);
  CHECK(told->member_id.starts_with("client-"));
  CHECK(told->member_id.size() == std::string("client-").size() + 36);
  CHECK(c.group().is_in(ClassicState::empty));
  who.member_id = told->member_id;
  const Ticket ticket = c.begin_join(who);
  CHECK(!c.joined(ticket));
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
}

TEST_CASE("an older member joins at once") {
  for (std::int16_t version = 0; version <= 3; ++version) {
    Coordinator c;
    Consumer who;
    who.version = version;
    const Ticket ticket = c.begin_join(who);
    CHECK(!c.joined(ticket));
    // Version 0 has no rebalance timeout: it is the session's.
    CHECK(c.group().rebalance_timeout_ms() == (version == 0 ? who.session_ms : who.rebalance_ms));
    c.pass(3000);
    const JoinReply& reply = c.take(who, ticket);
    CHECK(reply.generation == 1);
    CHECK(reply.leader == who.member_id);
    CHECK(reply.protocol_type == "consumer");
    CHECK(reply.protocol_name == "range");
    REQUIRE(reply.members.size() == 1);
    CHECK(reply.members[0].member_id == who.member_id);
    CHECK(c.group().is_in(ClassicState::completing_rebalance));
  }
}

TEST_CASE("the initial delay is lengthened while members come, up to the rebalance timeout") {
  Coordinator c;
  std::vector<Consumer> all(4);
  std::vector<Ticket> tickets;
  for (Consumer& one : all) {
    one.rebalance_ms = 8000;
    tickets.push_back(c.begin_full_join(one));
    c.pass(1990);
  }
  // 3000, 6000, then what is left of 8000.
  CHECK(!c.joined(tickets[0]));
  c.pass(8000 - 4 * 1990 - 1);
  CHECK(!c.joined(tickets[0]));
  c.pass(1);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(c.take(all[i], tickets[i]).generation == 1);
}

TEST_CASE("members that join and go on share the generation and have one leader") {
  Two two;
  CHECK(two.a.generation == 2);
  CHECK(two.b.generation == 2);
  CHECK(two.c.group().is_leader(two.a.member_id));
  CHECK(two.c.group().is_in(ClassicState::stable));
  CHECK(two.c.heartbeat(two.a) == ErrorCode::none);
  CHECK(two.c.heartbeat(two.b) == ErrorCode::none);
}

TEST_CASE("a rebalance waits for those who are in, and drops who does not come in time") {
  Two two;
  Consumer late;
  const Ticket joins = two.c.begin_full_join(late);
  CHECK(two.c.heartbeat(two.a) == ErrorCode::rebalance_in_progress);
  const Ticket rejoins = two.c.begin_join(two.a);
  for (int i = 0; i < 12; ++i) {
    CHECK(!two.c.joined(joins));
    CHECK(two.c.heartbeat(two.b) == ErrorCode::rebalance_in_progress);  // alive, and does not join
    two.c.pass(5000);
  }
  CHECK(two.c.take(late, joins).generation == 3);
  CHECK(two.c.take(two.a, rejoins).members.size() == 2);
  CHECK(two.c.heartbeat(two.b) == ErrorCode::unknown_member_id);
}

TEST_CASE("another leads when the leader does not join again") {
  Two two;
  const Ticket rejoins = two.c.begin_join([&] {
    Consumer changed = two.b;
    changed.protocols = {{"range", subscription({"t", "u"})}};
    return changed;
  }());
  CHECK(!two.c.joined(rejoins));
  two.c.pass(10'000);  // the leader's session
  const JoinReply& reply = two.c.take(two.b, rejoins);
  CHECK(reply.leader == two.b.member_id);
  CHECK(reply.members.size() == 1);
}

TEST_CASE("a member that joins again and has not changed is told of the generation that is there") {
  Two two;
  const JoinReply* follower = two.c.joined(two.c.begin_join(two.b));
  REQUIRE(follower);
  CHECK(follower->generation == 2);
  CHECK(follower->members.empty());
  CHECK(two.c.group().is_in(ClassicState::stable));
  // The leader may know reasons that its subscription does not show.
  CHECK(!two.c.joined(two.c.begin_join(two.a)));
  CHECK(two.c.group().is_in(ClassicState::preparing_rebalance));
}

TEST_CASE("a join that got lost is answered again before the assignment is there") {
  Coordinator c;
  Consumer a;
  const Ticket ticket = c.begin_full_join(a);
  c.pass(3000);
  c.take(a, ticket);
  const JoinReply* again = c.joined(c.begin_join(a));
  REQUIRE(again);
  CHECK(again->generation == 1);
  CHECK(again->members.size() == 1);
  // With another subscription the group begins anew.
  a.protocols = {{"range", subscription({"other"})}};
  const JoinReply* next = c.joined(c.begin_join(a));
  REQUIRE(next);
  CHECK(next->generation == 2);
}

TEST_CASE("a second join of a member that waits takes the place of the first") {
  Coordinator c;
  Consumer a;
  const Ticket first = c.begin_full_join(a);
  const Ticket second = c.begin_join(a);
  REQUIRE(c.joined(first));
  CHECK(c.joined(first)->error == ErrorCode::rebalance_in_progress);
  c.pass(3000);
  c.take(a, second);
}

TEST_CASE("the protocol is the one that most prefer of those that all have") {
  Coordinator c;
  std::vector<Consumer> all(3);
  const base::Buffer some = bytes("x");
  all[0].protocols = {{"a", some}, {"b", some}, {"c", some}};
  all[1].protocols = {{"c", some}, {"b", some}};
  all[2].protocols = {{"b", some}, {"d", some}, {"c", some}};
  std::vector<Ticket> tickets;
  for (Consumer& one : all) {
    one.protocol_type = "connect";  // opaque to us
    tickets.push_back(c.begin_full_join(one));
  }
  c.pass(6000);
  CHECK(c.take(all[0], tickets[0]).protocol_name == "b");
}

TEST_CASE("who cannot be let in is told why") {
  Coordinator c;
  Consumer who;
  who.group = "";
  CHECK(join_error(c, who) == ErrorCode::invalid_group_id);
  who.group = "g";
  who.session_ms = 5999;
  CHECK(join_error(c, who) == ErrorCode::invalid_session_timeout);
  who.session_ms = 1'800'001;
  CHECK(join_error(c, who) == ErrorCode::invalid_session_timeout);
  who.session_ms = 6000;
  who.member_id = "stranger";
  CHECK(join_error(c, who) == ErrorCode::unknown_member_id);
  CHECK(!c.has());
  who.member_id.clear();
  who.protocol_type = "";
  CHECK(join_error(c, who) == ErrorCode::inconsistent_group_protocol);
  who.protocol_type = "consumer";
  who.protocols.clear();
  CHECK(join_error(c, who) == ErrorCode::inconsistent_group_protocol);

  Consumer in;
  c.settle(in);
  Consumer other;
  other.protocol_type = "connect";
  CHECK(join_error(c, other) == ErrorCode::inconsistent_group_protocol);
  other.protocol_type = "consumer";
  other.protocols = {{"sticky", bytes("x")}};
  CHECK(join_error(c, other) == ErrorCode::inconsistent_group_protocol);
  other.protocols = in.protocols;
  other.member_id = "stranger";
  CHECK(join_error(c, other) == ErrorCode::unknown_member_id);
  other.instance_id = "nobody";
  CHECK(join_error(c, other) == ErrorCode::unknown_member_id);
}

TEST_CASE("a group that is full takes nobody") {
  Limits limits;
  limits.members_max = 2;
  Coordinator c(limits);
  Consumer a, b, d;
  c.settle(a);
  const Ticket joins = c.begin_full_join(b);
  const Ticket rejoins = c.begin_join(a);
  c.take(b, joins);
  c.take(a, rejoins);
  CHECK(join_error(c, d) == ErrorCode::group_max_size_reached);
  c.begin_sync(a, {});
  CHECK(join_error(c, d) == ErrorCode::group_max_size_reached);
  CHECK(c.heartbeat(a) == ErrorCode::none);
}

TEST_CASE("a limit that was lowered takes effect with the next rebalance") {
  Two two;
  std::vector<Entry> log = two.c.log();
  Limits limits;
  limits.members_max = 1;
  Coordinator c(limits);
  c.log() = std::move(log);
  c.restart();
  CHECK(c.group().is_in(ClassicState::preparing_rebalance));
  const Ticket first = c.begin_join(two.b);
  CHECK(join_error(c, two.a) == ErrorCode::group_max_size_reached);
  REQUIRE(c.joined(first));
  CHECK(c.joined(first)->error == ErrorCode::none);
  CHECK(c.group().members().size() == 1);
}

TEST_CASE("who was told an id and does not come back is not waited for") {
  Coordinator c;
  Consumer a;
  c.settle(a);
  Consumer pending;
  c.begin_join(pending);
  CHECK(c.group().pending.size() == 1);
  const Ticket rejoins = c.begin_join(a);
  CHECK(!c.joined(rejoins));  // it may come any moment
  c.pass(9'999);
  CHECK(!c.joined(rejoins));
  c.pass(1);
  CHECK(c.take(a, rejoins).generation == 2);
  CHECK(c.group().pending.empty());
}

TEST_CASE("old members whose connections are gone do not hold up a group for ever") {
  Limits limits;
  limits.session_timeout_min_ms = 1;
  Coordinator c(limits);
  Consumer in;
  in.rebalance_ms = 30'000'000;
  c.settle(in);
  for (int i = 0; i < 50; ++i) {  // C04
    Consumer ghost;
    ghost.version = 3;
    c.begin_join(ghost);
  }
  const Ticket rejoins = c.begin_join(in);
  c.take(in, rejoins);
  CHECK(c.group().members().size() == 51);
  // They never ask for their assignment, and send no heartbeats.
  c.begin_sync(in, {});
  c.pass(9'000);
  CHECK(c.heartbeat(in) == ErrorCode::none);
  c.pass(1'000);
  CHECK(c.group().members().size() == 1);
}

TEST_CASE("a new member that waits for others is given up after five minutes") {
  Coordinator c;
  Consumer a;
  a.rebalance_ms = 20 * 60 * 1000;
  a.session_ms = 20 * 60 * 1000;
  c.settle(a);
  Consumer fresh;
  const Ticket joins = c.begin_full_join(fresh);
  c.pass(5 * 60 * 1000 - 1);
  CHECK(!c.joined(joins));
  c.pass(1);
  REQUIRE(c.joined(joins));
  CHECK(c.joined(joins)->error == ErrorCode::unknown_member_id);
  CHECK(!c.group().find(fresh.member_id));
}
