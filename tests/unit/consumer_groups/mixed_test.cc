// Groups that change their protocol, and members of both protocols in one group, as the coordinator
// of a partition sees them.
#include <catch2/catch.hpp>

#include "broker/groups/consumer/embedded_protocol.h"
#include "broker/groups/group_shard.h"
#include "tests/unit/consumer_groups/world.h"

namespace broker::groups {
namespace {

using consumer::ConsumerGroup;
using consumer::Partitions;
using protocol::ErrorCode;

class Coordinated {
 public:
  Coordinated() {
    topics_->add("t", 4);
    state_ = fresh();
  }
  ~Coordinated() { CHECK(replay_problem() == ""); }

  consumer::Settings settings = quick();
  GroupShard& state() { return *state_; }
  const ConsumerGroup* modern() const {
    const auto at = state_->groups().find("g");
    return at == state_->groups().end() ? nullptr : std::get_if<ConsumerGroup>(&at->second);
  }
  const ClassicGroup* classic() const {
    const auto at = state_->groups().find("g");
    return at == state_->groups().end() ? nullptr : std::get_if<ClassicGroup>(&at->second);
  }

  consumer::HeartbeatResponse beat(const consumer::HeartbeatRequest& request) {
    state_->set_consumer_settings(settings);
    auto decided = state_->consumer_heartbeat(request, {1, "new", "/127.0.0.1"}, now_);
    consumer::HeartbeatResponse answer = decided.answer;
    carry_out(std::move(decided));
    return answer;
  }

  struct Old {
    std::string id;
    std::int32_t generation = -1;
    consumer::NamedPartitions owned = {};
    std::optional<std::string> instance_id = {};
    std::vector<std::string> topics = {"t"};
  };
  // The answer, if there is one yet.
  std::optional<JoinReply> join(Old& who) {
    state_->set_consumer_settings(settings);
    protocol::JoinGroupRequest asked;
    asked.group_id = "g";
    asked.session_timeout_ms = 10'000;
    asked.rebalance_timeout_ms = 20'000;
    asked.member_id = who.id;
    asked.group_instance_id = who.instance_id;
    asked.protocol_type = "consumer";
    consumer::EmbeddedSubscription subscription;
    subscription.version = 1;
    subscription.topics = who.topics;
    subscription.owned = who.owned;
    const base::Buffer metadata = encode_embedded(subscription);
    asked.protocols.push_back({"range", metadata});
    const Ticket ticket = ++last_ticket_;
    carry_out(state_->join(asked, {9, "old", "/127.0.0.1"}, ticket, now_));
    const auto at = joins_.find(ticket);
    if (at == joins_.end()) return std::nullopt;
    if (at->second.error == ErrorCode::member_id_required) who.id = at->second.member_id;
    if (at->second.error == ErrorCode::none) {
      who.id = at->second.member_id;
      who.generation = at->second.generation;
    }
    return at->second;
  }
  SyncReply sync(Old& who, const Partitions& lead = {}) {
    protocol::SyncGroupRequest asked;
    asked.group_id = "g";
    asked.member_id = who.id;
    asked.generation_id = who.generation;
    asked.group_instance_id = who.instance_id;
    consumer::EmbeddedAssignment assignment;
    for (const auto& [id, partitions] : lead) assignment.partitions["t"] = partitions;
    const base::Buffer bytes = encode_embedded(assignment);
    if (!lead.empty()) asked.assignments.push_back({who.id, bytes});
    const Ticket ticket = ++last_ticket_;
    carry_out(state_->sync(asked, ticket, now_));
    REQUIRE(syncs_.contains(ticket));
    if (const auto read = consumer::parse_embedded_assignment(syncs_[ticket].assignment))
      who.owned = read->partitions;
    return syncs_[ticket];
  }
  ErrorCode heartbeat(const Old& who) {
    protocol::HeartbeatRequest asked;
    asked.group_id = "g";
    asked.member_id = who.id;
    asked.generation_id = who.generation;
    asked.group_instance_id = who.instance_id;
    auto decided = state_->heartbeat(asked, now_);
    const ErrorCode error = decided.answer;
    carry_out(std::move(decided));
    return error;
  }
  void leave(const Old& who) {
    protocol::LeaveGroupRequest asked;
    asked.group_id = "g";
    asked.members.push_back({who.id, std::nullopt, std::nullopt});
    carry_out(state_->leave(asked, now_));
  }
  void pass(std::int64_t ms) {
    const std::int64_t until = now_.monotonic_ms + ms;
    while (state_->next_deadline_ms() && *state_->next_deadline_ms() <= until) {
      advance(std::max(now_.monotonic_ms, *state_->next_deadline_ms()));
      carry_out(*state_->expire(now_));
    }
    advance(until);
  }
  // A classic group with one member that has everything.
  Old settle() {
    Old who;
    join(who);
    REQUIRE_FALSE(join(who));
    pass(0);
    REQUIRE(joins_.at(last_ticket_).error == ErrorCode::none);
    who.generation = joins_.at(last_ticket_).generation;
    sync(who, {{consumer::topic_uuid(1), {0, 1, 2, 3}}});
    return who;
  }
  const std::map<Ticket, JoinReply>& joins() const { return joins_; }
  // All that is left is the log.
  void restart() {
    state_ = fresh();
    for (const Record& one : log_) apply(*state_, one);
    carry_out(state_->loaded(now_));
  }

