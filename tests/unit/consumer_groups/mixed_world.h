// Clients of the classic protocol and the coordinator of a group that may be of either, for the
// simulation of both.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "broker/groups/consumer/embedded_protocol.h"
#include "broker/groups/group_shard.h"
#include "tests/unit/consumer_groups/world.h"

namespace broker::groups::mixed {

using consumer::ConsumerGroup;
using consumer::NamedPartitions;
using protocol::ErrorCode;

constexpr std::string_view the_group = "g";

// The groups of a partition, what they wrote, and a second that has heard of the records alone.
class Coordinated : public consumer::HeartbeatDoor {
 public:
  Coordinated(std::uint64_t seed, consumer::Settings settings)
      : settings_(std::move(settings)), seed_(seed) {
    topics_->add("t", static_cast<std::int32_t>(1 + seed % 5));
    topics_->add("u", static_cast<std::int32_t>(1 + seed % 3));
    state_ = fresh();
    replica_ = fresh();
  }

  const consumer::FakeTopics& topics() const { return *topics_; }
  const GroupShard& state() const { return *state_; }
  const ConsumerGroup* modern() const { return group_as<ConsumerGroup>(); }
  const ClassicGroup* classic() const { return group_as<ClassicGroup>(); }
  const std::string& problem() const { return problem_; }
  std::size_t written() const { return log_.size(); }

  consumer::HeartbeatResponse send(const consumer::HeartbeatRequest& request,
                                   std::int16_t version) override {
    if (const auto refusal = check_heartbeat(request, version, settings_))
      return consumer::refused_heartbeat(*refusal).response;
    auto decided = state_->consumer_heartbeat(request, {version, "new", "/127.0.0.1"}, now_);
    consumer::HeartbeatResponse answer = std::move(decided.answer);
    carry_out(std::move(decided));
    return answer;
  }
  Ticket join(const protocol::JoinGroupRequest& asked) {
    carry_out(state_->join(asked, {9, "old", "/127.0.0.1"}, ++last_ticket_, now_));
    return last_ticket_;
  }
  Ticket sync(const protocol::SyncGroupRequest& asked) {
    carry_out(state_->sync(asked, ++last_ticket_, now_));
    return last_ticket_;
  }
  template <class Reply>
  std::optional<Reply> reply(Ticket ticket) {
    const auto at = replies_.find(ticket);
    if (at == replies_.end()) return std::nullopt;
    return std::get<Reply>(at->second);
  }
  template <class Answer>
  Answer run(Decided<Answer> decided) {
    Answer answer = std::move(decided.answer);
    carry_out(std::move(decided));
    return answer;
  }
  GroupShard& door() { return *state_; }
  Now now() const { return now_; }

  void grow(const std::string& topic) {
    auto grown = std::make_shared<consumer::FakeTopics>(*topics_);
    grown->grow(topic, grown->find(topic)->partitions + 1);
    topics_ = std::move(grown);
    state_->set_topics(topics_);
  }
  void pass(std::int64_t ms) {
    const std::int64_t until = now_.monotonic_ms + ms;
    for (;;) {
      const auto due = state_->next_deadline_ms();
      if (!due || *due > until) break;
      advance(std::max(now_.monotonic_ms, *due));
      carry_out(*state_->expire(now_));
    }
    advance(until);
  }
  // All that is left is the log. Who waited hears nothing.
  void restart() {
    state_ = fresh();
    for (const Record& one : log_) apply(*state_, one);
    carry_out(state_->loaded(now_));
  }

