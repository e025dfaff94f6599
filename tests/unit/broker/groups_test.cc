// Consumer groups through a whole broker: restarts, full disks, the end of the process, the
// mirror's door, and that of transactions.
#include <thread>

#include "broker/group_coordinator.h"
#include "protocol/messages/find_coordinator.gen.h"
#include "protocol/messages/heartbeat.gen.h"
#include "protocol/messages/join_group.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_commit.gen.h"
#include "protocol/messages/offset_fetch.gen.h"
#include "protocol/messages/sync_group.gen.h"
#include "protocol/messages/txn_offset_commit.gen.h"
#include "tests/unit/broker/locked_files.h"
#include "tests/unit/broker/requests.h"

namespace broker::test {
namespace {

using namespace std::chrono_literals;

// Here offsets come in transactions that no coordinator knows of.
const std::string unverified = "transaction.partition.verification.enable=false";
const std::vector<std::string> few_partitions = {"offsets.topic.num.partitions=4",
                                                 "group.initial.rebalance.delay.ms=0", unverified};

std::int16_t find_coordinator(Client& client) {
  protocol::FindCoordinatorRequest asked;
  asked.coordinator_keys = {"g"};
  return client.call<protocol::FindCoordinatorResponse>(4, asked).coordinators.at(0).error_code;
}

std::int16_t commit(Client& client, const std::string& group, base::Offset offset,
                    const std::string& topic = "t", std::int32_t generation = -1,
                    const std::string& member = {}) {
  protocol::OffsetCommitRequest asked;
  asked.group_id = group;
  asked.generation_id_or_member_epoch = generation;
  asked.member_id = member;
  auto& to = asked.topics.emplace_back();
  to.name = topic;
  auto& one = to.partitions.emplace_back();
  one.committed_offset = offset;
  one.committed_metadata = "";
  return client.call<protocol::OffsetCommitResponse>(8, asked)
      .topics.at(0)
      .partitions.at(0)
      .error_code;
}

// -1: nothing was committed. While the groups are loaded it is asked again.
base::Offset committed(Client& client, const std::string& group, const std::string& topic = "t") {
  protocol::OffsetFetchRequest asked;
  asked.group_id = group;
  auto& of = asked.topics.emplace().emplace_back();
  of.name = topic;
  of.partition_indexes = {0};
  for (int i = 0; i < 200; ++i) {
    const auto answer = client.call<protocol::OffsetFetchResponse>(7, asked);
    if (answer.error_code == number(ErrorCode::coordinator_load_in_progress)) {
      std::this_thread::sleep_for(10ms);
      continue;
    }
    REQUIRE(answer.error_code == 0);
    return answer.topics.at(0).partitions.at(0).committed_offset;
  }
  FAIL("the groups are not loaded");
  return 0;
}

constexpr base::ProducerId some_producer = 4000;

std::int16_t stage(Client& client, const std::string& group, base::Offset offset,
                   base::ProducerEpoch epoch = 3, base::ProducerId producer = some_producer,
                   std::size_t metadata_bytes = 0) {
  protocol::TxnOffsetCommitRequest asked;
  asked.transactional_id = "transactional";
  asked.group_id = group;
  asked.producer_id = producer;
  asked.producer_epoch = epoch;
  auto& to = asked.topics.emplace_back();
  to.name = "t";
  auto& one = to.partitions.emplace_back();
  one.committed_offset = offset;
  one.committed_metadata = std::string(metadata_bytes, 'm');
  return client.call<protocol::TxnOffsetCommitResponse>(3, asked)
      .topics.at(0)
      .partitions.at(0)
      .error_code;
}

// As a consumer that reads only what is committed asks.
protocol::OffsetFetchResponse::Group stable(Client& client, const std::string& group,
                                            bool all = false) {
  protocol::OffsetFetchRequest asked;
  asked.require_stable = true;
  auto& from = asked.groups.emplace_back();
  from.group_id = group;
  if (all) {
    from.topics.reset();
  } else {
    auto& of = from.topics.emplace().emplace_back();
    of.name = "t";
    of.partition_indexes = {0};
  }
  return client.call<protocol::OffsetFetchResponse>(9, asked).groups.at(0);
}

std::int16_t stable_error(Client& client, const std::string& group) {
  return stable(client, group).topics.at(0).partitions.at(0).error_code;
}

TransactionMarker marker(bool committed, base::ProducerEpoch epoch = 3,
                         std::int16_t transaction_version = 0) {
  TransactionMarker end;
  end.producer_id = some_producer;
  end.producer_epoch = epoch;
  end.committed = committed;
  end.coordinator_epoch = 2;
  end.transaction_version = transaction_version;
  return end;
}

ErrorCode end_transaction(Running& broker, TransactionMarker end,
                          std::int32_t partition = partition_for_group("g", 4)) {
  return broker.run(
      [&broker, end, partition] { return broker->groups().end_transaction(partition, end); });
}

protocol::JoinGroupRequest join_request(const std::string& group,
                                        std::int32_t session_timeout_ms = 30'000) {
  static const base::Buffer metadata = base::to_buffer(base::as_bytes("m"));
  protocol::JoinGroupRequest asked;
  asked.group_id = group;
  asked.session_timeout_ms = session_timeout_ms;
  asked.rebalance_timeout_ms = 60'000;
  asked.protocol_type = "test";
  asked.protocols.push_back({"p", metadata});
  return asked;
}

struct Joined {
  std::string member_id;
  std::int32_t generation = 0;
};

// The one member of a group, with an assignment.
Joined settle(Client& client, const std::string& group, std::int32_t session_timeout_ms = 30'000) {
  const auto joined =
      client.call<protocol::JoinGroupResponse>(3, join_request(group, session_timeout_ms));
  REQUIRE(joined.error_code == 0);
  protocol::SyncGroupRequest sync;
  sync.group_id = group;
  sync.member_id = joined.member_id;
  sync.generation_id = joined.generation_id;
  const base::Buffer all = base::to_buffer(base::as_bytes("all"));
  sync.assignments.push_back({joined.member_id, all});
  REQUIRE(client.call<protocol::SyncGroupResponse>(3, sync).error_code == 0);
  return {joined.member_id, joined.generation_id};
}

// Whether its members are gone within some seconds: who is none may commit then.
bool empties(Client& client, const std::string& group) {
  for (int i = 0; i < 1000 && commit(client, group, 1) != 0; ++i) std::this_thread::sleep_for(10ms);
  return commit(client, group, 1) == 0;
}

std::int16_t heartbeat(Client& client, const std::string& group, const Joined& who) {
  protocol::HeartbeatRequest asked;
  asked.group_id = group;
  asked.member_id = who.member_id;
  asked.generation_id = who.generation;
  return client.call<protocol::HeartbeatResponse>(3, asked).error_code;
}

}  // namespace

TEST_CASE("a group is kept where Kafka keeps it") {
  CHECK(partition_for_group("hello", 50) == 99162322 % 50);
  CHECK(partition_for_group("", 50) == 0);
  CHECK(partition_for_group("g", 50) == 103 % 50);
  CHECK(partition_for_group("\u00fc", 50) == 252 % 50);
  CHECK(partition_for_group("\U0001F600", 50) == 1772899 % 50);
  CHECK(partition_for_group("\u20ac", 50) == 8364 % 50);
  CHECK(partition_for_group("polygenelubricants", 50) == 0);  // whose hash has no absolute value
  CHECK(partition_for_group("\xf0", 50) >= 0);                // no text, and no harm
}

TEST_CASE("groups and offsets are there after a restart") {
  Directory directory;
  Joined who;
  {
    Running broker(directory, few_partitions);
    broker.create("t");
    Client client(broker.port());
    CHECK(commit(client, "g", 1) == number(ErrorCode::not_coordinator));
    REQUIRE(find_coordinator(client) == 0);
    who = settle(client, "g");
    CHECK(commit(client, "g", 7, "t", who.generation, who.member_id) == 0);
    CHECK(commit(client, "simple", 8) == 0);
    CHECK(commit(client, "g", 9) == number(ErrorCode::unknown_member_id));
    protocol::MetadataRequest asked;
    asked.topics.emplace().emplace_back().name = "__consumer_offsets";
    const auto topic = client.call<protocol::MetadataResponse>(9, asked).topics.at(0);
    CHECK(topic.is_internal);
    CHECK(topic.partitions.size() == 4);
  }
  Running broker(directory, few_partitions);
  Client client(broker.port());
  CHECK(committed(client, "g") == 7);
  CHECK(committed(client, "simple") == 8);
  CHECK(committed(client, "nobody") == -1);
  CHECK(heartbeat(client, "g", who) == 0);
  CHECK(commit(client, "g", 10, "t", who.generation, who.member_id) == 0);
}

// C20
TEST_CASE("who waits for others hears of the broker's end") {
  Directory directory;
  auto broker = std::make_unique<Running>(
      directory, std::vector<std::string>{"offsets.topic.num.partitions=1",
                                          "group.initial.rebalance.delay.ms=60000"});
  Client client((*broker).port());
  REQUIRE(find_coordinator(client) == 0);
  std::int16_t told = 0;
  std::jthread waits(
      [&] { told = client.call<protocol::JoinGroupResponse>(3, join_request("g")).error_code; });
  std::this_thread::sleep_for(200ms);
  const auto begun = base::Clock::now();
  broker.reset();
  CHECK(base::Clock::now() - begun < 4s);
  waits.join();
  CHECK(told == number(ErrorCode::coordinator_not_available));
}

// C16
TEST_CASE("offsets of a deleted topic go, and groups with the topic that keeps them") {
  Directory directory;
  Running broker(directory, few_partitions);
  const TopicPtr topic = broker.create("t");
  broker.create("u");
  Client client(broker.port());
  REQUIRE(find_coordinator(client) == 0);
  REQUIRE(commit(client, "g", 1) == 0);
  REQUIRE(commit(client, "g", 2, "u") == 0);
  const auto remove = [&](base::Uuid id) {
    return broker.run([&broker, id] { return broker->catalog().delete_topic(id); });
  };
  REQUIRE(remove(topic->id).has_value());
  for (int i = 0; i < 500 && committed(client, "g") != -1; ++i) std::this_thread::sleep_for(10ms);
  CHECK(committed(client, "g") == -1);
  CHECK(committed(client, "g", "u") == 2);

  auto find = [&broker]() -> boost::asio::awaitable<TopicPtr> {
    co_return broker->catalog().snapshot()->find(consumer_offsets_topic);
  };
  REQUIRE(remove(broker.run(find)->id).has_value());
  CHECK(commit(client, "g", 3, "u") == number(ErrorCode::not_coordinator));
  REQUIRE(find_coordinator(client) == 0);
  CHECK(committed(client, "g", "u") == -1);
  CHECK(commit(client, "g", 3, "u") == 0);
}

TEST_CASE("a mirror's offsets come in by their own door, which live groups keep shut") {
  Directory directory;
  Running broker(directory, few_partitions);
  broker.create("t");
  Client client(broker.port());
  const auto mirrored = [&](base::Offset offset) {
    std::vector<MirroredOffset> offsets(1);
    offsets[0].topic = "t";
    offsets[0].offset = offset;
    offsets[0].leader_epoch = 4;
    offsets[0].metadata = "from there";
    return broker.run(
        [&broker, offsets] { return broker->groups().commit_mirrored("g", offsets); });
  };
  CHECK(mirrored(5) == ErrorCode::none);  // the topic that keeps them is made if need be
  CHECK(committed(client, "g") == 5);
  const Joined who = settle(client, "g");
  CHECK(mirrored(6) == ErrorCode::non_empty_group);
  CHECK(committed(client, "g") == 5);
  CHECK(commit(client, "g", 7, "t", who.generation, who.member_id) == 0);
}

TEST_CASE("what cannot be written is refused, and what was acknowledged is there afterwards") {
  LockedFiles files(1);
  Directory directory;
  Running broker(directory, few_partitions, files);
  broker.create("t");
  Client client(broker.port());
  REQUIRE(find_coordinator(client) == 0);
  const Joined who = settle(client, "g");
  REQUIRE(commit(client, "g", 1, "t", who.generation, who.member_id) == 0);
  files.with(
      [](storage_test::FaultFileSystem& inner) { inner.capacity_bytes -= *inner.free_bytes(""); });
  CHECK(commit(client, "g", 2, "t", who.generation, who.member_id) ==
        number(ErrorCode::not_coordinator));
  files.with(
      [](storage_test::FaultFileSystem& inner) { inner.capacity_bytes = std::uint64_t{1} << 40; });
  std::int16_t error = -1;
  for (int i = 0; i < 600 && error != 0; ++i) {
    error = commit(client, "g", 3, "t", who.generation, who.member_id);
    if (error != 0) std::this_thread::sleep_for(10ms);
    if (error == number(ErrorCode::not_coordinator)) CHECK(find_coordinator(client) == 0);
  }
  CHECK(error == 0);
  CHECK(committed(client, "g") == 3);
  CHECK(heartbeat(client, "g", who) == 0);
}

TEST_CASE("groups have their timers though memory ran out, and who waited is told") {
  LockedFiles files(1);
  Directory directory;
  Running broker(directory,
                 {"offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0",
                  "group.min.session.timeout.ms=100"},
                 files);
  broker.create("t");
  Client client(broker.port()), other(broker.port());
  REQUIRE(find_coordinator(client) == 0);
  settle(client, "waits");  // and never joins again
  std::int16_t told = 0;
  std::jthread waits(
      [&] { told = other.call<protocol::JoinGroupResponse>(3, join_request("waits")).error_code; });
  std::this_thread::sleep_for(200ms);
  settle(client, "g", 500);
  const auto thrown = throw_once(files, "/__consumer_offsets-");
  waits.join();
  CHECK(told == number(ErrorCode::not_coordinator));
  CHECK(*thrown);
  CHECK(empties(client, "g"));
  settle(client, "later", 300);
  CHECK(empties(client, "later"));
}

TEST_CASE("offsets of a transaction are pending until its marker, also over restarts") {
  Directory directory;
  constexpr auto unstable = ErrorCode::unstable_offset_commit;
  {
    Running broker(directory, few_partitions);
    broker.create("t");
    Client client(broker.port());
    CHECK(stage(client, "g", 5) == number(ErrorCode::not_coordinator));
    REQUIRE(find_coordinator(client) == 0);
    REQUIRE(commit(client, "g", 1) == 0);
    CHECK(stage(client, "g", 5) == 0);
    CHECK(stage(client, "g", 6, 3, some_producer, 5000) ==
          number(ErrorCode::offset_metadata_too_large));
    CHECK(stage(client, "", 5) == number(ErrorCode::invalid_group_id));
    CHECK(committed(client, "g") == 1);
    CHECK(stable_error(client, "g") == number(unstable));
    CHECK(stable(client, "g", true).topics.at(0).partitions.at(0).error_code == number(unstable));
  }
  {
    Running broker(directory, few_partitions);
    Client client(broker.port());
    CHECK(committed(client, "g") == 1);
    CHECK(stable_error(client, "g") == number(unstable));
    CHECK(end_transaction(broker, marker(true)) == ErrorCode::none);
    CHECK(committed(client, "g") == 5);
    CHECK(stable_error(client, "g") == 0);
    CHECK(end_transaction(broker, marker(true)) == ErrorCode::none);  // it comes again
    CHECK(stage(client, "g", 7) == 0);
    CHECK(end_transaction(broker, marker(false)) == ErrorCode::none);
    CHECK(committed(client, "g") == 5);
    // C14
    CHECK(stage(client, "g", 8) == 0);
    CHECK(commit(client, "g", 9) == 0);
    CHECK(end_transaction(broker, marker(true)) == ErrorCode::none);
    CHECK(committed(client, "g") == 9);
  }
  Running broker(directory, few_partitions);
  Client client(broker.port());
  CHECK(committed(client, "g") == 9);
  CHECK(stable_error(client, "g") == 0);
}

TEST_CASE("who was fenced neither adds to a transaction nor ends one") {
  Directory directory;
  Running broker(directory, few_partitions);
  broker.create("t");
  Client client(broker.port());
  CHECK(end_transaction(broker, marker(true)) == ErrorCode::unknown_topic_or_partition);
  REQUIRE(find_coordinator(client) == 0);
  constexpr auto fenced = ErrorCode::invalid_producer_epoch;
  CHECK(stage(client, "g", 5) == 0);
  CHECK(stage(client, "g", 4, 2) == number(fenced));
  CHECK(stage(client, "g", 4, -1) == number(fenced));
  CHECK(stage(client, "g", 4, 3, -1) == number(ErrorCode::invalid_producer_id_mapping));
  CHECK(end_transaction(broker, marker(true, 2)) == fenced);
  TransactionMarker late = marker(true);
  CHECK(end_transaction(broker, late, 4) == ErrorCode::unknown_topic_or_partition);
  CHECK(end_transaction(broker, late, -1) == ErrorCode::unknown_topic_or_partition);
  // KIP-890: the marker is of the epoch above; the same one again is no news.
  CHECK(end_transaction(broker, marker(true, 3, 2)) == fenced);
  CHECK(committed(client, "g") == -1);
  CHECK(end_transaction(broker, marker(true, 4, 2)) == ErrorCode::none);
  CHECK(committed(client, "g") == 5);
  CHECK(end_transaction(broker, marker(true, 4, 2)) == ErrorCode::none);
  CHECK(stage(client, "g", 6) == number(fenced));
  CHECK(stage(client, "g", 6, 4) == 0);
  CHECK(end_transaction(broker, marker(true, 4, 2)) == fenced);
  late = marker(true, 5, 2);
  late.coordinator_epoch = 1;
  CHECK(end_transaction(broker, late) == fenced);
  // Our own coordinator is the only one: what others said of theirs does not fence it.
  late.owed = true;
  CHECK(end_transaction(broker, late) == ErrorCode::none);
  CHECK(committed(client, "g") == 6);
  CHECK(end_transaction(broker, marker(false, 5, 2)) == ErrorCode::none);
  CHECK(committed(client, "g") == 6);
  CHECK(stable_error(client, "g") == 0);
}

TEST_CASE("what is pending outlives the compaction of its log, and so does what was decided") {
  Directory directory;
  const std::vector<std::string> settings = {"offsets.topic.num.partitions=1",
                                             "offsets.topic.segment.bytes=2000",
                                             "log.cleaner.backoff.ms=3600000", unverified};
  const auto end = [](Running& broker, bool commit) {
    return end_transaction(broker, marker(commit), 0);
  };
  const auto compact = [](Running& broker) {
    auto job = [&broker]() -> boost::asio::awaitable<storage::CompactionStats> {
      const TopicPtr topic = Shard::current()->catalog()->find(consumer_offsets_topic);
      const base::TopicPartition id = {topic->id, 0};
      auto there = [&broker, id]() -> boost::asio::awaitable<storage::CompactionStats> {
        const auto done = co_await broker->shard_of(id).find(id)->compact(base::wall_clock_ms());
        co_return done.has_value() ? *done : storage::CompactionStats();
      };
      co_return co_await on(broker->shard_of(id), std::move(there));
    };
    return broker.run(std::move(job));
  };
  const auto check = [](Client& client) {
    CHECK(committed(client, "plain") == 199);
    CHECK(committed(client, "decided") == 198);
    CHECK(committed(client, "overtaken") == 1000);
    CHECK(committed(client, "open") == 1);
    CHECK(stable_error(client, "open") == number(ErrorCode::unstable_offset_commit));
    CHECK(stable_error(client, "decided") == 0);
  };
  {
    Running broker(directory, settings);
    broker.create("t");
    Client client(broker.port());
    REQUIRE(find_coordinator(client) == 0);
    REQUIRE(commit(client, "open", 1) == 0);
    for (base::Offset i = 0; i < 200; ++i) {
      REQUIRE(commit(client, "plain", i) == 0);
      REQUIRE(stage(client, "decided", i) == 0);
      if (i == 100) REQUIRE(stage(client, "overtaken", i) == 0);
      if (i == 100) REQUIRE(commit(client, "overtaken", 1000) == 0);
      REQUIRE(end(broker, i % 2 == 0) == ErrorCode::none);
    }
    REQUIRE(stage(client, "open", 2, 0, some_producer + 1) == 0);
    for (base::Offset i = 0; i < 100; ++i) REQUIRE(commit(client, "later", i) == 0);
    const storage::CompactionStats stats = compact(broker);
    CHECK(stats.segments > 10);
    CHECK(stats.records_dropped >= 290);
    check(client);
  }
  {
    Running broker(directory, settings);
    Client client(broker.port());
    check(client);
    TransactionMarker last = marker(true, 0);
    last.producer_id = some_producer + 1;
    CHECK(end_transaction(broker, last, 0) == ErrorCode::none);
    for (base::Offset i = 0; i < 100; ++i) REQUIRE(commit(client, "later", i) == 0);
    compact(broker);
  }
  Running broker(directory, settings);
  Client client(broker.port());
  CHECK(committed(client, "open") == 2);
  CHECK(committed(client, "decided") == 198);
}

}  // namespace broker::test
