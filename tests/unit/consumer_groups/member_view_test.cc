// What members may commit and fetch, what tools see of a group, and what clients of the classic
// protocol say in their opaque bytes.
#include <catch2/catch.hpp>

#include "broker/groups/consumer/describe.h"
#include "broker/groups/consumer/embedded_protocol.h"
#include "broker/groups/consumer/offset_fence.h"
#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;
using protocol::ErrorCode;

namespace {

// Members a and b: partitions 0 and 1 stayed with a since epoch 2, b has 2 and 3 since epoch 3.
struct Settled : World {
  Settled() {
    topics.add("t", 4);
    send(join_request("a", {"t"}));
    send(join_request("b", {"t"}));
    send(beat("a", 2));
    send(beat_owning("a", 2, assigned("a")));
    send(beat("b", 3));
  }
  ErrorCode commit(const std::string& member_id, std::int32_t epoch, std::int32_t partition,
                   std::int16_t version = 9, bool transactional = false) const {
    const CommitFence fence(*group, {member_id, std::nullopt, epoch, version, transactional});
    return fence.error_of(topic_uuid(1), partition);
  }
};

}  // namespace

TEST_CASE("commits are fenced by the member's epoch, and by that of each partition") {
  const Settled w;
  CHECK(w.commit("a", 3, 0) == ErrorCode::none);
  CHECK(w.commit("a", 3, 3) == ErrorCode::none);  // its epoch is right: Kafka looks no further
  CHECK(w.commit("a", 2, 0) == ErrorCode::none);
  CHECK(w.commit("a", 1, 0) == ErrorCode::stale_member_epoch);
  CHECK(w.commit("a", 4, 0) == ErrorCode::stale_member_epoch);
  CHECK(w.commit("a", 2, 2) == ErrorCode::stale_member_epoch);
  CHECK(w.commit("b", 2, 2) == ErrorCode::stale_member_epoch);
  CHECK(w.commit("c", 3, 0) == ErrorCode::unknown_member_id);
  CHECK(w.commit("", -1, 0) == ErrorCode::unknown_member_id);
  CHECK(w.commit("a", 3, 0, 8) == ErrorCode::unsupported_version);
  CHECK(w.commit("a", 3, 0, 3, true) == ErrorCode::none);
  CHECK(w.commit("", -1, 0, 3, true) == ErrorCode::none);
  CHECK(w.commit("", 1, 0, 3, true) == ErrorCode::unknown_member_id);
  const CommitFence behind(*w.group, {"a", std::nullopt, 2, 9, false});
  CHECK(behind.error() == ErrorCode::none);
  CHECK(behind.error_of(std::nullopt, 0) == ErrorCode::stale_member_epoch);
}

TEST_CASE("what a member has yet to give up it may still commit") {
  Settled w;
  w.send(join_request("c", {"t"}));
  w.send(join_request("d", {"t"}));
  w.send(beat("a", 3));
  const Member& a = w.member("a");
  REQUIRE(a.state == MemberState::unrevoked_partitions);
  const std::int32_t revoking = a.revoking.at(topic_uuid(1)).begin()->first;
  CHECK(w.commit("a", 2, revoking) == ErrorCode::none);
}

TEST_CASE("an empty group takes commits of tools") {
  World w;
  w.topics.add("t", 1);
  w.send(join_request("a", {"t"}));
  w.send(beat("a", leaving_epoch));
  CHECK(CommitFence(*w.group, {"", std::nullopt, -1, 9, false}).error() == ErrorCode::none);
  CHECK(CommitFence(*w.group, {"a", std::nullopt, 2, 9, false}).error() ==
        ErrorCode::unknown_member_id);
}

