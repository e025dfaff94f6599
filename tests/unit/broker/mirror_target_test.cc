// The broker as the mirrors see it.
#include "broker/mirror_target.h"

#include "broker/producer_ids.h"
#include "broker/topic_config.h"
#include "protocol/error_code.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/produce.gen.h"
#include "tests/unit/broker/client.h"
#include "tests/unit/broker/fetching.h"

namespace broker::test {
namespace {

using mirror::TargetErrc;

std::int16_t produce_error(std::uint16_t port, const std::string& topic, std::string* message,
                           const protocol::BatchOptions& options = {}) {
  Client client(port);
  const base::Buffer batch = batch_of({"local"}, options);
  protocol::ProduceRequest request;
  request.transactional_id.reset();
  request.acks = -1;
  auto& to = request.topic_data.emplace_back();
  to.name = topic;
  to.partition_data.emplace_back().records.bytes = batch;
  const auto answer = client.call<protocol::ProduceResponse>(9, request);
  const auto& one = answer.responses.at(0).partition_responses.at(0);
  if (message != nullptr) *message = one.error_message.value_or("");
  return one.error_code;
}

base::Buffer source_batch(base::Offset offset, base::LeaderEpoch epoch, const std::string& value) {
  protocol::BatchOptions options;
  options.base_offset = offset;
  options.partition_leader_epoch = epoch;
  return batch_of({value}, options);
}

// Runs `f(partition)` on the shard of the partition.
template <class F>
auto with_partition(Running& broker, const base::TopicPartition& id, F f) {
  using Outcome = typename std::invoke_result_t<F, mirror::TargetPartition&>::value_type;
  auto go = [&broker, id, f]() -> Task<Outcome> {
    auto there = [&broker, id, f]() -> Task<Outcome> {
      const auto partition = broker->mirror_target().partition(id);
      REQUIRE(partition);
      co_return co_await f(*partition);
    };
    co_return co_await on(broker->shard_of(id), std::move(there));
  };
  return broker.run(std::move(go));
}

}  // namespace

TEST_CASE("a mirrored topic takes the source's batches as they are and refuses clients") {
  Directory directory;
  Running broker(directory);
  auto& target = broker->mirror_target();
  const auto attached =
      broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 2); });
  REQUIRE(attached.has_value());
  CHECK(attached->id == id_of(1));
  CHECK(attached->leader_epochs.size() == 2);
  // Nothing of the copy goes by itself after a failover.
  CHECK(broker->catalog().snapshot()->find("events")->configs.at("retention.ms") == "-1");
  std::string message;
  CHECK(produce_error(broker.port(), "events", &message) ==
        static_cast<std::int16_t>(protocol::ErrorCode::policy_violation));
  CHECK(message.find("mirror dr") != std::string::npos);

  const base::TopicPartition id = {id_of(1), 0};
  const auto appended = with_partition(
      broker, id,
      [](mirror::TargetPartition& partition) -> Task<base::Result<mirror::LogPosition>> {
        partition.refuse_writes("dr");
        const base::Buffer too_new = source_batch(0, 5, "too new");
        CHECK(partition.append(too_new).error() == TargetErrc::epoch_above_leader);
        const auto bumped = co_await partition.bump_epoch(7);
        CHECK(*bumped == 7);
        // A gap of offsets, as compaction leaves it.
        REQUIRE(partition.append(source_batch(0, 5, "a")).has_value());
        REQUIRE(partition.append(source_batch(4, 6, "b")).has_value());
        CHECK(partition.append(source_batch(2, 6, "late")).error() == TargetErrc::out_of_order);
        base::Buffer damaged = source_batch(5, 6, "c");
        damaged.back() ^= std::byte{1};
        CHECK(partition.append(damaged).error() == TargetErrc::corrupt_batch);
        co_return co_await partition.flush();
      });
  REQUIRE(appended.has_value());
  CHECK(appended->log_end == 5);
  CHECK(appended->durable_end == 5);
  CHECK(appended->last_epoch == 6);
  CHECK(appended->leader_epoch == 7);

  Client client(broker.port());
  protocol::FetchRequest request;
  request.max_wait_ms = 0;
  auto& from = request.topics.emplace_back();
  from.topic = "events";
  auto& one = from.partitions.emplace_back();
  one.partition_max_bytes = 1 << 20;
  const auto answer = client.call<protocol::FetchResponse>(12, request);
  const auto& fetched = answer.responses.at(0).partitions.at(0);
  CHECK(fetched.high_watermark == 5);
  base::Buffer expected = source_batch(0, 5, "a");
  const base::Buffer second = source_batch(4, 6, "b");
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(protocol::same(fetched.records.bytes, expected));
}

