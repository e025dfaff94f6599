// One heartbeat after the other: what is refused, and how partitions move.
#include <catch2/catch.hpp>

#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;
using protocol::ErrorCode;

namespace {

struct Checked : World {
  ~Checked() {
    CHECK(problem() == "");
    CHECK(replay_problem() == "");
  }
  ErrorCode error(const HeartbeatRequest& request, std::int16_t version = 1) {
    return error_of(send(request, version));
  }
};

Partitions of(int topic, std::set<std::int32_t> partitions) {
  return {{topic_uuid(topic), std::move(partitions)}};
}

}  // namespace

TEST_CASE("requests that make no sense are refused whatever the group") {
  Checked w;
  HeartbeatRequest request = join_request("", {"t"});
  CHECK(w.error(request, 1) == ErrorCode::invalid_request);
  request = beat("", 3);
  CHECK(w.error(request, 0) == ErrorCode::invalid_request);
  request = beat("  ", leaving_epoch);
  CHECK(w.error(request, 0) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.group_id = "";
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.instance_id = " ";
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.rack_id = "";
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.rebalance_timeout_ms = -1;
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.topic_partitions.reset();
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.topic_partitions->push_back({topic_uuid(1), {0}});
  CHECK(w.error(request) == ErrorCode::invalid_request);
  request = join_request("a", {});
  request.subscribed_topic_names.reset();
  CHECK(w.error(request) == ErrorCode::invalid_request);
  CHECK(w.error(beat("a", leaving_static_epoch)) == ErrorCode::invalid_request);
  CHECK(w.error(beat("a", -3)) == ErrorCode::invalid_request);
  request = join_request("a", {"t"});
  request.server_assignor = "cooperative-sticky";
  CHECK(w.error(request) == ErrorCode::unsupported_assignor);
  w.settings.assignors = {AssignorKind::range};
  request.server_assignor = "uniform";
  CHECK(w.error(request) == ErrorCode::unsupported_assignor);
  request = join_request("a", {});
  request.subscribed_topic_regex = "(unclosed";
  CHECK(w.error(request) == ErrorCode::invalid_regular_expression);
  CHECK(w.log.empty());
  CHECK(w.group == nullptr);
}

TEST_CASE("who is not known is told so") {
  Checked w;
  w.topics.add("t", 2);
  CHECK(w.error(beat("a", 1)) == ErrorCode::group_id_not_found);
  CHECK(w.error(beat("a", leaving_epoch)) == ErrorCode::group_id_not_found);
  REQUIRE(w.error(join_request("a", {"t"})) == ErrorCode::none);
  CHECK(w.error(beat("b", 2)) == ErrorCode::unknown_member_id);
  CHECK(w.error(beat("b", leaving_epoch)) == ErrorCode::unknown_member_id);
  HeartbeatRequest request = beat("a", 2);
  request.instance_id = "i";
  CHECK(w.error(request) == ErrorCode::unknown_member_id);
  request.member_epoch = leaving_static_epoch;
  CHECK(w.error(request) == ErrorCode::unknown_member_id);
}

TEST_CASE("the first member gets everything, in the group's second epoch") {
  Checked w;
  w.topics.add("t", 3);
  const HeartbeatResponse answer = w.send(join_request("a", {"t", "not there"}));
  CHECK(answer.member_id == "a");
  CHECK(answer.member_epoch == 2);
  CHECK(answer.heartbeat_interval_ms == 5000);
  CHECK(assignment_of(answer) == of(1, {0, 1, 2}));
  CHECK(w.group->state() == GroupState::stable);
  CHECK(w.timers.contains({TimerChange::Kind::session, "a"}));
  // Nothing changes any more, and nothing is written.
  const std::size_t records = w.log.size();
  const HeartbeatResponse next = w.send(beat_owning("a", 2, of(1, {0, 1, 2})));
  CHECK(next.member_epoch == 2);
  CHECK_FALSE(next.assignment);
  CHECK(w.log.size() == records);
}

TEST_CASE("version 0 makes the member's id") {
  Checked w;
  w.topics.add("t", 1);
  const HeartbeatResponse answer = w.send(join_request("", {"t"}), 0);
  CHECK(answer.member_id == "made-1");
  CHECK(w.group->find("made-1") != nullptr);
}

TEST_CASE("a partition moves only after its holder has given it up") {
  Checked w;
  w.topics.add("t", 4);
  w.send(join_request("a", {"t"}));
  w.send(beat_owning("a", 2, of(1, {0, 1, 2, 3})));
  HeartbeatResponse b = w.send(join_request("b", {"t"}));
  CHECK(b.member_epoch == 3);
  CHECK(assignment_of(b).empty());
  CHECK(w.member("b").state == MemberState::unreleased_partitions);
  CHECK(w.group->state() == GroupState::reconciling);

  HeartbeatResponse a = w.send(beat("a", 2));
  CHECK(a.member_epoch == 2);
  CHECK(assignment_of(a) == of(1, {0, 1}));
  CHECK(w.member("a").state == MemberState::unrevoked_partitions);
  CHECK(w.timers.at({TimerChange::Kind::rebalance, "a"}).due_ms == w.now_ms + 60'000);
  // It says nothing, or that it has them still: nothing moves.
  CHECK(w.send(beat("a", 2)).member_epoch == 2);
  CHECK(w.send(beat_owning("a", 2, of(1, {0, 1, 2}))).member_epoch == 2);
  CHECK_FALSE(w.send(beat("b", 3)).assignment);

  a = w.send(beat_owning("a", 2, of(1, {0, 1})));
  CHECK(a.member_epoch == 3);
  CHECK(w.member("a").state == MemberState::stable);
  CHECK_FALSE(w.timers.contains({TimerChange::Kind::rebalance, "a"}));
  b = w.send(beat("b", 3));
  CHECK(assignment_of(b) == of(1, {2, 3}));
  CHECK(w.group->state() == GroupState::stable);
  CHECK(w.member("b").assigned.at(topic_uuid(1)).at(2) == 3);
  CHECK(w.member("a").assigned.at(topic_uuid(1)).at(0) == 2);
}

TEST_CASE("who does not give up in time is out") {
  Checked w;
  w.topics.add("t", 2);
  w.send(join_request("a", {"t"}));
  w.send(join_request("b", {"t"}));
  w.send(beat("a", 2));
  REQUIRE(w.member("a").state == MemberState::unrevoked_partitions);
  for (int i = 0; i < 6; ++i) {
    w.pass(9'000);
    w.send(beat("a", 2));
    w.send(beat("b", w.member("b").epoch));
  }
  REQUIRE(w.group->find("a") != nullptr);
  w.pass(7'000);
  CHECK(w.group->find("a") == nullptr);
  const HeartbeatResponse b = w.send(beat("b", w.member("b").epoch));
  CHECK(assignment_of(b) == of(1, {0, 1}));
  CHECK(w.error(beat("a", 2)) == ErrorCode::unknown_member_id);
}

TEST_CASE("who is not heard of is out, and the group is empty then") {
  Checked w;
  w.topics.add("t", 2);
  w.send(join_request("a", {"t"}));
  w.pass(44'000);
  w.send(beat("a", 2));
  w.pass(44'000);
  REQUIRE(w.group->find("a") != nullptr);
  w.pass(2'000);
  CHECK(w.group->members().empty());
  CHECK(w.group->state() == GroupState::empty);
  CHECK(w.group->epoch == 3);
  CHECK(w.group->assignment_epoch == 3);
  CHECK(w.group->assigned_ms == 0);
  CHECK(w.timers.empty());
}

TEST_CASE("epochs fence, but for an answer that got lost") {
  Checked w;
  w.topics.add("t", 2);
  w.send(join_request("a", {"t"}));
  CHECK(w.error(beat("a", 3)) == ErrorCode::fenced_member_epoch);
  CHECK(w.error(beat("a", 1)) == ErrorCode::fenced_member_epoch);
  w.send(join_request("b", {"t"}));
  w.send(beat("a", 2));
  w.send(beat_owning("a", 2, w.assigned("a")));
  REQUIRE(w.member("a").epoch == 3);
  // The epoch before, with nothing that it has not.
  CHECK(w.error(beat("a", 2)) == ErrorCode::fenced_member_epoch);
  CHECK(w.error(beat_owning("a", 2, of(1, {0, 1}))) == ErrorCode::fenced_member_epoch);
  const HeartbeatResponse again = w.send(beat_owning("a", 2, w.assigned("a")));
  CHECK(error_of(again) == ErrorCode::none);
  CHECK(again.member_epoch == 3);
  // Joining anew is always allowed, and tells all that the member has.
  const HeartbeatResponse rejoined = w.send(join_request("a", {"t"}));
  CHECK(rejoined.member_epoch == 3);
  CHECK(assignment_of(rejoined) == w.assigned("a"));
}

TEST_CASE("a group takes so many members and no more") {
  Checked w;
  w.topics.add("t", 2);
  w.settings.max_size = 1;
  HeartbeatRequest first = join_request("a", {"t"});
  first.instance_id = "i";
  REQUIRE(w.error(first) == ErrorCode::none);
  CHECK(w.error(join_request("b", {"t"})) == ErrorCode::group_max_size_reached);
  CHECK(w.error(first) == ErrorCode::unreleased_instance_id);
  HeartbeatRequest leave = beat("a", leaving_static_epoch);
  leave.instance_id = "i";
  REQUIRE(w.error(leave) == ErrorCode::none);
  first.member_id = "c";
  CHECK(w.error(first) == ErrorCode::none);
}

TEST_CASE("a static member comes back under another id and finds its partitions") {
  Checked w;
  w.topics.add("t", 4);
  HeartbeatRequest join = join_request("a", {"t"});
  join.instance_id = "i";
  w.send(join);
  w.send(join_request("b", {"t"}));
  HeartbeatRequest revoke = beat("a", 2);
  revoke.instance_id = "i";
  w.send(revoke);
  revoke = beat_owning("a", 2, w.assigned("a"));
  revoke.instance_id = "i";
  w.send(revoke);
  w.send(beat("b", 3));
  REQUIRE(w.group->state() == GroupState::stable);
  const Partitions before = w.assigned("a");

  join.member_id = "a2";
  CHECK(w.error(join) == ErrorCode::unreleased_instance_id);
  HeartbeatRequest leave = beat("other", leaving_static_epoch);
  leave.instance_id = "i";
  CHECK(w.error(leave) == ErrorCode::fenced_instance_id);
  leave.member_id = "a";
  const HeartbeatResponse left = w.send(leave);
  CHECK(left.member_epoch == leaving_static_epoch);
  CHECK(w.member("a").epoch == leaving_static_epoch);
  CHECK(w.member("a").assigned.at(topic_uuid(1)).begin()->second == 0);
  const std::int32_t group_epoch = w.group->epoch;
  const HeartbeatResponse back = w.send(join);
  CHECK(back.member_id == "a2");
  CHECK(back.member_epoch == group_epoch);
  CHECK(assignment_of(back) == before);
  CHECK(w.group->epoch == group_epoch);
  CHECK(w.group->find("a") == nullptr);
  HeartbeatRequest stale = beat("a", 3);
  stale.instance_id = "i";
  CHECK(w.error(stale) == ErrorCode::fenced_instance_id);
  CHECK(w.error(beat("a", 3)) == ErrorCode::unknown_member_id);
}

TEST_CASE("a static member that does not come back is out after its session") {
  Checked w;
  w.topics.add("t", 2);
  HeartbeatRequest join = join_request("a", {"t"});
  join.instance_id = "i";
  w.send(join);
  HeartbeatRequest leave = beat("a", leaving_static_epoch);
  leave.instance_id = "i";
  w.send(leave);
  w.pass(46'000);
  CHECK(w.group->members().empty());
  CHECK(w.error(join) == ErrorCode::none);
}

TEST_CASE("leaving frees partitions at once") {
  Checked w;
  w.topics.add("t", 2);
  w.send(join_request("a", {"t"}));
  w.send(join_request("b", {"t"}));
  const HeartbeatResponse left = w.send(beat("a", leaving_epoch));
  CHECK(left.member_epoch == leaving_epoch);
  CHECK(left.member_id == "a");
  const HeartbeatResponse b = w.send(beat("b", 3));
  CHECK(assignment_of(b) == of(1, {0, 1}));
  CHECK(b.member_epoch == 4);
}

TEST_CASE("a changed subscription takes topics away before there is a new target") {
  Checked w;
  w.settings.assignment_interval_ms = 1000;
  w.topics.add("t", 1);
  w.topics.add("u", 1);
  w.send(join_request("a", {"t", "u"}));
  REQUIRE(w.assigned("a").size() == 2);
  HeartbeatRequest change = beat("a", 2);
  change.subscribed_topic_names = {"u"};
  const HeartbeatResponse answer = w.send(change);
  CHECK(w.group->epoch == 3);
  CHECK(w.group->assignment_epoch == 2);
  CHECK(answer.member_epoch == 2);
  CHECK(assignment_of(answer) == of(2, {0}));
  CHECK(w.member("a").state == MemberState::unrevoked_partitions);
  CHECK(w.group->state() == GroupState::assigning);
  w.pass(1000);
  CHECK(w.send(beat_owning("a", 2, of(2, {0}))).member_epoch == 3);
  CHECK(w.group->state() == GroupState::stable);
}

TEST_CASE("topics that come, grow and go") {
  Checked w;
  w.topics.add("t", 1);
  w.send(join_request("a", {"t", "u"}));
  w.topics.add("u", 2);
  CHECK_FALSE(w.send(beat("a", 2)).assignment);  // nobody said that something has changed
  w.topics_changed();
  HeartbeatResponse answer = w.send(beat("a", 2));
  CHECK(answer.member_epoch == 3);
  CHECK(assignment_of(answer)[topic_uuid(2)] == std::set<std::int32_t>{0, 1});
  w.topics.grow("t", 3);
  w.topics_changed();
  answer = w.send(beat("a", 3));
  CHECK(answer.member_epoch == 4);
  CHECK(assignment_of(answer)[topic_uuid(1)] == std::set<std::int32_t>{0, 1, 2});
  w.topics.remove("t");
  w.topics_changed();
  w.send(beat("a", 4));
  answer = w.send(beat_owning("a", 4, of(2, {0, 1})));
  CHECK(answer.member_epoch == 5);
  CHECK(w.assigned("a") == of(2, {0, 1}));
  // Without being told it looks every hour.
  w.topics.grow("u", 3);
  w.timers.clear();
  w.pass(61 * 60 * 1000);
  CHECK(w.send(beat("a", 5)).member_epoch == 6);
}

TEST_CASE("regular expressions are looked up, and looked up again when topics come") {
  Checked w;
  w.topics.add("log-1", 1);
  w.topics.add("other", 1);
  HeartbeatRequest join = join_request("a", {});
  join.subscribed_topic_regex = "log-.*";
  HeartbeatResponse answer = w.send(join);
  CHECK(assignment_of(answer).empty());
  REQUIRE(w.group->find_regex("log-.*") != nullptr);
  CHECK(w.group->find_regex("log-.*")->topics == TopicNames{"log-1"});
  answer = w.send(beat("a", answer.member_epoch));
  CHECK(assignment_of(answer) == of(1, {0}));
  CHECK(w.group->is_subscribed_to("log-1"));
  CHECK_FALSE(w.group->is_subscribed_to("other"));

  w.topics.add("log-2", 1);
  w.topics.add("xlog-3", 1);
  w.pass(9'000);
  w.send(beat("a", answer.member_epoch));
  CHECK(w.group->find_regex("log-.*")->topics.size() == 1);  // it is too early
  w.pass(2'000);
  w.send(beat("a", answer.member_epoch));
  CHECK(w.group->find_regex("log-.*")->topics == TopicNames{"log-1", "log-2"});
  answer = w.send(beat("a", answer.member_epoch));
  CHECK(count_of(assignment_of(answer)) == 2);

  // A second user of the same expression has its topics at once.
  HeartbeatRequest second = join;
  second.member_id = "b";
  w.send(second);
  CHECK(w.group->target_of("b").size() == 1);
  CHECK(w.group->subscriptions().users_of("log-.*") == 2);
  // The last user takes it away.
  HeartbeatRequest names = beat("b", w.member("b").epoch);
  names.subscribed_topic_names = {"other"};
  names.subscribed_topic_regex = "";
  w.send(names);
  CHECK(w.group->find_regex("log-.*") != nullptr);
  w.send(beat("a", leaving_epoch));
  CHECK(w.group->find_regex("log-.*") == nullptr);
  CHECK_FALSE(w.group->is_subscribed_to("log-1"));
}

TEST_CASE("who comes to an expression that stands for nothing gives its partitions to others") {
  Checked w;
  w.topics.add("log-1", 2);
  w.topics.add("log-2", 2);
  FakeClient a, b;
  a.id = "a";
  a.regex = "log-.*";
  b.id = "b";
  b.names = {"log-1", "log-2"};
  const auto settle = [&] {
    for (int i = 0; i < 6; ++i) {
      a.beat(w);
      b.beat(w);
    }
  };
  settle();
  REQUIRE(count_of(a.owned) == 2);
  w.pass(11'000);
  a.regex = "nothing";
  a.wants_changed = true;
  settle();
  CHECK(a.owned.empty());
  CHECK(w.group->target_of("a").empty());
  CHECK(count_of(b.owned) == 4);
}

TEST_CASE("a member that wants nothing takes nothing from those that want the same") {
  Checked w;
  w.topics.add("t", 4);
  w.send(join_request("b", {"t"}));
  w.send(join_request("c", {"t"}));
  w.send(beat("c", leaving_epoch));
  // The next target is computed when it comes, and its wishes do not raise the epoch.
  w.send(join_request("a", {}));
  w.send(beat_owning("b", w.member("b").epoch, {}));
  w.send(beat_owning("b", w.member("b").epoch, {}));
  CHECK(w.group->target_of("a").empty());
  CHECK(count_of(w.assigned("b")) == 4);
}

TEST_CASE("what costs too much is no regular expression") {
  Checked w;
  HeartbeatRequest join = join_request("a", {});
  join.subscribed_topic_regex = "((a{1,1000}){1,1000}){1,1000}";
  CHECK(w.error(join) == ErrorCode::invalid_regular_expression);
  join.subscribed_topic_regex = std::string(30'000, '(');
  CHECK(w.error(join) == ErrorCode::invalid_regular_expression);
  join.subscribed_topic_regex = "(a+)+$";
  CHECK(w.error(join) == ErrorCode::none);
}

TEST_CASE("the assignor that most members prefer is used") {
  Checked w;
  w.topics.add("t", 2);
  w.topics.add("u", 2);
  HeartbeatRequest join = join_request("a", {"t", "u"});
  w.send(join);
  join.member_id = "b";
  join.server_assignor = "range";
  const std::int32_t before = w.group->epoch;
  w.send(join);
  CHECK(w.group->epoch == before + 1);
  // Ranges: each has the same partition of both topics.
  CHECK(w.group->target_of("a") == Partitions{{topic_uuid(1), {0}}, {topic_uuid(2), {0}}});
  CHECK(w.group->target_of("b") == Partitions{{topic_uuid(1), {1}}, {topic_uuid(2), {1}}});
  HeartbeatRequest change = beat("a", 2);
  change.server_assignor = "uniform";
  w.send(change);
  CHECK(w.group->epoch == before + 2);
}

TEST_CASE("targets are not computed more often than the interval allows") {
  Checked w;
  w.settings.assignment_interval_ms = 1000;
  w.topics.add("t", 3);
  w.send(join_request("a", {"t"}));
  w.send(join_request("b", {"t"}));
  w.send(join_request("c", {"t"}));
  CHECK(w.group->epoch == 4);
  CHECK(w.group->assignment_epoch == 2);
  CHECK(w.group->state() == GroupState::assigning);
  w.pass(1000);
  w.send(beat("c", w.member("c").epoch));
  CHECK(w.group->assignment_epoch == 4);
  for (const char* id : {"a", "b", "c"}) CHECK(count_of(w.group->target_of(id)) == 1);
  // A clock that was set back far does not stop it.
  w.now_ms -= 3'600'000;
  w.send(join_request("d", {"t"}));
  CHECK(w.group->assignment_epoch == 5);
}

TEST_CASE("a member whose state is of a later release has to join anew") {
  Checked w;
  w.topics.add("t", 1);
  w.send(join_request("a", {"t"}));
  Member odd = w.member("a");
  odd.state = MemberState::unknown;
  Outcome written;
  written.records.push_back(current_record("g", odd));
  w.take(written);
  CHECK(w.error(beat("a", 2)) == ErrorCode::fenced_member_epoch);
  const HeartbeatResponse answer = w.send(join_request("a", {"t"}));
  CHECK(assignment_of(answer) == of(1, {0}));
  CHECK(w.member("a").state == MemberState::stable);
}

TEST_CASE("timers run after a restart") {
  Checked w;
  w.topics.add("t", 2);
  w.send(join_request("a", {"t"}));
  w.send(join_request("b", {"t"}));
  w.send(beat("a", 2));
  const std::vector<TimerChange> timers = timers_after_load(*w.group, w.settings);
  REQUIRE(timers.size() == 3);
  CHECK(timers[0].member_id == "a");
  CHECK(timers[0].after_ms == 45'000);
  CHECK(timers[1].kind == TimerChange::Kind::rebalance);
  CHECK(timers[1].after_ms == 60'000);
  CHECK(timers[1].member_epoch == 2);
  CHECK(timers[2].member_id == "b");
}