 private:
  std::unique_ptr<GroupShard> fresh() {
    Limits limits;
    limits.initial_rebalance_delay_ms = seed_ % 2 ? 0 : 3000;
    auto state = std::make_unique<GroupShard>(limits, base::Random(++made_ * 1'000'003 + seed_));
    state->set_consumer_settings(settings_);
    state->set_topics(topics_);
    return state;
  }
  static bool apply(GroupShard& state, const Record& one) {
    return state.apply(one.key, one.value ? std::optional<base::Bytes>(*one.value) : std::nullopt,
                       Place());
  }
  void advance(std::int64_t monotonic_ms) {
    now_.wall_ms += monotonic_ms - now_.monotonic_ms;
    now_.monotonic_ms = monotonic_ms;
  }
  void carry_out(Decision decision) {
    for (const Record& one : decision.records) {
      if (!apply(*state_, one) || !apply(*replica_, one)) problem_ = "a record is not understood";
      log_.push_back(one);
    }
    for (Reply& one : decision.replies) {
      if (!replies_.emplace(one.ticket, std::move(one.answer)).second)
        problem_ = "somebody is answered twice";
    }
    compare();
  }
  void compare() {
    if (!(state_->offsets() == replica_->offsets())) problem_ = "a replay finds other offsets";
    const Group* mine = find(*state_);
    const Group* other = find(*replica_);
    const auto* classic_one = mine ? std::get_if<ClassicGroup>(mine) : nullptr;
    // Between two generations the log has the one before, or nothing yet.
    if (classic_one && !classic_one->is_in(ClassicState::stable) &&
        !(classic_one->is_in(ClassicState::empty) && classic_one->generation > 0))
      return;
    if (mine == nullptr && other == nullptr) return;
    if (mine == nullptr || other == nullptr) {
      problem_ = "a replay finds no group, or one too many";
    } else if (mine->index() != other->index()) {
      problem_ = "a replay finds another protocol";
    } else if (classic_one) {
      const auto& same = std::get<ClassicGroup>(*other);
      if (classic_one->generation != same.generation ||
          classic_one->members().size() != same.members().size())
        problem_ = "a replay finds another classic group";
    } else if (!(std::get<ConsumerGroup>(*mine) == std::get<ConsumerGroup>(*other))) {
      problem_ = "a replay finds another group";
    }
  }
  static const Group* find(const GroupShard& state) {
    const auto at = state.groups().find(the_group);
    return at == state.groups().end() ? nullptr : &at->second;
  }
  template <class Kind>
  const Kind* group_as() const {
    const Group* group = find(*state_);
    return group ? std::get_if<Kind>(group) : nullptr;
  }

  const consumer::Settings settings_;
  const std::uint64_t seed_;
  std::uint64_t made_ = 0;
  std::shared_ptr<consumer::FakeTopics> topics_ = std::make_shared<consumer::FakeTopics>();
  std::unique_ptr<GroupShard> state_, replica_;
  std::vector<Record> log_;
  Now now_{1'000, 1'700'000'000'000};
  Ticket last_ticket_ = 0;
  std::map<Ticket, std::variant<JoinReply, SyncReply>> replies_;
  std::string problem_;
};

// A consumer of the classic protocol that gives up everything before it joins.
class OldClient {
 public:
  std::string id;
  std::optional<std::string> instance_id;
  std::vector<std::string> names;
  std::int32_t generation = -1;
  bool stable = false;
  NamedPartitions owned;
  ErrorCode last_error = ErrorCode::none;

  bool leads() const { return stable && !led_.empty(); }
  bool waits() const { return joining_ || syncing_; }
  // What it does next when it is left alone.
  void go_on(Coordinated& c) {
    if (waits()) return hear(c);
    // A leader looks after the topics' partitions.
    if (stable && !led_.empty() && assigned_of_ != counts(c.topics()))
      join(c);
    else if (stable)
      beat(c);
    else if (generation >= 0)
      sync(c);
    else
      join(c);
    hear(c);
  }
  void join(Coordinated& c) {
    give_up();
    protocol::JoinGroupRequest asked;
    asked.group_id = the_group;
    asked.session_timeout_ms = 10'000;
    asked.rebalance_timeout_ms = 20'000;
    asked.member_id = id;
    asked.group_instance_id = instance_id;
    asked.protocol_type = "consumer";
    consumer::EmbeddedSubscription subscription;
    subscription.version = 1;
    subscription.topics = names;
    const base::Buffer metadata = encode_embedded(subscription);
    asked.protocols.push_back({"range", metadata});
    joining_ = c.join(asked);
  }
  void leave(Coordinated& c) {
    protocol::LeaveGroupRequest asked;
    asked.group_id = the_group;
    asked.members.push_back({id, instance_id, std::nullopt});
    c.run(c.door().leave(asked, c.now()));
  }
  // The connection broke: no answer will come.
  void disconnect() {
    joining_.reset();
    syncing_.reset();
    if (!stable) generation = -1;
  }

