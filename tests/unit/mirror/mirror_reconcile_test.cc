#include <array>
#include <catch2/catch.hpp>

#include "mirror/reconcile.h"

using namespace mirror;
using enum MirrorState;

namespace {

base::Uuid id(unsigned char n) {
  base::Uuid out;
  out.bytes[15] = static_cast<std::byte>(n);
  return out;
}

LocalPartition part(MirrorState state) {
  LocalPartition p;
  p.state = state;
  p.leader_epoch = 20;
  p.fetches_from = 1;
  return p;
}

Here here_with(MirrorState desired, std::vector<LocalPartition> partitions) {
  Here here;
  here.states_loaded = true;
  here.source_cluster_id = "A";
  here.topics.push_back({.name = "t",
                         .id = id(1),
                         .desired = desired,
                         .excluded = false,
                         .partitions = std::move(partitions)});
  return here;
}

Source source_with(std::vector<SourceTopic> topics) {
  return {.reachable = true, .complete = true, .cluster_id = "A", .topics = std::move(topics)};
}

SourceTopic topic(std::string name, unsigned char n, std::size_t partitions, bool included = true) {
  SourceTopic t{.name = std::move(name), .id = id(n), .included = included, .partitions = {}};
  t.partitions.assign(partitions, SourcePartition{.leader = 1, .leader_epoch = 3});
  return t;
}

std::vector<Request> plan(const Here& here, const Source& source) {
  return reconcile(here, source, {}).requests;
}

Request command(PartitionCommand c, std::int32_t partition = 0) {
  return CommandPartition{"t", partition, c};
}

}  // namespace