 private:
  static consumer::Settings quick() {
    consumer::Settings settings;
    settings.assignment_interval_ms = 0;
    return settings;
  }
  std::unique_ptr<GroupShard> fresh() {
    Limits limits;
    limits.initial_rebalance_delay_ms = 0;
    auto state = std::make_unique<GroupShard>(limits, base::Random(++seed_));
    state->set_consumer_settings(settings);
    state->set_topics(topics_);
    return state;
  }
  void advance(std::int64_t monotonic_ms) {
    now_.wall_ms += monotonic_ms - now_.monotonic_ms;
    now_.monotonic_ms = monotonic_ms;
  }
  void carry_out(Decision decision) {
    for (const Record& one : decision.records) {
      CHECK(apply(*state_, one));
      log_.push_back(one);
    }
    for (const Reply& one : decision.replies) {
      if (const auto* join = std::get_if<JoinReply>(&one.answer)) joins_[one.ticket] = *join;
      if (const auto* sync = std::get_if<SyncReply>(&one.answer)) syncs_[one.ticket] = *sync;
    }
  }
  static bool apply(GroupShard& state, const Record& one) {
    return state.apply(one.key, one.value ? std::optional<base::Bytes>(*one.value) : std::nullopt,
                       Place());
  }
  std::string replay_problem() {
    const auto again = fresh();
    for (const Record& one : log_) apply(*again, one);
    const auto mine = state_->groups().find("g"), other = again->groups().find("g");
    if ((mine == state_->groups().end()) != (other == again->groups().end())) return "no group";
    if (mine == state_->groups().end()) return "";
    if (mine->second.index() != other->second.index()) return "another protocol";
    const ConsumerGroup* here = modern();
    if (here && !(*here == std::get<ConsumerGroup>(other->second))) return "another group";
    return "";
  }

