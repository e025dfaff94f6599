// Records of other versions, and those that are none.
#include "protocol/messages/group_metadata.gen.h"
#include "protocol/messages/offset_commit_record.gen.h"
#include "protocol/record_frame.h"
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

base::Buffer offset_key() {
  protocol::OffsetCommitRecordKey key;
  key.group = "g";
  key.topic = "t";
  key.partition = 2;
  return protocol::frame_key(key);
}

base::Buffer group_key() {
  protocol::GroupMetadataKey key;
  key.group = "g";
  return protocol::frame_key(key);
}

GroupShard empty_state() {
  return GroupShard(Limits(), base::Random(1));
}

}  // namespace

TEST_CASE("offsets of every version are read") {
  protocol::OffsetCommitRecordValue value;
  value.offset = 9;
  value.leader_epoch = 4;
  value.metadata = "m";
  value.commit_timestamp = 100;
  for (std::int16_t version = 0; version <= 4; ++version) {
    GroupShard state = empty_state();
    REQUIRE(state.apply(offset_key(), protocol::frame_value(value, version), Place()));
    const CommittedOffset* found = state.offsets().find("g", "t", 2);
    REQUIRE(found);
    CHECK(found->offset == 9);
    CHECK(found->metadata == "m");
    CHECK(found->commit_timestamp_ms == 100);
    CHECK(found->leader_epoch == (version >= 3 ? std::optional(4) : std::nullopt));
    CHECK(!found->expire_timestamp_ms);  // C02
  }
  value.expire_timestamp = 200;
  GroupShard state = empty_state();
  REQUIRE(state.apply(offset_key(), protocol::frame_value(value, 1), Place()));
  CHECK(state.offsets().find("g", "t", 2)->expire_timestamp_ms == 200);
}

TEST_CASE("an offset with a key of the oldest type is read") {
  GroupShard state = empty_state();
  base::Buffer key = offset_key();
  key[1] = std::byte{0};
  REQUIRE(state.apply(key, protocol::frame_value(protocol::OffsetCommitRecordValue(), 0), Place()));
  CHECK(state.offsets().count() == 1);
  REQUIRE(state.apply(key, std::nullopt, Place()));
  CHECK(state.offsets().count() == 0);
}

TEST_CASE("groups of every version are read") {
  protocol::GroupMetadataValue value;
  value.protocol_type = "consumer";
  value.generation = 5;
  value.protocol = "range";
  value.leader = "m1";
  value.current_state_timestamp = 77;
  const base::Buffer asked = subscription({"t"});
  const base::Buffer assigned = bytes("all");
  auto& member = value.members.emplace_back();
  member.member_id = "m1";
  member.group_instance_id = "i1";
  member.session_timeout = 10'000;
  member.rebalance_timeout = 20'000;
  member.subscription = asked;
  member.assignment = assigned;
  for (std::int16_t version = 0; version <= 4; ++version) {
    GroupShard state = empty_state();
    REQUIRE(state.apply(group_key(), protocol::frame_value(value, version), Place()));
    const auto& group = std::get<ClassicGroup>(state.groups().at("g"));
    CHECK(group.generation == 5);
    CHECK(group.is_in(ClassicState::stable));
    CHECK(group.state_since_ms == (version >= 2 ? std::optional<std::int64_t>(77) : std::nullopt));
    const ClassicMember* found = group.find("m1");
    REQUIRE(found);
    CHECK(found->rebalance_timeout_ms == (version >= 1 ? 20'000 : 10'000));
    CHECK(found->instance_id.has_value() == (version >= 3));
    CHECK(text(found->assignment) == "all");
    CHECK(group.is_subscribed_to("t"));
    CHECK(!group.is_subscribed_to("u"));
  }
}

TEST_CASE("a leader that is no member does not lead") {
  protocol::GroupMetadataValue value;
  value.protocol_type = "consumer";
  value.protocol = "range";
  value.leader = "gone";
  for (const char* id : {"b", "a"}) value.members.emplace_back().member_id = id;
  GroupShard state = empty_state();
  REQUIRE(state.apply(group_key(), protocol::frame_value(value, 3), Place()));
  CHECK(std::get<ClassicGroup>(state.groups().at("g")).is_leader("a"));
}

TEST_CASE("a subscription that is none is not known") {
  protocol::GroupMetadataValue value;
  value.protocol_type = "consumer";
  value.protocol = "range";
  const base::Buffer damaged = bytes("\1");
  auto& member = value.members.emplace_back();
  member.member_id = "m";
  member.subscription = damaged;
  GroupShard state = empty_state();
  REQUIRE(state.apply(group_key(), protocol::frame_value(value, 3), Place()));
  const auto& group = std::get<ClassicGroup>(state.groups().at("g"));
  CHECK(!group.subscribed_topics());
  CHECK(group.is_subscribed_to("anything"));  // it may be
}

TEST_CASE("what is no record of ours changes nothing") {
  GroupShard state = empty_state();
  const base::Buffer good = protocol::frame_value(protocol::OffsetCommitRecordValue(), 3);
  CHECK(!state.apply({}, std::nullopt, Place()));
  CHECK(!state.apply(bytes("x"), good, Place()));
  CHECK(!state.apply(bytes(std::string("\0\x63zz", 4)), good, Place()));  // type 99
  base::Buffer cut = offset_key();
  cut.pop_back();
  CHECK(!state.apply(cut, good, Place()));
  CHECK(!state.apply(offset_key(), base::Bytes(), Place()));
  base::Buffer later = good;
  later[1] = std::byte{9};
  CHECK(!state.apply(offset_key(), later, Place()));
  CHECK(!state.apply(group_key(), bytes(std::string("\0\3", 2)), Place()));
  CHECK(state.groups().empty());
  CHECK(state.offsets().count() == 0);
  CHECK(state.apply(group_key(), std::nullopt, Place()));  // a tombstone of what is not there
}