TEST_CASE("B21: max.message.bytes is for producers, a copy takes what its source has") {
  Directory directory;
  const base::TopicPartition id = {id_of(1), 0};
  const auto end_after = [&](Running& broker, base::Offset offset) {
    return with_partition(
        broker, id,
        [offset](mirror::TargetPartition& partition) -> Task<base::Result<mirror::LogPosition>> {
          partition.refuse_writes("dr");
          co_await partition.bump_epoch(7);
          const base::Buffer large = source_batch(offset, 5, std::string(900'000, 'x'));
          CHECK(partition.append(large).has_value());
          co_return co_await partition.flush();
        });
  };
  const auto lowered = [](const auto&) -> std::optional<TopicConfigs> {
    return TopicConfigs{{"max.message.bytes", "1000"}};
  };
  {
    Running broker(directory);
    auto& target = broker->mirror_target();
    const auto attached =
        broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); });
    REQUIRE(attached.has_value());
    const auto altered =
        broker.run([&] { return broker->catalog().alter_topic("events", lowered); });
    REQUIRE(altered.has_value());
    CHECK(end_after(broker, 0)->log_end == 1);
  }
  // Recovery takes it as well.
  Running broker(directory);
  CHECK(end_after(broker, 1)->log_end == 2);
}

TEST_CASE("after the hand-over clients write, and a restart asks the mirror again") {
  Directory directory;
  const base::TopicPartition id = {id_of(1), 0};
  const auto not_leader = static_cast<std::int16_t>(protocol::ErrorCode::not_leader_or_follower);
  {
    Running broker(directory);
    auto& target = broker->mirror_target();
    REQUIRE(
        broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); }).has_value());
    const auto handed_over = with_partition(
        broker, id, [](mirror::TargetPartition& partition) -> Task<base::Result<void>> {
          REQUIRE(partition.append(source_batch(0, 0, "a")).has_value());
          CO_TRY_VOID(co_await partition.bump_epoch(1));
          CO_TRY(const auto aborted, co_await partition.write_abort_markers());
          CHECK(aborted.log_end == 1);  // there was no open transaction
          CO_TRY(const auto reset, co_await partition.write_producer_id_reset());
          CHECK(reset.log_end == 2);
          CHECK(reset.durable_end == 2);
          CHECK(reset.last_epoch == 1);
          co_return base::Result<void>();
        });
    REQUIRE(handed_over.has_value());
    std::vector<std::string> names = {"events"};
    REQUIRE(
        broker.run([&] { return target.set_desired_state(names, desired_stopped); }).has_value());
    CHECK(produce_error(broker.port(), "events", nullptr) ==
          static_cast<std::int16_t>(protocol::ErrorCode::policy_violation));
    REQUIRE(with_partition(broker, id, [](mirror::TargetPartition& partition) {
              return partition.allow_writes();
            }).has_value());
    CHECK(produce_error(broker.port(), "events", nullptr) == 0);
  }
  Running broker(directory);
  // The coordinator knows nothing of this partition, so nobody has handed it over: clients are told
  // to try again, not that they may never write.
  CHECK(produce_error(broker.port(), "events", nullptr) == not_leader);
  REQUIRE(with_partition(broker, id, [](mirror::TargetPartition& partition) {
            return partition.allow_writes();
          }).has_value());
  CHECK(produce_error(broker.port(), "events", nullptr) == 0);
}

