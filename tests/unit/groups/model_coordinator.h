// A coordinator for tests: the pure core, a log of what it wrote and a clock. After each step what
// a replay of the log gives is compared with what is there.
#pragma once
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/groups/group_shard.h"
#include "tests/unit/model_core.h"

namespace broker::groups::test {

using protocol::ErrorCode;

inline base::Buffer bytes(std::string_view text) {
  base::Buffer out(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) out[i] = static_cast<std::byte>(text[i]);
  return out;
}

inline std::string text(base::Bytes from) {
  std::string out;
  for (const std::byte b : from) out += static_cast<char>(b);
  return out;
}

// As consumers send it: version 0, the topics, no user data.
inline base::Buffer subscription(const std::vector<std::string>& topics) {
  base::Buffer out;
  protocol::Writer writer(out);
  writer.num(std::int16_t{0});
  writer.num(static_cast<std::int32_t>(topics.size()));
  for (const std::string& one : topics) writer.text(one);
  writer.num(std::int32_t{-1});
  return out;
}

// A consumer as the coordinator sees it.
struct Consumer {
  std::string group = "g";
  std::string member_id = {};
  std::optional<std::string> instance_id = {};
  std::string protocol_type = "consumer";
  std::vector<std::pair<std::string, base::Buffer>> protocols = {{"range", subscription({"t"})}};
  std::int32_t session_ms = 10'000;
  std::int32_t rebalance_ms = 60'000;
  std::int16_t version = 9;
  std::int32_t generation = -1;  // what it was last told
};

// What stands in the log at an offset: a record, or the end of a transaction.
struct Entry {
  Place place;
  Record record = {};
  std::optional<bool> committed = {};  // set: the marker of place.transaction
};

class Coordinator : public broker::test::ModelCore<GroupShard> {
 public:
  explicit Coordinator(Limits limits = {}, std::uint64_t seed = 1) : limits_(limits), seed_(seed) {
    state_ = fresh();
    replica_ = fresh();
  }

  const ClassicGroup& group(const std::string& id = "g") {
    const auto at = state_->groups().find(id);
    REQUIRE(at != state_->groups().end());
    return std::get<ClassicGroup>(at->second);
  }
  bool has(const std::string& id = "g") { return state_->groups().contains(id); }
  std::vector<Entry>& log() { return log_; }

  Ticket begin_join(const Consumer& who) {
    protocol::JoinGroupRequest asked;
    asked.group_id = who.group;
    asked.session_timeout_ms = who.session_ms;
    asked.rebalance_timeout_ms = who.rebalance_ms;
    asked.member_id = who.member_id;
    asked.group_instance_id = who.instance_id;
    asked.protocol_type = who.protocol_type;
    for (const auto& [name, metadata] : who.protocols) asked.protocols.push_back({name, metadata});
    const Ticket ticket = ++last_ticket_;
    carry_out(state_->join(asked, {who.version, "client", "/127.0.0.1"}, ticket, now_));
    return ticket;
  }
  Ticket begin_sync(const Consumer& who, std::map<std::string, std::string> assignments = {}) {
    protocol::SyncGroupRequest asked;
    asked.group_id = who.group;
    asked.generation_id = who.generation;
    asked.member_id = who.member_id;
    asked.group_instance_id = who.instance_id;
    std::map<std::string, base::Buffer> kept;
    for (const auto& [member, what] : assignments) {
      kept[member] = bytes(what);
      asked.assignments.push_back({member, kept[member]});
    }
    const Ticket ticket = ++last_ticket_;
    carry_out(state_->sync(asked, ticket, now_));
    return ticket;
  }
  const JoinReply* joined(Ticket ticket) const {
    const auto at = replies_.find(ticket);
    return at == replies_.end() ? nullptr : &std::get<JoinReply>(at->second);
  }
  const SyncReply* synced(Ticket ticket) const {
    const auto at = replies_.find(ticket);
    return at == replies_.end() ? nullptr : &std::get<SyncReply>(at->second);
  }