 private:
  void give_up() {
    owned.clear();
    stable = false;
    generation = -1;
  }
  void failed(ErrorCode error) {
    give_up();
    last_error = error;
    if (error == ErrorCode::unknown_member_id || error == ErrorCode::fenced_instance_id) id.clear();
  }
  void beat(Coordinated& c) {
    protocol::HeartbeatRequest asked;
    asked.group_id = the_group;
    asked.member_id = id;
    asked.group_instance_id = instance_id;
    asked.generation_id = generation;
    last_error = c.run(c.door().heartbeat(asked, c.now()));
    if (last_error == ErrorCode::none) return;
    failed(last_error);
    join(c);
  }
  void sync(Coordinated& c) {
    protocol::SyncGroupRequest asked;
    asked.group_id = the_group;
    asked.member_id = id;
    asked.group_instance_id = instance_id;
    asked.generation_id = generation;
    std::vector<base::Buffer> kept;
    assigned_of_ = counts(c.topics());
    for (const auto& [member, partitions] : assignments(c.topics())) {
      consumer::EmbeddedAssignment assignment;
      assignment.partitions = partitions;
      kept.push_back(encode_embedded(assignment));
      asked.assignments.push_back({member, {}});
    }
    for (std::size_t i = 0; i < kept.size(); ++i) asked.assignments[i].assignment = kept[i];
    syncing_ = c.sync(asked);
  }
  static std::pair<std::int32_t, std::int32_t> counts(const consumer::TopicsView& topics) {
    return {topics.find("t")->partitions, topics.find("u")->partitions};
  }
  // Of all members, if it leads: each partition to one of those that want its topic.
  std::map<std::string, NamedPartitions> assignments(const consumer::TopicsView& topics) const {
    std::map<std::string, NamedPartitions> out;
    for (const std::string topic : {"t", "u"}) {
      std::vector<std::string> who;
      for (const JoinReply::Member& one : led_) {
        const auto subscription = consumer::parse_embedded_subscription(one.metadata);
        out[one.member_id];
        if (std::ranges::find(subscription->topics, topic) != subscription->topics.end())
          who.push_back(one.member_id);
      }
      const std::int32_t count = topics.find(topic)->partitions;
      for (std::int32_t p = 0; p < count && !who.empty(); ++p)
        out[who[static_cast<std::size_t>(p) % who.size()]][topic].insert(p);
    }
    return out;
  }
  void hear(Coordinated& c) {
    if (joining_) {
      const auto told = c.reply<JoinReply>(*joining_);
      if (!told) return;
      joining_.reset();
      last_error = told->error;
      if (told->error == ErrorCode::member_id_required) {
        id = told->member_id;
      } else if (told->error != ErrorCode::none) {
        failed(told->error);
      } else {
        id = told->member_id;
        generation = told->generation;
        led_ = told->members;
      }
    }
    if (!syncing_) return;
    const auto told = c.reply<SyncReply>(*syncing_);
    if (!told) return;
    syncing_.reset();
    if (told->error != ErrorCode::none) return failed(told->error);
    last_error = ErrorCode::none;
    stable = true;
    if (const auto assignment = consumer::parse_embedded_assignment(told->assignment))
      owned = assignment->partitions;
  }

  std::optional<Ticket> joining_, syncing_;
  std::vector<JoinReply::Member> led_;
  std::pair<std::int32_t, std::int32_t> assigned_of_;
};

}  // namespace broker::groups::mixed
