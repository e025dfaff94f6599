// Transactions through a broker, where unmodified clients do not get to: partitions that are gone
// or a mirror's when their transaction ends.
#include <atomic>
#include <memory>
#include <thread>

#include "broker/bounds.h"
#include "broker/partition.h"
#include "broker/transaction_coordinator.h"
#include "protocol/messages/add_partitions_to_txn.gen.h"
#include "protocol/messages/delete_records.gen.h"
#include "protocol/messages/delete_topics.gen.h"
#include "protocol/messages/describe_transactions.gen.h"
#include "protocol/messages/end_txn.gen.h"
#include "protocol/messages/find_coordinator.gen.h"
#include "protocol/messages/init_producer_id.gen.h"
#include "protocol/messages/write_txn_markers.gen.h"
#include "tests/unit/broker/locked_files.h"
#include "tests/unit/broker/requests.h"

namespace broker::test {
namespace {

const std::vector<std::string> few_states = {"transaction.state.log.num.partitions=2"};

struct SimpleProducer {
  Client& client;
  std::string id;
  base::ProducerId producer_id = -1;
  base::ProducerEpoch epoch = -1;
  std::int32_t written = 0;

  std::int32_t timeout_ms = 60'000;

  std::int16_t init() {
    protocol::FindCoordinatorRequest find;
    find.key_type = 1;
    find.coordinator_keys = {id};
    const auto found = client.call<protocol::FindCoordinatorResponse>(4, find);
    REQUIRE(found.coordinators.at(0).error_code == 0);
    protocol::InitProducerIdRequest asked;
    asked.transactional_id = id;
    asked.transaction_timeout_ms = timeout_ms;
    const auto answer = client.call<protocol::InitProducerIdResponse>(4, asked);
    producer_id = answer.producer_id;
    epoch = answer.producer_epoch;
    return answer.error_code;
  }
  std::int16_t add(const std::vector<std::string>& topics) {
    protocol::AddPartitionsToTxnRequest asked;
    asked.v3_and_below_transactional_id = id;
    asked.v3_and_below_producer_id = producer_id;
    asked.v3_and_below_producer_epoch = epoch;
    for (const std::string& topic : topics) {
      auto& one = asked.v3_and_below_topics.emplace_back();
      one.name = topic;
      one.partitions = {0};
    }
    const auto answer = client.call<protocol::AddPartitionsToTxnResponse>(3, asked);
    return answer.results_by_topic_v3_and_below.at(0)
        .results_by_partition.at(0)
        .partition_error_code;
  }
  std::int16_t write(const Topic& topic) {
    protocol::BatchOptions options;
    options.producer_id = producer_id;
    options.producer_epoch = epoch;
    options.base_sequence = written++;
    options.transactional = true;
    const base::Buffer batch = batch_of({"v"}, options);
    ProduceRequest asked = produce_request(topic, 0, batch);
    asked.transactional_id = id;
    return client.call<ProduceResponse>(11, asked)
        .responses.at(0)
        .partition_responses.at(0)
        .error_code;
  }
  std::int16_t end(bool commit) {
    protocol::EndTxnRequest asked;
    asked.transactional_id = id;
    asked.producer_id = producer_id;
    asked.producer_epoch = epoch;
    asked.committed = commit;
    return client.call<protocol::EndTxnResponse>(3, asked).error_code;
  }
  // As a broker of Kafka's asks for it.
  std::vector<std::int16_t> add_as_broker(const std::vector<std::string>& topics,
                                          const std::vector<std::int32_t>& partitions,
                                          bool verify_only = false) {
    protocol::AddPartitionsToTxnRequest asked;
    auto& one = asked.transactions.emplace_back();
    one.transactional_id = id;
    one.producer_id = producer_id;
    one.producer_epoch = epoch;
    one.verify_only = verify_only;
    for (const std::string& topic : topics) {
      auto& to = one.topics.emplace_back();
      to.name = topic;
      to.partitions = partitions;
    }
    const auto answer = client.call<protocol::AddPartitionsToTxnResponse>(4, asked);
    std::vector<std::int16_t> errors;
    for (const auto& topic : answer.results_by_transaction.at(0).topic_results)
      for (const auto& result : topic.results_by_partition)
        errors.push_back(result.partition_error_code);
    return errors;
  }
  // Waits some seconds for it.
  bool comes_to(const std::string& wanted) {
    for (int i = 0; i < 1000 && state() != wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return state() == wanted;
  }
  std::string state() {
    protocol::DescribeTransactionsRequest asked;
    asked.transactional_ids = {id};
    const auto answer = client.call<protocol::DescribeTransactionsResponse>(0, asked);
    REQUIRE(answer.transaction_states.size() == 1);
    return answer.transaction_states.at(0).transaction_state;
  }
};

// Runs `f` with the partition on its shard.
template <class F>
auto with_partition(Running& broker, const TopicPtr& topic, F f) {
  using Result = decltype(f(std::declval<Partition&>()));
  auto job = [&broker, topic, f]() -> boost::asio::awaitable<Result> {
    const base::TopicPartition id = {topic->id, 0};
    auto there = [&broker, id, f]() -> boost::asio::awaitable<Result> {
      co_return f(*broker->shard_of(id).find(id));
    };
    co_return co_await on(broker->shard_of(id), std::move(there));
  };
  return broker.run(std::move(job));
}

base::Offset end_of(Running& broker, const TopicPtr& topic) {
  return with_partition(broker, topic, [](Partition& partition) { return partition.log_end(); });
}

// As an operator's tool ends a transaction by hand.
protocol::WriteTxnMarkersRequest markers_for(const SimpleProducer& producer,
                                             const std::string& topic,
                                             std::vector<std::int32_t> partitions) {
  protocol::WriteTxnMarkersRequest asked;
  auto& marker = asked.markers.emplace_back();
  marker.producer_id = producer.producer_id;
  marker.producer_epoch = producer.epoch;
  auto& to = marker.topics.emplace_back();
  to.name = topic;
  to.partition_indexes = std::move(partitions);
  return asked;
}

}  // namespace

TEST_CASE("a marker by hand of a later coordinator keeps no transaction open") {
  Directory directory;
  Running broker(directory, few_states);
  const TopicPtr topic = broker.create("t");
  Client client(broker.port());
  SimpleProducer producer{client, "x"};
  REQUIRE(producer.init() == 0);
  REQUIRE(producer.add({"t"}) == 0);
  auto by_hand = markers_for(producer, "t", {0});
  by_hand.markers[0].coordinator_epoch = 5;
  const auto marked = client.call<protocol::WriteTxnMarkersResponse>(1, by_hand);
  REQUIRE(marked.markers.at(0).topics.at(0).partitions.at(0).error_code == 0);
  REQUIRE(producer.write(*topic) == 0);
  CHECK(producer.end(true) == 0);
  CHECK(producer.state() == "CompleteCommit");
  CHECK(end_of(broker, topic) == 3);
  CHECK(with_partition(broker, topic, [](Partition& partition) {
    return partition.log().open_transactions().empty();
  }));
  // A client's own marker of an older coordinator stays fenced.
  by_hand.markers[0].coordinator_epoch = 4;
  const auto late = client.call<protocol::WriteTxnMarkersResponse>(1, by_hand);
  CHECK(late.markers.at(0).topics.at(0).partitions.at(0).error_code ==
        number(ErrorCode::transaction_coordinator_fenced));
}

TEST_CASE("a transaction ends though a partition is gone and another a mirror's") {
  Directory directory;
  Running broker(directory, few_states);
  const TopicPtr here = broker.create("here");
  const TopicPtr gone = broker.create("gone");
  const TopicPtr mirrored = broker.create("mirrored");
  Client client(broker.port());
  SimpleProducer producer{client, "x"};
  REQUIRE(producer.init() == 0);
  REQUIRE(producer.add({"here", "gone", "mirrored"}) == 0);
  auto remove = [&broker, id = gone->id] { return broker->catalog().delete_topic(id); };
  REQUIRE(broker.run(std::move(remove)).has_value());
  with_partition(broker, mirrored, [](Partition& partition) {
    partition.refuse_writes();
    return true;
  });
  CHECK(producer.end(true) == 0);
  CHECK(producer.state() == "CompleteCommit");
  CHECK(end_of(broker, here) == 1);
  CHECK(end_of(broker, mirrored) == 0);  // what a mirror copies is not touched
}

TEST_CASE("a ticket is good until a marker of its producer comes") {
  Directory directory;
  Running broker(directory, few_states);
  const TopicPtr topic = broker.create("t");
  const auto ask = [&](auto f) { return with_partition(broker, topic, f); };
  CHECK(ask([](Partition& partition) {
    const auto ticket = partition.take_ticket(7, 0);
    const auto other = partition.take_ticket(8, 0);
    const bool before = partition.may_write_transaction(7, 0, ticket);
    TransactionMarker marker;
    marker.producer_id = 7;
    const bool written = partition.append_marker(marker, 0).has_value();
    const bool after = partition.may_write_transaction(7, 0, ticket);
    const bool of_other = partition.may_write_transaction(8, 0, other);
    const bool of_none = partition.may_write_transaction(8, 0, ticket) ||
                         partition.may_write_transaction(8, 0, std::nullopt);
    partition.give_back(*ticket);
    partition.give_back(*other);
    const bool given_back = partition.may_write_transaction(8, 0, other);
    return before && written && !after && of_other && !of_none && !given_back;
  }));
}

TEST_CASE("transactional ids and what they owe outlive a restart") {
  Directory directory;
  std::optional<base::ProducerId> id;
  {
    Running broker(directory, few_states);
    broker.create("t");
    Client client(broker.port());
    SimpleProducer producer{client, "x"};
    REQUIRE(producer.init() == 0);
    REQUIRE(producer.add({"t"}) == 0);
    id = producer.producer_id;
  }
  Running broker(directory, few_states);
  Client client(broker.port());
  SimpleProducer producer{client, "x", *id, 0};
  for (int i = 0; i < 500 && producer.state() != "Ongoing"; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(producer.state() == "Ongoing");
  CHECK(producer.end(false) == 0);
  CHECK(producer.state() == "CompleteAbort");
}

TEST_CASE("what coordinators have decided is not deleted by clients") {
  Directory directory;
  Running broker(directory, few_states);
  Client client(broker.port());
  SimpleProducer producer{client, "x"};
  REQUIRE(producer.init() == 0);
  protocol::DeleteRecordsRequest asked;
  for (const std::string name : {"__transaction_state", "__consumer_offsets"}) {
    auto& from = asked.topics.emplace_back();
    from.name = name;
    for (const std::int32_t index : {0, 1, 9}) from.partitions.push_back({index, -1});
  }
  const auto answer = client.call<protocol::DeleteRecordsResponse>(2, asked);
  const auto refused = number(ErrorCode::invalid_topic_exception);
  const auto unknown = number(ErrorCode::unknown_topic_or_partition);
  CHECK(answer.topics.at(0).partitions.at(0).error_code == refused);
  CHECK(answer.topics.at(0).partitions.at(1).error_code == refused);
  CHECK(answer.topics.at(0).partitions.at(2).error_code == unknown);
  CHECK(answer.topics.at(1).partitions.at(0).error_code == unknown);  // it is not there yet
  protocol::DeleteTopicsRequest doomed;
  doomed.topic_names = {"__transaction_state"};
  CHECK(client.call<protocol::DeleteTopicsResponse>(5, doomed).responses.at(0).error_code ==
        number(ErrorCode::policy_violation));
  CHECK(producer.state() == "Empty");
}

TEST_CASE("the states of transactions are not a mirror's copy") {
  Directory directory;
  Running broker(directory, few_states);
  NewTopic copy;
  copy.name = "__transaction_state";
  copy.mirror = "dr";
  auto make = [&] { return broker->catalog().create_topic(copy); };
  REQUIRE(broker.run(std::move(make)).has_value());
  Client client(broker.port());
  protocol::FindCoordinatorRequest find;
  find.key_type = 1;
  find.coordinator_keys = {"x"};
  const auto found = client.call<protocol::FindCoordinatorResponse>(4, find);
  CHECK(found.coordinators.at(0).error_code == number(ErrorCode::coordinator_not_available));
  protocol::DescribeTransactionsRequest asked;
  asked.transactional_ids = {"x"};
  const auto answer = client.call<protocol::DescribeTransactionsResponse>(0, asked);
  CHECK(answer.transaction_states.at(0).error_code == number(ErrorCode::not_coordinator));
}

TEST_CASE("a partition that a request for markers names again is written to once") {
  Directory directory;
  Running broker(directory, few_states);
  const TopicPtr topic = broker.create("t");
  Client client(broker.port());
  SimpleProducer producer{client, "x", 7, 0};
  const auto answer = client.call<protocol::WriteTxnMarkersResponse>(
      1, markers_for(producer, "t", {9, 0, 0, -1, 0}));
  const auto& partitions = answer.markers.at(0).topics.at(0).partitions;
  REQUIRE(partitions.size() == 3);
  const auto unknown = number(ErrorCode::unknown_topic_or_partition);
  CHECK((partitions[0].partition_index == -1 && partitions[0].error_code == unknown));
  CHECK((partitions[1].partition_index == 0 && partitions[1].error_code == 0));
  CHECK((partitions[2].partition_index == 9 && partitions[2].error_code == unknown));
  CHECK(end_of(broker, topic) == 1);
}

TEST_CASE("more markers than are written at the same time are all written") {
  LockedFiles files(1);
  Directory directory;
  Running broker(directory, few_states, files);
  const TopicPtr topic = broker.create("t");
  Client client(broker.port());
  constexpr std::size_t count = 4 * markers_at_once + 1;
  SimpleProducer producer{client, "x", 7, 0};
  const auto one = markers_for(producer, "t", {0, 9});
  protocol::WriteTxnMarkersRequest many;
  many.markers.assign(count, one.markers[0]);
  many.markers[1].producer_epoch = -1;
  // What is written at once waits for the disk together, and the rest comes after that: on a disk
  // that is slow it shows how many there were.
  files.syncs.take_ms = 30;
  const int before = files.syncs.count;
  const auto answer = client.call<protocol::WriteTxnMarkersResponse>(1, many);
  CHECK(files.syncs.count - before >= static_cast<int>((count - 1) / markers_at_once));
  files.syncs.take_ms = 0;
  REQUIRE(answer.markers.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& partitions = answer.markers[i].topics.at(0).partitions;
    const auto expected = i == 1 ? number(ErrorCode::unknown_server_error) : std::int16_t{0};
    CHECK(partitions.at(0).error_code == expected);
    CHECK(partitions.at(1).error_code == number(ErrorCode::unknown_topic_or_partition));
  }
  CHECK(end_of(broker, topic) == static_cast<base::Offset>(count - 1));
}

TEST_CASE("who asks as a broker is not let near the states of transactions either") {
  Directory directory;
  Running broker(directory, few_states);
  broker.create("t", 2);
  Client client(broker.port());
  SimpleProducer producer{client, "x"};
  REQUIRE(producer.init() == 0);
  const auto denied = number(ErrorCode::topic_authorization_failed);
  const auto not_tried = number(ErrorCode::operation_not_attempted);
  CHECK(producer.add_as_broker({"t", "__transaction_state"}, {0}) ==
        std::vector<std::int16_t>{not_tried, denied});
  CHECK(producer.add_as_broker({"__transaction_state"}, {0}, true) ==
        std::vector<std::int16_t>{denied});
  CHECK(producer.state() == "Empty");
  // Each time that a partition is named it is answered.
  CHECK(producer.add_as_broker({"t", "t"}, {0, 0}) == std::vector<std::int16_t>(4, 0));
  const auto other = number(ErrorCode::transaction_abortable);
  CHECK(producer.add_as_broker({"t", "t"}, {1, 0, 1}, true) ==
        std::vector<std::int16_t>{other, 0, other, other, 0, other});
}

// A producer in a transaction on a broker whose disk calls can be made to throw.
struct Interrupted {
  explicit Interrupted(std::int32_t timeout_ms) {
    broker.create("t");
    producer.timeout_ms = timeout_ms;
    REQUIRE(producer.init() == 0);
    REQUIRE(producer.add({"t"}) == 0);
  }
  LockedFiles files{1};
  Directory directory;
  Running broker{directory, few_states, files};
  Client client{broker.port()};
  SimpleProducer producer{client, "x"};
};

TEST_CASE("a transaction ends though memory ran out while its markers were written") {
  Interrupted at(60'000);
  const auto thrown = throw_once(at.files, "/t-0/");
  CHECK(at.producer.end(true) == 0);
  CHECK(at.producer.comes_to("CompleteCommit"));
  CHECK(*thrown);
}

TEST_CASE("a transaction that runs too long ends though memory ran out at first") {
  Interrupted at(500);
  const auto thrown = throw_once(at.files, "/__transaction_state-");
  CHECK(at.producer.comes_to("CompleteAbort"));
  CHECK(*thrown);
}

}  // namespace broker::test
