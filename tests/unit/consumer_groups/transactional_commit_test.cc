// Offsets that members of the "consumer" protocol commit in a transaction.
#include <catch2/catch.hpp>

#include "broker/groups/group_shard.h"
#include "tests/unit/consumer_groups/world.h"

namespace broker::groups {
namespace {

using protocol::ErrorCode;

class TransactionalGroup {
 public:
  TransactionalGroup() : state_(Limits(), base::Random(1)) {
    topics_->add("t", 2);
    consumer::Settings settings;
    settings.assignment_interval_ms = 0;
    state_.set_consumer_settings(settings);
    state_.set_topics(topics_);
    join("m");
  }
  std::int32_t epoch = 0;  // that the member was last told

  void join(const std::string& id) { epoch = beat(consumer::join_request(id, {"t"})).member_epoch; }
  consumer::HeartbeatResponse beat(const consumer::HeartbeatRequest& request) {
    auto decided = state_.consumer_heartbeat(request, {1, "client", "/127.0.0.1"}, {1, 1000});
    for (const Record& one : decided.records) apply(one, {});
    return decided.answer;
  }
  std::vector<ErrorCode> commit(std::int32_t at_epoch, std::int16_t version,
                                const std::string& member = "m",
                                std::vector<std::string> metadata = {"x"}) {
    OffsetCommit what;
    what.group = "g";
    what.member_id = member;
    what.generation_or_epoch = at_epoch;
    const base::Uuid topic = topics_->find("t")->id;
    for (std::int32_t i = 0; std::string & one : metadata)
      what.entries.push_back({"t", topic, i++, 5, std::nullopt, std::move(one)});
    auto decided =
        state_.commit_in_transaction(what, {7, 0}, {version, "client", "/127.0.0.1"}, {1, 1000});
    for (const Record& one : decided.records) apply(one, decided.transaction->id);
    return decided.answer;
  }
  bool is_pending(std::int32_t partition) {
    return state_.pending_offsets().has("g", "t", partition);
  }
  GroupShard& state() { return state_; }

 private:
  void apply(const Record& one, std::optional<base::ProducerId> transaction) {
    const auto value = one.value ? std::optional<base::Bytes>(*one.value) : std::nullopt;
    REQUIRE(state_.apply(one.key, value, {next_offset_++, transaction}));
  }

  std::shared_ptr<consumer::FakeTopics> topics_ = std::make_shared<consumer::FakeTopics>();
  GroupShard state_;
  base::Offset next_offset_ = 0;
};

}  // namespace

TEST_CASE("a member commits in a transaction by its epoch") {
  TransactionalGroup g;
  CHECK(g.commit(g.epoch, 3).at(0) == ErrorCode::none);
  CHECK(g.is_pending(0));
  CHECK(g.commit(g.epoch, 3, "stranger").at(0) == ErrorCode::unknown_member_id);
  CHECK(g.commit(g.epoch + 1, 5).at(0) == ErrorCode::illegal_generation);
  CHECK(g.commit(g.epoch + 1, 6).at(0) == ErrorCode::stale_member_epoch);
  CHECK(g.commit(-1, 5, "").at(0) == ErrorCode::none);  // its transactional id fences it
  g.state().apply_marker(7, true);
  CHECK(g.state().offsets().find("g", "t", 0)->offset == 5);
}

TEST_CASE("a commit in a transaction from before a rebalance is good for what the member kept") {
  TransactionalGroup g;
  const std::int32_t before = g.epoch;
  g.join("n");  // takes one of the two partitions
  consumer::HeartbeatResponse now = g.beat(consumer::beat("m", before));
  const consumer::Partitions kept = consumer::assignment_of(now);
  REQUIRE(consumer::count_of(kept) == 1);
  now = g.beat(consumer::beat_owning("m", now.member_epoch, kept));
  REQUIRE(now.member_epoch > before);
  const bool first_kept = kept.begin()->second.contains(0);
  const std::string too_long(5000, 'x');
  // One partition that it has no more is the end of the whole request ...
  CHECK(g.commit(before, 5, "m", {"x", "x"}) == std::vector(2, ErrorCode::illegal_generation));
  CHECK(g.commit(before, 6, "m", {"x", "x"}) == std::vector(2, ErrorCode::stale_member_epoch));
  CHECK(g.state().pending_offsets() == PendingOffsets());
  // ... unless nothing of it would have been taken anyway.
  const std::vector<std::string> metadata = first_kept ? std::vector<std::string>{"x", too_long}
                                                       : std::vector{too_long, std::string("x")};
  CHECK(g.commit(before, 6, "m", metadata).at(first_kept ? 0 : 1) == ErrorCode::none);
  CHECK(g.is_pending(first_kept ? 0 : 1));
  CHECK(!g.is_pending(first_kept ? 1 : 0));
}

}  // namespace broker::groups