TEST_CASE("transactions that are open at a failover end, and producers begin anew (E23, E24)") {
  Directory directory;
  Running broker(directory);
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); }).has_value());
  const base::TopicPartition id = {id_of(1), 0};
  const auto of_producer = [](base::ProducerId producer, base::Offset offset, std::int32_t sequence,
                              bool transactional) {
    protocol::BatchOptions options;
    options.base_offset = offset;
    options.partition_leader_epoch = base::LeaderEpoch{0};
    options.producer_id = producer;
    options.producer_epoch = base::ProducerEpoch{0};
    options.base_sequence = sequence;
    options.transactional = transactional;
    return options;
  };
  const auto stopped = with_partition(
      broker, id, [&](mirror::TargetPartition& partition) -> Task<base::Result<void>> {
        // Two open transactions, and a producer that was never in one.
        for (const auto& options : {of_producer(2000, 0, 3, true), of_producer(2001, 1, 0, true),
                                    of_producer(1000, 2, 7, false)})
          REQUIRE(partition.append(batch_of({"x"}, options)).has_value());
        CO_TRY_VOID(co_await partition.bump_epoch(1));
        CO_TRY(const auto aborted, co_await partition.write_abort_markers());
        CHECK(aborted.log_end == 3 + 2);
        CO_TRY(const auto reset, co_await partition.write_producer_id_reset());
        CHECK(reset.log_end == 3 + 2 + 1);
        co_return base::Result<void>();
      });
  REQUIRE(stopped.has_value());
  std::vector<std::string> names = {"events"};
  REQUIRE(broker.run([&] { return target.set_desired_state(names, desired_stopped); }).has_value());
  REQUIRE(with_partition(broker, id, [](mirror::TargetPartition& partition) {
            return partition.allow_writes();
          }).has_value());
  const auto ends = [&] {
    return on_partition(broker, id,
                        [](Partition& p) -> Task<std::pair<base::Offset, base::Offset>> {
                          co_return std::pair(p.last_stable_offset(), p.log_end());
                        });
  };
  CHECK(ends() == std::pair<base::Offset, base::Offset>(6, 6));
  // This broker gives these ids out anew: their sequences begin at 0.
  CHECK(produce_error(broker.port(), "events", nullptr, of_producer(1000, 0, 0, false)) == 0);
  CHECK(produce_error(broker.port(), "events", nullptr, of_producer(2000, 0, 0, false)) == 0);
  CHECK(ends() == std::pair<base::Offset, base::Offset>(8, 8));
}

TEST_CASE("a topic that is to be mirrored is not opened for clients") {
  Directory directory;
  Running broker(directory);
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); }).has_value());
  const auto opened = with_partition(broker, {id_of(1), 0}, [](mirror::TargetPartition& partition) {
    return partition.allow_writes();
  });
  CHECK(opened.error() == TargetErrc::busy);
  CHECK(produce_error(broker.port(), "events", nullptr) ==
        static_cast<std::int16_t>(protocol::ErrorCode::policy_violation));
}

TEST_CASE("what is known of a topic's id at the source outlives a restart") {
  Directory directory;
  {
    Running broker(directory);
    auto& target = broker->mirror_target();
    REQUIRE(
        broker.run([&] { return target.attach_topic("dr", "old", base::Uuid(), 1); }).has_value());
    REQUIRE(broker.run([&] { return target.attach_topic("dr", "older", base::Uuid(), 1); })
                .has_value());
    REQUIRE(broker.run([&] { return target.remember_source_id("old", id_of(77)); }).has_value());
  }
  Running broker(directory);
  CHECK(broker->mirror_target().topic("old")->source_id == id_of(77));
  CHECK(broker->mirror_target().topic("older")->source_id == base::Uuid());
}

TEST_CASE("attaching tells apart what is ours, another's and a different topic") {
  Directory directory;
  Running broker(directory);
  auto& target = broker->mirror_target();
  const auto attach = [&](const std::string& mirror, const std::string& name, base::Uuid id,
                          std::int32_t partitions) {
    return broker.run([&] { return target.attach_topic(mirror, name, id, partitions); });
  };
  const TopicPtr own = broker.create("own");
  REQUIRE(attach("dr", "events", id_of(1), 1).has_value());
  CHECK(attach("dr", "events", id_of(1), 3)->leader_epochs.size() == 3);  // again, and it grew
  CHECK(attach("dr", "events", id_of(2), 3).error() == TargetErrc::id_mismatch);
  CHECK(attach("other", "events", id_of(1), 3).error() == TargetErrc::already_exists);
  CHECK(attach("dr", "renamed", id_of(1), 3).error() == TargetErrc::id_in_use);
  CHECK(attach("dr", "own", id_of(9), 1).error() == TargetErrc::id_mismatch);
  // Adopted by id, as at a failback; and by name where the source has no ids.
  CHECK(attach("dr", "own", own->id, 1)->mirror == "dr");
  CHECK(produce_error(broker.port(), "own", nullptr) ==
        static_cast<std::int16_t>(protocol::ErrorCode::policy_violation));
  CHECK(!attach("old", "named", base::Uuid(), 1)->id.is_zero());
  CHECK(target.topic("named")->source_id == base::Uuid());
  CHECK_FALSE(target.topic("own")->source_id);
  REQUIRE(broker.run([&] { return target.remember_source_id("named", id_of(77)); }).has_value());
  CHECK(target.topic("named")->source_id == id_of(77));

  std::vector<std::string> names = {"own"};
  CHECK(broker.run([&] { return target.detach_topics(names); }).has_error());
  REQUIRE(broker.run([&] { return target.set_desired_state(names, desired_stopped); }).has_value());
  REQUIRE(broker.run([&] { return target.detach_topics(names); }).has_value());
  CHECK(target.topic("own")->mirror.empty());
  CHECK(produce_error(broker.port(), "own", nullptr) == 0);
}

