// What of the source's group offsets is committed here, and as what (KIP-1279 j.3).
#include <catch2/catch.hpp>

#include "mirror/group_sync.h"

using namespace mirror;

namespace {

base::TopicPartition place(std::int32_t partition, unsigned char topic = 1) {
  base::TopicPartition id;
  id.topic_id.bytes[15] = static_cast<std::byte>(topic);
  id.partition = partition;
  return id;
}

// Offsets 10 to 100 are here, the last record in epoch 7.
GroupPartition partition_here(std::int32_t partition = 0) {
  return {.id = place(partition),
          .log_start = 10,
          .durable_end = 100,
          .end_epoch = 7,
          .leader_epoch = 20};
}

GroupPartitions one_partition() {
  return {{{"t", 0}, partition_here()}};
}

SourceGroup group_at(base::Offset offset, std::optional<base::LeaderEpoch> epoch = 5,
                     std::string metadata = "m") {
  SourceGroup group{.name = "g", .offsets = {}};
  group.offsets.push_back(
      {.topic = "t",
       .partition = 0,
       .committed = {.offset = offset, .leader_epoch = epoch, .metadata = std::move(metadata)}});
  return group;
}

PlannedGroup plan_one(const SourceGroup& group, const GroupPartitions& here,
                      const GroupMemory& memory = {}, std::int64_t now_ms = 0) {
  return plan_groups({group}, here, memory, now_ms).at(0);
}

}  // namespace

TEST_CASE("an offset within the copy is taken as it is") {
  for (const base::Offset offset : {10, 11, 99, 100}) {
    const PlannedGroup planned = plan_one(group_at(offset), one_partition());
    REQUIRE(planned.commit.offsets.size() == 1);
    const GroupOffset& ours = planned.commit.offsets[0];
    CHECK(ours.topic == "t");
    CHECK(ours.id == place(0));
    CHECK(ours.committed == CommittedOffset{.offset = offset, .leader_epoch = 5, .metadata = "m"});
    CHECK(planned.progress == GroupProgress{.offsets = 1, .clamped = 0, .behind = 0});
  }
}

TEST_CASE("E17: an offset outside of the copy is clamped, with the epoch of where it goes") {
  SECTION("ahead: the durable end, and told as such") {
    const PlannedGroup planned = plan_one(group_at(250), one_partition());
    CHECK(planned.commit.offsets.at(0).committed ==
          CommittedOffset{.offset = 100, .leader_epoch = 7, .metadata = "m"});
    CHECK(planned.progress == GroupProgress{.offsets = 1, .clamped = 1, .behind = 150});
  }
  SECTION("ahead, where the epoch at the durable end is not known: without one") {
    GroupPartitions here = one_partition();
    here.begin()->second.end_epoch.reset();
    CHECK_FALSE(plan_one(group_at(250), here).commit.offsets.at(0).committed.leader_epoch);
  }
  SECTION("below the log start: there, which is not behind") {
    const PlannedGroup planned = plan_one(group_at(3), one_partition());
    CHECK(planned.commit.offsets.at(0).committed.offset == 10);
    CHECK_FALSE(planned.commit.offsets.at(0).committed.leader_epoch);
    CHECK(planned.progress.clamped == 0);
  }
  SECTION("an empty log") {
    const GroupPartitions here{{{"t", 0}, {.id = place(0)}}};
    CHECK(plan_one(group_at(250), here).commit.offsets.at(0).committed.offset == 0);
  }
}

TEST_CASE("E19: 0 is an offset, -1 is none") {
  GroupPartitions here = one_partition();
  here.begin()->second.log_start = 0;
  CHECK(plan_one(group_at(0), here).commit.offsets.at(0).committed.offset == 0);
  const PlannedGroup none = plan_one(group_at(-1), here);
  CHECK(none.commit.offsets.empty());
  CHECK(none.progress.offsets == 0);
}

TEST_CASE("an epoch above our own is left out: consumers would look for newer metadata for ever") {
  CHECK(plan_one(group_at(50, 20), one_partition()).commit.offsets.at(0).committed.leader_epoch ==
        20);
  CHECK_FALSE(
      plan_one(group_at(50, 21), one_partition()).commit.offsets.at(0).committed.leader_epoch);
}

TEST_CASE("E14: only partitions that are mirrored") {
  SourceGroup group = group_at(50);
  group.offsets.push_back({.topic = "t", .partition = 1, .committed = {.offset = 1}});
  group.offsets.push_back({.topic = "other", .partition = 0, .committed = {.offset = 1}});
  const PlannedGroup planned = plan_one(group, one_partition());
  CHECK(planned.commit.offsets.size() == 1);
  CHECK(planned.progress.offsets == 1);
}