TEST_CASE("desired and actual state give the command, level-triggered") {
  struct Row {
    MirrorState desired, actual;
    std::optional<PartitionCommand> expected;
  };
  using enum PartitionCommand;
  const Row rows[] = {
      {mirroring, unknown, start},
      {mirroring, stopped, start},
      {mirroring, paused, resume},
      {mirroring, pausing, std::nullopt},
      {mirroring, mirroring, std::nullopt},
      {mirroring, failed, std::nullopt},
      {mirroring, stopping, std::nullopt},
      {paused, mirroring, pause},
      {paused, log_alignment, pause},
      {paused, epoch_fencing, pause},
      {paused, ule_recovery, pause},
      {paused, failed, pause},
      {paused, paused, std::nullopt},
      {paused, unknown, std::nullopt},
      {paused, stopped, std::nullopt},
      {stopped, mirroring, stop},
      {stopped, failed, stop},
      {stopped, paused, stop},
      {stopped, unknown, stop},
      {stopped, log_alignment, stop},
      {stopped, stopping, std::nullopt},
      {stopped, stopped, std::nullopt},
      {unknown, unknown, std::nullopt},
      {unknown, mirroring, std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(name(row.desired), name(row.actual));
    const auto requests = reconcile_commands(here_with(row.desired, {part(row.actual)}));
    if (row.expected)
      CHECK(requests == std::vector<Request>{command(*row.expected)});
    else
      CHECK(requests.empty());
  }
}

TEST_CASE("stop needs nothing of the source, and a final failure does not hold it up") {
  Here here = here_with(stopped, {part(failed)});
  here.topics[0].partitions[0].final_failure = true;
  CHECK(plan(here, Source{}) == std::vector<Request>{command(PartitionCommand::stop)});
}

TEST_CASE("nothing is commanded before the states are loaded") {
  Here here = here_with(mirroring, {part(unknown)});
  here.states_loaded = false;
  CHECK(reconcile_commands(here).empty());
  CHECK(plan(here, Source{}).empty());
}

TEST_CASE("included topics are created with id and partition count; stopped ones stay stopped") {
  Here here = here_with(stopped, {part(stopped)});
  const auto requests =
      plan(here, source_with({topic("t", 1, 1), topic("new", 2, 3), topic("no", 3, 1, false)}));
  CHECK(requests == std::vector<Request>{CreateTopic{"new", id(2), 3}});
}

TEST_CASE("a source without ids has its topics created all the same") {
  Here here;
  here.states_loaded = true;
  CHECK(plan(here, source_with({topic("old", 0, 2)})) ==
        std::vector<Request>{RememberCluster{"A"}, CreateTopic{"old", id(0), 2}});
}

TEST_CASE("a name or an id that is taken is a conflict, never an attachment") {
  Here here;
  here.states_loaded = true;
  here.source_cluster_id = "A";
  here.other_topics = {{"same", id(1), ""},
                       {"other-id", id(2), ""},
                       {"mirrored", id(3), "m2"},
                       {"renamed", id(4), ""},
                       {"idless", id(5), ""}};
  Source source =
      source_with({topic("same", 1, 1), topic("other-id", 9, 1), topic("mirrored", 3, 1),
                   topic("fresh", 4, 1), topic("idless", 0, 1)});
  CHECK(to_be_adopted(here, source) == std::vector<std::string>{"same"});
  source.topics[0].reverse = Reverse::none;
  const auto requests = plan(here, source);
  REQUIRE(requests.size() == 5);
  CHECK(requests[0] == Request{CreateTopic{"same", id(1), 1}});
  for (std::size_t i = 1; i < 5; ++i) CHECK(std::holds_alternative<Conflict>(requests[i]));
}

TEST_CASE("a topic of ours is attached only once the source was asked for a mirror of it from us") {
  Here here;
  here.states_loaded = true;
  here.source_cluster_id = "A";
  here.other_topics = {{"t", id(1), ""}};
  Source source = source_with({topic("t", 1, 2)});
  CHECK(plan(here, source).empty());
  const std::vector<Request> attach = {CreateTopic{"t", id(1), 2}};
  for (const Reverse fine : {Reverse::unsupported, Reverse::none, Reverse::stopped}) {
    source.topics[0].reverse = fine;
    CHECK(plan(here, source) == attach);
  }
  for (const Reverse bad : {Reverse::loop, Reverse::not_stopped}) {
    source.topics[0].reverse = bad;
    const auto requests = plan(here, source);
    REQUIRE(requests.size() == 1);
    CHECK(std::holds_alternative<Conflict>(requests[0]));
  }
}

TEST_CASE("partitions follow the source, never downwards") {
  CHECK(plan(here_with(mirroring, {part(mirroring)}), source_with({topic("t", 1, 3)})) ==
        std::vector<Request>{AddPartitions{"t", 3}});
  CHECK(plan(here_with(mirroring, {part(mirroring), part(mirroring)}),
             source_with({topic("t", 1, 1)}))
            .empty());
  CHECK(plan(here_with(paused, {part(paused)}), source_with({topic("t", 1, 3)})) ==
        std::vector<Request>{AddPartitions{"t", 3}});
}

TEST_CASE("the fetcher follows the source's leader; none is no leader to follow") {
  Source source = source_with({topic("t", 1, 2)});
  source.topics[0].partitions[0].leader = 2;
  source.topics[0].partitions[1].leader.reset();
  CHECK(plan(here_with(mirroring, {part(mirroring), part(mirroring)}), source) ==
        std::vector<Request>{AssignLeader{"t", 0, 2, 3}});
  CHECK(plan(here_with(paused, {part(paused), part(paused)}), source).empty());
}

TEST_CASE("epochs are bumped ahead for MIRRORING partitions only") {
  Source source = source_with({topic("t", 1, 1)});
  source.topics[0].partitions[0].leader_epoch = 17;
  CHECK(plan(here_with(mirroring, {part(mirroring)}), source).empty());
  source.topics[0].partitions[0].leader_epoch = 18;
  CHECK(plan(here_with(mirroring, {part(mirroring)}), source) ==
        std::vector<Request>{BumpAhead{"t", 0, 18}});
  CHECK(plan(here_with(mirroring, {part(log_alignment)}), source).empty());
}

TEST_CASE("partitions that failed for want of the source are told that it is back") {
  Here here = here_with(mirroring, {part(failed), part(failed), part(failed)});
  here.topics[0].partitions[0].unreachable = true;
  here.topics[0].partitions[2].unreachable = true;
  Source source = source_with({topic("t", 1, 3)});
  source.topics[0].partitions[2].leader.reset();  // no leader: still nothing to fetch from
  CHECK(plan(here, source) == std::vector<Request>{command(PartitionCommand::source_returned)});
  source.reachable = false;
  CHECK(plan(here, source).empty());
}

TEST_CASE("partitions whose source's metadata were behind are told when these have followed") {
  Here here = here_with(mirroring, {part(failed)});
  here.topics[0].partitions[0].behind_epoch = 7;
  Source source = source_with({topic("t", 1, 1)});
  source.topics[0].partitions[0].leader_epoch = 7;
  CHECK(plan(here, source).empty());
  source.topics[0].partitions[0].leader_epoch = 8;
  CHECK(plan(here, source) == std::vector<Request>{command(PartitionCommand::source_returned)});
  here.topics[0].partitions[0].final_failure = true;
  CHECK(plan(here, source).empty());
}

TEST_CASE(
    "another topic id fails the topic at once, without partitions or leaders being followed") {
  const auto requests =
      plan(here_with(mirroring, {part(mirroring)}), source_with({topic("t", 7, 5)}));
  REQUIRE(requests.size() == 1);
  CHECK(std::get<FailTopic>(requests[0]).failure == Failure::topic_recreated);
}

TEST_CASE("ids that a source gets by an upgrade are remembered, and told apart from then on") {
  Here here = here_with(mirroring, {part(mirroring)});
  const Source source = source_with({topic("t", 7, 1)});
  here.topics[0].source_id = base::Uuid();  // it had none when the topic was attached
  CHECK(plan(here, source) == std::vector<Request>{RememberTopicId{"t", id(7)}});
  here.topics[0].source_id = id(7);
  CHECK(plan(here, source).empty());
  // A broker that was not upgraded yet answers.
  CHECK(plan(here, source_with({topic("t", 0, 1)})).empty());
  for (const unsigned char other : std::array<unsigned char, 2>{1, 8}) {
    const auto requests = plan(here, source_with({topic("t", other, 1)}));
    REQUIRE(requests.size() == 1);
    CHECK(std::get<FailTopic>(requests[0]).failure == Failure::topic_recreated);
  }
}

TEST_CASE("a topic is deleted when two complete listings in a row lack it") {
  const Here here = here_with(mirroring, {part(mirroring)});
  const Source without = source_with({topic("other", 2, 1, false)});
  Plan p = reconcile(here, without, {});
  CHECK(p.requests.empty());
  p = reconcile(here, without, p.memory);
  REQUIRE(p.requests.size() == 1);
  CHECK(p.requests[0] ==
        Request{FailTopic{"t", Failure::topic_deleted, "The source topic is deleted"}});
}

TEST_CASE("absence counts only where everything was listed, and in a row") {
  const Here here = here_with(mirroring, {part(mirroring)});
  const Source without = source_with({topic("other", 2, 1, false)});
  Source cut_short = without;
  cut_short.complete = false;
  Source away = without;
  away.reachable = false;
  Plan p = reconcile(here, without, {});
  for (int i = 0; i < 5; ++i) {
    p = reconcile(here, cut_short, p.memory);
    CHECK(p.requests.empty());
    p = reconcile(here, away, p.memory);
    CHECK(p.requests.empty());
  }
  p = reconcile(here, source_with({topic("t", 1, 1)}), p.memory);  // it is back
  p = reconcile(here, without, p.memory);
  CHECK(p.requests.empty());
}

TEST_CASE("a source that has just started and lists nothing has not deleted everything") {
  const Here here = here_with(mirroring, {part(mirroring)});
  Plan p;
  for (int i = 1; i < absences_for_deletion_when_empty; ++i) {
    p = reconcile(here, source_with({}), p.memory);
    CHECK(p.requests.empty());
  }
  p = reconcile(here, source_with({}), p.memory);
  REQUIRE(p.requests.size() == 1);
  CHECK(std::holds_alternative<FailTopic>(p.requests[0]));
}

TEST_CASE("a failed topic is not failed again, a stopped one never") {
  const Source without = source_with({topic("other", 2, 1, false)});
  const SyncMemory seen{.absent = {{"t", 4}}};
  Here here = here_with(mirroring, {part(failed)});
  here.topics[0].partitions[0].final_failure = true;
  CHECK(reconcile(here, without, seen).requests.empty());
  CHECK(reconcile(here_with(stopped, {part(stopped)}), without, seen).requests.empty());
  // Nor is one paused whose reason would then be lost.
  here.topics[0].desired = paused;
  CHECK(reconcile(here, without, seen).requests.empty());
}

TEST_CASE("another cluster fails what is mirrored and is otherwise not listened to") {
  Source source = source_with({topic("t", 1, 4), topic("new", 2, 1)});
  source.cluster_id = "B";
  const auto requests = plan(here_with(mirroring, {part(mirroring)}), source);
  REQUIRE(requests.size() == 1);
  CHECK(std::get<FailTopic>(requests[0]).failure == Failure::cluster_changed);
  Here here = here_with(stopped, {part(mirroring)});
  CHECK(plan(here, source) == std::vector<Request>{command(PartitionCommand::stop)});
}

TEST_CASE("a source that does not name its cluster is neither remembered nor another one") {
  Source source = source_with({topic("t", 1, 1)});
  source.cluster_id.reset();
  CHECK(plan(here_with(mirroring, {part(mirroring)}), source).empty());
  Here here;
  here.states_loaded = true;
  source.topics.clear();
  CHECK(plan(here, source).empty());
}

TEST_CASE("a topic that is excluded now is stopped by its desired state") {
  Here here = here_with(mirroring, {part(mirroring)});
  here.topics[0].excluded = true;
  CHECK(plan(here, source_with({topic("t", 1, 1, false)})) == std::vector<Request>{StopTopic{"t"}});
}

TEST_CASE("memory forgets topics that are not mirrored any more") {
  Here here;
  here.states_loaded = true;
  here.source_cluster_id = "A";
  const Plan p = reconcile(here, source_with({}), {.absent = {{"gone", 1}}});
  CHECK(p.memory.absent.empty());
}