TEST_CASE("who may fetch offsets") {
  const Settled w;
  CHECK(check_offset_fetch(*w.group, std::nullopt, -1) == ErrorCode::none);
  CHECK(check_offset_fetch(*w.group, "a", 3) == ErrorCode::none);
  CHECK(check_offset_fetch(*w.group, "a", 2) == ErrorCode::stale_member_epoch);
  CHECK(check_offset_fetch(*w.group, "x", 3) == ErrorCode::unknown_member_id);
  CHECK(check_offset_fetch(*w.group, std::nullopt, 3) == ErrorCode::unknown_member_id);
}

TEST_CASE("a group as it is described") {
  Settled w;
  const auto group = describe(*w.group, w.topics, w.settings);
  CHECK(group.group_id == "g");
  CHECK(group.group_state == "Stable");
  CHECK(group.group_epoch == 3);
  CHECK(group.assignment_epoch == 3);
  CHECK(group.assignor_name == "uniform");
  REQUIRE(group.members.size() == 2);
  const auto& a = group.members[0];
  CHECK(a.member_id == "a");
  CHECK(a.client_id == "client");
  CHECK(a.client_host == "/127.0.0.1");
  CHECK(a.member_type == 1);
  CHECK(a.subscribed_topic_names == std::vector<std::string>{"t"});
  REQUIRE(a.assignment.topic_partitions.size() == 1);
  CHECK(a.assignment.topic_partitions[0].topic_name == "t");
  CHECK(a.assignment.topic_partitions[0].partitions == std::vector<std::int32_t>{0, 1});
  CHECK(a.target_assignment.topic_partitions[0].partitions == std::vector<std::int32_t>{0, 1});
  // What is yet to be given up is shown as well.
  w.send(join_request("c", {"t"}));
  w.send(join_request("d", {"t"}));
  w.send(beat("a", 3));
  REQUIRE_FALSE(w.member("a").revoking.empty());
  const auto moving = describe(*w.group, w.topics, w.settings);
  CHECK(moving.group_state == "Reconciling");
  CHECK(moving.members[0].assignment.topic_partitions[0].partitions.size() == 2);
  w.topics.remove("t");
  CHECK(describe(*w.group, w.topics, w.settings).members[0].assignment.topic_partitions.empty());
}

TEST_CASE("subscriptions and assignments in opaque bytes") {
  EmbeddedSubscription subscription;
  subscription.topics = {"t", "u"};
  subscription.user_data = base::to_buffer(base::as_bytes("x"));
  subscription.owned = {{"t", {0, 2}}};
  subscription.generation = 7;
  subscription.rack = "r";
  for (std::int16_t version = 0; version <= 3; ++version) {
    subscription.version = version;
    const base::Buffer bytes = encode_embedded(subscription);
    const auto read = parse_embedded_subscription(bytes);
    REQUIRE(read);
    CHECK(read->topics == subscription.topics);
    CHECK(read->user_data == subscription.user_data);
    CHECK(read->owned == (version >= 1 ? subscription.owned : NamedPartitions{}));
    CHECK(read->generation == (version >= 2 ? 7 : -1));
    CHECK(read->rack == (version >= 3 ? subscription.rack : std::nullopt));
    for (std::size_t n = 0; n < bytes.size(); ++n)
      CHECK_FALSE(parse_embedded_subscription(base::Bytes(bytes).first(n)));
  }
  // A later version has more at the end.
  base::Buffer later = encode_embedded(subscription);
  later[1] = std::byte{9};
  later.push_back(std::byte{1});
  CHECK(parse_embedded_subscription(later));
  later[0] = std::byte{0xff};
  CHECK_FALSE(parse_embedded_subscription(later));

  const EmbeddedAssignment assignment{1, {{"t", {0, 2}}}, std::nullopt};
  const base::Buffer bytes = encode_embedded(assignment);
  CHECK(base::to_hex(bytes) ==
        "0001"
        "00000001"
        "000174"
        "00000002"
        "0000000000000002"
        "ffffffff");
  REQUIRE(parse_embedded_assignment(bytes));
  CHECK(parse_embedded_assignment(bytes)->partitions == assignment.partitions);
  CHECK_FALSE(parse_embedded_assignment(base::Bytes(bytes).first(8)));
}