TEST_CASE("a round commits what changed, and everything once an hour") {
  GroupMemory memory;
  GroupPartitions here = one_partition();
  here.emplace(std::pair("t", 1), partition_here(1));
  SourceGroup group = group_at(50);
  group.offsets.push_back({.topic = "t", .partition = 1, .committed = {.offset = 60}});

  const PlannedGroup first = plan_one(group, here, memory, 1000);
  CHECK_FALSE(first.commit.renews);
  REQUIRE(first.commit.offsets.size() == 2);
  // What was not committed is planned again.
  CHECK(plan_one(group, here, memory, 2000).commit == first.commit);
  memory.remember(first.commit, 2000);
  CHECK(plan_one(group, here, memory, 3000).commit.offsets.empty());

  group.offsets[1].committed.offset = 61;
  const PlannedGroup moved = plan_one(group, here, memory, 4000);
  CHECK_FALSE(moved.commit.renews);
  REQUIRE(moved.commit.offsets.size() == 1);
  CHECK(moved.commit.offsets[0].id == place(1));
  memory.remember(moved.commit, 4000);

  SECTION("also back, and where only epoch or metadata changed") {
    group.offsets[1].committed.offset = 60;
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 1);
    group.offsets[1].committed.offset = 61;
    group.offsets[0].committed.leader_epoch = 6;
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 1);
    group.offsets[0].committed.leader_epoch = 5;
    group.offsets[0].committed.metadata = "n";
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 1);
  }
  SECTION("offsets that do not move would expire here") {
    CHECK(plan_one(group, here, memory, 2000 + group_renewal_ms - 1).commit.offsets.empty());
    const PlannedGroup renewed = plan_one(group, here, memory, 2000 + group_renewal_ms);
    CHECK(renewed.commit.offsets.size() == 2);
    CHECK(renewed.commit.renews);
    memory.remember(renewed.commit, 2000 + group_renewal_ms);
    CHECK(plan_one(group, here, memory, 2001 + group_renewal_ms).commit.offsets.empty());
  }
  SECTION("a topic that was created anew here has none of them") {
    for (auto& [name, partition] : here) partition.id = place(partition.id.partition, 2);
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 2);
  }
  SECTION("nor has a partition after its failover, or a group that was gone") {
    memory.forget(place(1));
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 1);
    memory.forget("g");
    CHECK(plan_one(group, here, memory, 5000).commit.offsets.size() == 2);
  }
}

TEST_CASE("what was clamped is raised when the copy has grown, and lowered when it was cut") {
  GroupMemory memory;
  GroupPartitions here = one_partition();
  const PlannedGroup first = plan_one(group_at(250), here, memory);
  memory.remember(first.commit, 0);
  CHECK(plan_one(group_at(250), here, memory).commit.offsets.empty());
  CHECK(plan_one(group_at(250), here, memory).progress.clamped == 1);

  here.begin()->second.durable_end = 240;
  const PlannedGroup raised = plan_one(group_at(250), here, memory);
  CHECK(raised.commit.offsets.at(0).committed.offset == 240);
  memory.remember(raised.commit, 0);
  here.begin()->second.durable_end = 260;
  const PlannedGroup complete = plan_one(group_at(250), here, memory);
  CHECK(complete.commit.offsets.at(0).committed ==
        CommittedOffset{.offset = 250, .leader_epoch = 5, .metadata = "m"});
  CHECK(complete.progress.clamped == 0);
  memory.remember(complete.commit, 0);

  here.begin()->second.durable_end = 90;
  CHECK(plan_one(group_at(250), here, memory).commit.offsets.at(0).committed.offset == 90);
}

TEST_CASE("which groups have consumers' offsets") {
  CHECK(is_consumer_group("consumer", ""));
  CHECK(is_consumer_group("", ""));
  CHECK(is_consumer_group("consumer", "Classic"));
  CHECK(is_consumer_group("consumer", "consumer"));
  CHECK_FALSE(is_consumer_group("connect", "classic"));
  CHECK_FALSE(is_consumer_group("share", "Share"));
  CHECK_FALSE(is_consumer_group("", "streams"));
}

TEST_CASE("in which states a partition's offsets are taken") {
  using enum MirrorState;
  for (const MirrorState state : {unknown, log_alignment, epoch_fencing, ule_recovery, mirroring,
                                  pausing, paused, stopping, stopped, failed})
    CHECK(takes_offsets(state) == (state == mirroring || state == epoch_fencing));
}