TEST_CASE("cut and restarted logs are what the mirror asked for") {
  Directory directory;
  Running broker(directory);
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); }).has_value());
  const auto done = with_partition(
      broker, {id_of(1), 0}, [](mirror::TargetPartition& partition) -> Task<base::Result<void>> {
        REQUIRE(partition.append(source_batch(0, 0, "a")).has_value());
        REQUIRE(partition.append(source_batch(1, 0, "b")).has_value());
        CO_TRY(const auto cut, co_await partition.truncate_to(1));
        CHECK(cut.log_end == 1);
        CHECK(partition.end_offset_for(0)->end_offset == 1);
        CO_TRY(const auto anew, co_await partition.restart_at(40));
        CHECK(anew.log_start == 40);
        CHECK(anew.log_end == 40);
        REQUIRE(partition.append(source_batch(40, 0, "c")).has_value());
        REQUIRE(partition.append(source_batch(41, 0, "d")).has_value());
        CO_TRY(const auto trimmed, partition.advance_log_start(41));
        CHECK(trimmed.log_start == 41);
        co_return base::Result<void>();
      });
  CHECK(done.has_value());
}

TEST_CASE("mirror states are replayed in order after a restart") {
  Directory directory;
  using Record = mirror::Target::StateRecord;
  const auto record = [](std::string_view key, std::optional<std::string_view> value) {
    Record one;
    one.key = base::to_buffer(base::as_bytes(key));
    if (value) one.value = base::to_buffer(base::as_bytes(*value));
    return one;
  };
  {
    Running broker(directory);
    auto& target = broker->mirror_target();
    CHECK(target.state_partition_count() == 2);
    std::vector<Record> first = {record("a", "1"), record("b", "1")};
    std::vector<Record> second = {record("a", "2"), record("b", std::nullopt)};
    REQUIRE(broker.run([&] { return target.append_state(1, first); }).has_value());
    REQUIRE(broker.run([&] { return target.append_state(1, second); }).has_value());
    CHECK(broker.run([&] { return target.append_state(2, first); }).has_error());
    CHECK(broker->catalog().snapshot()->find(mirror_state_topic)->internal);
    CHECK(produce_error(broker.port(), std::string(mirror_state_topic), nullptr) ==
          static_cast<std::int16_t>(protocol::ErrorCode::invalid_topic_exception));
  }
  Running broker(directory);
  std::vector<std::string> seen;
  const auto apply = [&seen](base::Bytes key, std::optional<base::Bytes> value) {
    seen.push_back(std::string(base::as_text(key)) + "=" +
                   (value ? std::string(base::as_text(*value)) : "-"));
  };
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.replay_state(apply); }).has_value());
  CHECK(seen == std::vector<std::string>{"a=1", "b=1", "a=2", "b=-"});
}

TEST_CASE("mirror definitions are kept") {
  Directory directory;
  {
    Running broker(directory);
    auto& target = broker->mirror_target();
    mirror::MirrorDefinition definition;
    definition.name = "dr";
    definition.configs = {{"topics.exclude", ".*"}, {"bootstrap.servers", "127.0.0.1:1"}};
    REQUIRE(broker.run([&] { return target.save_mirror(definition); }).has_value());
  }
  Running broker(directory);
  auto& target = broker->mirror_target();
  REQUIRE(target.mirrors().size() == 1);
  CHECK(target.mirrors()[0].configs.at("bootstrap.servers") == "127.0.0.1:1");
  REQUIRE(broker.run([&] { return target.remove_mirror("dr"); }).has_value());
  CHECK(target.mirrors().empty());
}

}  // namespace broker::test