  // Joins, with the id it is told if need be, and does not wait.
  Ticket begin_full_join(Consumer& who) {
    Ticket ticket = begin_join(who);
    const JoinReply* reply = joined(ticket);
    if (reply && reply->error == ErrorCode::member_id_required) {
      who.member_id = reply->member_id;
      ticket = begin_join(who);
    }
    return ticket;
  }
  // What a join that was answered says.
  const JoinReply& take(Consumer& who, Ticket ticket) {
    const JoinReply* reply = joined(ticket);
    REQUIRE(reply != nullptr);
    REQUIRE(reply->error == ErrorCode::none);
    who.member_id = reply->member_id;
    who.generation = reply->generation;
    return *reply;
  }
  // The only consumer of a new group, in its first generation.
  void settle(Consumer& who, const std::string& assignment = "all") {
    const Ticket ticket = begin_full_join(who);
    pass(limits_.initial_rebalance_delay_ms);
    take(who, ticket);
    const Ticket sync = begin_sync(who, {{who.member_id, assignment}});
    REQUIRE(synced(sync));
    REQUIRE(synced(sync)->error == ErrorCode::none);
  }
  ErrorCode heartbeat(const Consumer& who) {
    protocol::HeartbeatRequest asked;
    asked.group_id = who.group;
    asked.generation_id = who.generation;
    asked.member_id = who.member_id;
    asked.group_instance_id = who.instance_id;
    auto decided = state_->heartbeat(asked, now_);
    const ErrorCode error = decided.answer;
    carry_out(std::move(decided));
    return error;
  }
  ErrorCode leave(const std::string& group, const std::string& member_id,
                  std::optional<std::string> instance_id = {}) {
    protocol::LeaveGroupRequest asked;
    asked.group_id = group;
    asked.members.push_back({member_id, std::move(instance_id), std::nullopt});
    auto decided = state_->leave(asked, now_);
    const auto& answer = decided.answer;
    const std::int16_t error =
        answer.members.empty() ? answer.error_code : answer.members[0].error_code;
    carry_out(std::move(decided));
    return static_cast<ErrorCode>(error);
  }
  std::vector<ErrorCode> commit(const OffsetCommit& what, std::int16_t version = 9) {
    auto decided = state_->commit(what, {version, "client", "/127.0.0.1"}, now_);
    auto errors = decided.answer;
    carry_out(std::move(decided));
    return errors;
  }
  // One offset, from outside of the group or as the member.
  ErrorCode commit_one(const std::string& group, base::Offset offset, const Consumer* as = nullptr,
                       const std::string& topic = "t") {
    OffsetCommit what;
    what.group = group;
    if (as) {
      what.member_id = as->member_id;
      what.generation_or_epoch = as->generation;
      what.instance_id = as->instance_id;
    }
    what.entries.push_back({topic, {}, 0, offset, 3, "m"});
    return commit(what).at(0);
  }
  std::vector<ErrorCode> stage(base::ProducerId producer, const OffsetCommit& what,
                               std::int16_t version = 5) {
    auto decided =
        state_->commit_in_transaction(what, {producer, 0}, {version, "client", "/127.0.0.1"}, now_);
    auto errors = decided.answer;
    carry_out(std::move(decided));
    return errors;
  }
  // One offset, from outside of the group, in the producer's transaction.
  ErrorCode stage_one(base::ProducerId producer, const std::string& group, base::Offset offset,
                      const std::string& topic = "t") {
    OffsetCommit what;
    what.group = group;
    what.entries.push_back({topic, {}, 0, offset, 3, "m"});
    return stage(producer, what).at(0);
  }
  void end_transaction(base::ProducerId producer, bool committed) {
    state_->apply_marker(producer, committed);
    replica_->apply_marker(producer, committed);
    Place place;
    place.offset = log_end_++;
    place.transaction = producer;
    log_.push_back({place, {}, committed});
    check_replay();
  }
  void forget_topic(const std::string& topic) { carry_out(state_->forget_topic(topic)); }

  // All that is left is the log. Who waited hears nothing.
  void restart() {
    if (!log_.empty()) log_end_ = log_.back().place.offset + 1;
    load();
  }