  std::shared_ptr<consumer::FakeTopics> topics_ = std::make_shared<consumer::FakeTopics>();
  std::unique_ptr<GroupShard> state_;
  std::vector<Record> log_;
  Now now_{1'000, 1'700'000'000'000};
  Ticket last_ticket_ = 0;
  std::uint64_t seed_ = 0;
  std::map<Ticket, JoinReply> joins_;
  std::map<Ticket, SyncReply> syncs_;
};

ErrorCode code(const consumer::HeartbeatResponse& response) {
  return consumer::error_of(response);
}

}  // namespace

TEST_CASE("a classic group is upgraded by a new member, and downgraded when it leaves") {
  Coordinated c;
  Coordinated::Old old = c.settle();
  const std::int32_t generation = old.generation;
  auto answer = c.beat(consumer::join_request("new", {"t"}));
  REQUIRE(code(answer) == ErrorCode::none);
  CHECK(answer.member_epoch == generation + 1);
  CHECK(consumer::assignment_of(answer).empty());
  REQUIRE(c.modern() != nullptr);
  CHECK(c.modern()->classic_members() == 1);
  CHECK(consumer::without_epochs(c.modern()->find(old.id)->assigned) ==
        Partitions{{consumer::topic_uuid(1), {0, 1, 2, 3}}});

  // The old member is told to join, gives up, and joins again for the new epoch.
  c.pass(1000);
  CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
  auto joined = c.join(old);
  REQUIRE(joined);
  CHECK(joined->error == ErrorCode::none);
  CHECK(joined->generation == generation);
  CHECK(joined->protocol_name == "range");
  CHECK(c.sync(old).error == ErrorCode::none);
  CHECK(old.owned == consumer::NamedPartitions{{"t", {0, 1}}});
  CHECK_FALSE(c.beat(consumer::beat("new", answer.member_epoch)).assignment);
  CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
  joined = c.join(old);
  CHECK(joined->generation == generation + 1);
  CHECK(c.sync(old).error == ErrorCode::none);
  CHECK(c.heartbeat(old) == ErrorCode::none);
  answer = c.beat(consumer::beat("new", answer.member_epoch));
  CHECK(consumer::assignment_of(answer) == Partitions{{consumer::topic_uuid(1), {2, 3}}});
  CHECK(c.modern()->state() == consumer::GroupState::stable);

  CHECK(code(c.beat(consumer::beat("new", consumer::leaving_epoch))) == ErrorCode::none);
  REQUIRE(c.classic() != nullptr);
  CHECK(c.classic()->generation == generation + 1);
  REQUIRE(c.classic()->find(old.id) != nullptr);
  CHECK(c.classic()->protocol == "range");
  // The partitions of the one that left are nobody's: not even a restart makes that be forgotten.
  if (GENERATE(false, true)) c.restart();
  c.pass(0);
  CHECK(c.classic()->is_in(ClassicState::preparing_rebalance));
  CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
  joined = c.join(old);
  REQUIRE(joined);
  CHECK(joined->generation == generation + 2);
  CHECK(joined->leader == old.id);
}

TEST_CASE("the last of the consumer protocol is replaced by a classic member: downgraded") {
  Coordinated c;
  auto join = consumer::join_request("new", {"t"});
  join.instance_id = "i";
  REQUIRE(c.beat(join).member_epoch == 2);
  Coordinated::Old old;
  old.instance_id = "i";

  SECTION("it wants the same: nobody is disturbed") {
    const auto joined = c.join(old);
    REQUIRE(joined);
    CHECK(joined->error == ErrorCode::none);
    CHECK(joined->generation == 2);
    CHECK(joined->leader.empty());
    REQUIRE(c.classic() != nullptr);
    c.pass(0);
    CHECK(c.classic()->is_in(ClassicState::stable));
    CHECK(c.sync(old).error == ErrorCode::none);
    CHECK(old.owned == consumer::NamedPartitions{{"t", {0, 1, 2, 3}}});
    CHECK(c.heartbeat(old) == ErrorCode::none);
    CHECK(code(c.beat(consumer::beat("new", 2))) == ErrorCode::group_id_not_found);
    c.pass(11'000);  // its session runs
    CHECK(c.classic()->members().empty());
  }
  SECTION("it wants others: a rebalance, under the epoch before") {
    old.topics = {"u"};
    const auto joined = c.join(old);
    REQUIRE(joined);
    CHECK(joined->generation == 0);
    REQUIRE(c.classic() != nullptr);
    CHECK(c.classic()->generation == 2);
    c.pass(0);
    CHECK(c.classic()->is_in(ClassicState::preparing_rebalance));
    CHECK(c.heartbeat(old) == ErrorCode::illegal_generation);
    const auto again = c.join(old);
    REQUIRE(again);
    CHECK(again->generation == 3);
    CHECK(again->leader == old.id);
  }
  SECTION("it says the id of the member that it is") {
    old.id = "new";
    CHECK(c.join(old)->error == ErrorCode::none);
    REQUIRE(c.classic() != nullptr);
    CHECK(c.classic()->find("new") != nullptr);
    CHECK(c.sync(old).error == ErrorCode::none);
  }
  SECTION("the policy does not allow it") {
    c.settings.migration_policy = consumer::MigrationPolicy::upgrade;
    CHECK(c.join(old)->generation == 2);
    REQUIRE(c.modern() != nullptr);
    CHECK(c.modern()->classic_members() == 1);
  }
  SECTION("a classic group may not be so large") {
    c.settings.classic_max_size = 0;
    CHECK(c.join(old)->error == ErrorCode::none);
    CHECK(c.modern() != nullptr);
  }
  SECTION("another one is left") {
    REQUIRE(code(c.beat(consumer::join_request("other", {"t"}))) == ErrorCode::none);
    CHECK(c.join(old)->error == ErrorCode::none);
    REQUIRE(c.modern() != nullptr);
    CHECK(c.modern()->members().size() == 2);
    CHECK(c.modern()->classic_members() == 1);
    // When that one leaves, the downgrade needs a rebalance.
    CHECK(code(c.beat(consumer::beat("other", consumer::leaving_epoch))) == ErrorCode::none);
    REQUIRE(c.classic() != nullptr);
    c.pass(0);
    CHECK(c.classic()->is_in(ClassicState::preparing_rebalance));
  }
}

TEST_CASE("classic members that are left alone in such a group get what others had") {
  Coordinated c;
  c.settings.migration_policy = consumer::MigrationPolicy::upgrade;
  Coordinated::Old old = c.settle();
  auto answer = c.beat(consumer::join_request("new", {"t"}));
  for (int i = 0; i < 2; ++i) {
    CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
    c.join(old);
    CHECK(c.sync(old).error == ErrorCode::none);
    answer = c.beat(consumer::beat("new", answer.member_epoch));
  }
  REQUIRE(old.owned["t"].size() == 2);
  CHECK(c.heartbeat(old) == ErrorCode::none);
  c.beat(consumer::beat("new", consumer::leaving_epoch));
  REQUIRE(c.modern() != nullptr);
  CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
  c.join(old);
  CHECK(c.sync(old).error == ErrorCode::none);
  CHECK(old.owned["t"].size() == 4);
  CHECK(c.heartbeat(old) == ErrorCode::none);
}

TEST_CASE("a group that is upgraded before it was assigned is assigned then") {
  Coordinated c;
  Coordinated::Old old;
  old.instance_id = "i";
  CHECK_FALSE(c.join(old));
  c.pass(0);
  REQUIRE(c.classic() != nullptr);
  REQUIRE(c.classic()->is_in(ClassicState::completing_rebalance));
  // It wants what the member wanted whose place it takes: that alone raises no epoch.
  auto join = consumer::join_request("new", {"t"});
  join.instance_id = "i";
  const auto answer = c.beat(join);
  REQUIRE(code(answer) == ErrorCode::none);
  REQUIRE(c.modern() != nullptr);
  CHECK(c.modern()->members().size() == 1);
  CHECK(consumer::count_of(consumer::assignment_of(answer)) == 4);
}

TEST_CASE("who waits in a group that is upgraded is told to join again") {
  Coordinated c;
  Coordinated::Old old = c.settle(), second;
  c.join(second);
  REQUIRE_FALSE(c.join(second));
  REQUIRE(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::none);
  CHECK(c.joins().rbegin()->second.error == ErrorCode::rebalance_in_progress);
  REQUIRE(c.modern() != nullptr);
  CHECK(c.modern()->members().size() == 3);
}

TEST_CASE("what cannot be upgraded stays, and the new member is refused") {
  Coordinated c;
  Coordinated::Old old = c.settle();
  c.settings.migration_policy = consumer::MigrationPolicy::downgrade;
  CHECK(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::group_id_not_found);
  c.settings.migration_policy = consumer::MigrationPolicy::disabled;
  CHECK(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::group_id_not_found);
  c.settings.migration_policy = consumer::MigrationPolicy::bidirectional;
  c.settings.max_size = 0;
  CHECK(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::group_id_not_found);
  CHECK(code(c.beat(consumer::beat("new", 3))) == ErrorCode::group_id_not_found);
  CHECK(c.classic() != nullptr);
  CHECK(c.heartbeat(old) == ErrorCode::none);
}

TEST_CASE("a classic member joins a group of the other protocol, and its session ends") {
  Coordinated c;
  auto answer = c.beat(consumer::join_request("new", {"t"}));
  Coordinated::Old old;
  auto joined = c.join(old);
  REQUIRE(joined);
  CHECK(joined->error == ErrorCode::member_id_required);
  joined = c.join(old);
  CHECK(joined->error == ErrorCode::none);
  CHECK(c.sync(old).error == ErrorCode::none);
  CHECK(old.owned.empty());
  answer = c.beat(consumer::beat("new", 2));
  Partitions owned = consumer::assignment_of(answer);
  CHECK(owned[consumer::topic_uuid(1)].size() == 2);
  CHECK(c.heartbeat(old) == ErrorCode::none);  // nothing is free yet
  answer = c.beat(consumer::beat_owning("new", 2, owned));
  CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
  c.join(old);
  CHECK(c.sync(old).error == ErrorCode::none);
  CHECK(old.owned["t"].size() == 2);
  c.settings.migration_policy = consumer::MigrationPolicy::disabled;
  CHECK(c.join(old)->error == ErrorCode::inconsistent_group_protocol);
  c.pass(11'000);
  CHECK(c.modern()->members().size() == 1);
  CHECK(c.heartbeat(old) == ErrorCode::unknown_member_id);
}

TEST_CASE("a member that does not join when it is told to is out") {
  Coordinated c;
  Coordinated::Old old = c.settle();
  REQUIRE(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::none);
  std::int32_t epoch = c.modern()->find("new")->epoch;
  for (int i = 0; i < 6 && c.modern() && c.modern()->find(old.id); ++i) {
    CHECK(c.heartbeat(old) == ErrorCode::rebalance_in_progress);
    epoch = c.beat(consumer::beat("new", epoch)).member_epoch;
    c.pass(4'000);
  }
  REQUIRE(c.modern() != nullptr);
  CHECK(c.modern()->find(old.id) == nullptr);
}

TEST_CASE("an empty group is of whatever protocol the next member speaks") {
  Coordinated c;
  c.beat(consumer::join_request("new", {"t"}));
  c.beat(consumer::beat("new", consumer::leaving_epoch));
  REQUIRE(c.modern() != nullptr);
  Coordinated::Old old = c.settle();
  REQUIRE(c.classic() != nullptr);
  c.leave(old);
  CHECK(code(c.beat(consumer::join_request("new", {"t"}))) == ErrorCode::none);
  CHECK(c.modern() != nullptr);
  CHECK(c.modern()->epoch == 2);
}

TEST_CASE("a group goes by the settings that it has of its own, from the next heartbeat on") {
  Coordinated c;
  consumer::Settings own = c.settings;
  own.session_timeout_ms = 60'000;
  own.heartbeat_interval_ms = 9000;
  const auto is_member = [&c] { return c.modern() && c.modern()->find("new") != nullptr; };
  CHECK(c.beat(consumer::join_request("new", {"t"})).heartbeat_interval_ms == 5000);
  c.state().set_settings_of_groups({{"other", c.settings}, {"g", own}});
  CHECK(c.beat(consumer::beat("new", 2)).heartbeat_interval_ms == 9000);
  c.pass(59'000);
  CHECK(is_member());
  c.state().set_settings_of_groups({});
  CHECK(c.beat(consumer::beat("new", 2)).heartbeat_interval_ms == 5000);
  c.pass(44'000);
  CHECK(is_member());
  c.pass(2'000);
  CHECK_FALSE(is_member());
}

TEST_CASE("expressions are looked up after the heartbeat that brings them") {
  Coordinated c;
  consumer::HeartbeatRequest join = consumer::join_request("new", {});
  join.subscribed_topic_regex = "t+";
  auto answer = c.beat(join);
  CHECK(consumer::assignment_of(answer).empty());
  c.pass(0);
  answer = c.beat(consumer::beat("new", answer.member_epoch));
  CHECK(consumer::count_of(consumer::assignment_of(answer)) == 4);
}

TEST_CASE("groups of both protocols are listed, described and deleted") {
  Coordinated c;
  c.beat(consumer::join_request("new", {"t"}));
  auto listed = c.state().list({}, {"consumer"});
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].state == "Stable");
  CHECK(listed[0].type == "consumer");
  CHECK(listed[0].protocol_type == "consumer");
  CHECK(c.state().list({"empty"}, {}).empty());
  CHECK(c.state().list({}, {"classic"}).empty());
  REQUIRE(c.state().describe_consumer("g"));
  CHECK_FALSE(c.state().describe("g"));
  CHECK(c.state().delete_group("g").answer == ErrorCode::non_empty_group);
  CHECK(c.state().check_fetch("g", "new", 2) == ErrorCode::none);
  CHECK(c.state().check_fetch("g", "new", 1) == ErrorCode::stale_member_epoch);
  c.beat(consumer::beat("new", consumer::leaving_epoch));
  const auto deleted = c.state().delete_group("g");
  CHECK(deleted.answer == ErrorCode::none);
  CHECK_FALSE(deleted.records.empty());
}

}  // namespace broker::groups