  // As storage compacts: before the first transaction that is open only the last record of each key
  // is kept. Of aborted ones nothing need be kept either, nor what tombstones stand for.
  void compact() {
    std::map<base::ProducerId, std::pair<base::Offset, bool>> ends;  // seen from the end
    base::Offset bound = log_end_;
    std::vector<bool> aborted(log_.size(), false);
    for (std::size_t i = log_.size(); i-- > 0;) {
      const Entry& one = log_[i];
      if (!one.place.transaction) continue;
      const base::ProducerId producer = *one.place.transaction;
      if (one.committed) {
        ends[producer] = {one.place.offset, *one.committed};
      } else if (!ends.contains(producer)) {
        bound = one.place.offset;
      } else {
        aborted[i] = !ends[producer].second;
      }
    }
    std::map<base::Buffer, base::Offset> last;
    for (std::size_t i = 0; i < log_.size(); ++i) {
      const Entry& one = log_[i];
      if (!one.committed && !aborted[i] && one.place.offset < bound)
        last[one.record.key] = one.place.offset;
    }
    std::vector<Entry> kept;
    for (std::size_t i = 0; i < log_.size(); ++i) {
      const Entry& one = log_[i];
      const bool newest = !aborted[i] && one.record.value && last.contains(one.record.key) &&
                          last[one.record.key] == one.place.offset;
      if (one.committed || one.place.offset >= bound || newest) kept.push_back(one);
    }
    log_ = std::move(kept);
  }

  // `replica_` has heard of the records alone, each as it was written.
  void check_replay() {
    const GroupShard* other = replica_.get();
    CHECK(other->offsets() == state_->offsets());
    CHECK(other->pending_offsets() == state_->pending_offsets());
    for (const auto& [id, slot] : other->groups()) CHECK(has(id));
    for (const auto& [id, slot] : state_->groups()) {
      const auto& mine = std::get<ClassicGroup>(slot);
      const bool between = mine.is_in(ClassicState::preparing_rebalance) ||
                           mine.is_in(ClassicState::completing_rebalance);
      if (between) continue;  // the log still has the generation before
      const auto at = other->groups().find(id);
      if (at == other->groups().end()) {
        CHECK(mine.generation == 0);  // nothing to write down yet
        continue;
      }
      compare(mine, std::get<ClassicGroup>(at->second));
    }
  }

 private:
  std::unique_ptr<GroupShard> fresh() {
    return std::make_unique<GroupShard>(limits_, base::Random(seed_++));
  }
  std::unique_ptr<GroupShard> replayed() override {
    auto state = fresh();
    for (const Entry& one : log_) {
      if (one.committed)
        state->apply_marker(*one.place.transaction, *one.committed);
      else
        REQUIRE(apply(*state, one));
    }
    return state;
  }
  static bool apply(GroupShard& state, const Entry& one) {
    std::optional<base::Bytes> value;
    if (one.record.value) value = base::Bytes(*one.record.value);
    return state.apply(one.record.key, value, one.place);
  }
  void carry_out(Decision decision) override {
    Place place;
    if (decision.transaction) place.transaction = decision.transaction->id;
    for (Record& one : decision.records) {
      place.offset = log_end_++;
      log_.push_back({place, std::move(one)});
      REQUIRE(apply(*state_, log_.back()));
      REQUIRE(apply(*replica_, log_.back()));
    }
    for (Reply& one : decision.replies) {
      CHECK(!replies_.contains(one.ticket));  // nobody is answered twice
      replies_.emplace(one.ticket, std::move(one.answer));
    }
    check_replay();
  }
  static void compare(const ClassicGroup& mine, const ClassicGroup& other) {
    CHECK(mine.state == other.state);
    CHECK(mine.generation == other.generation);
    CHECK(mine.protocol_type == other.protocol_type);
    CHECK(mine.protocol == other.protocol);
    CHECK(mine.leader == other.leader);
    CHECK(mine.state_since_ms == other.state_since_ms);
    CHECK(mine.subscribed_topics() == other.subscribed_topics());
    REQUIRE(mine.members().size() == other.members().size());
    for (const auto& [id, member] : mine.members()) {
      const ClassicMember* same = other.find(id);
      REQUIRE(same != nullptr);
      CHECK(member.instance_id == same->instance_id);
      CHECK(member.client_id == same->client_id);
      CHECK(member.client_host == same->client_host);
      CHECK(member.session_timeout_ms == same->session_timeout_ms);
      CHECK(member.rebalance_timeout_ms == same->rebalance_timeout_ms);
      CHECK(member.assignment == same->assignment);
    }
  }

  Limits limits_;
  std::uint64_t seed_;
  std::vector<Entry> log_;
  base::Offset log_end_ = 0;
  Ticket last_ticket_ = 0;
  std::map<Ticket, std::variant<JoinReply, SyncReply>> replies_;
};

}  // namespace broker::groups::test
