// What read_committed sees of transactions that a mirror copied: the last stable offset, and which
// of them were aborted.
#include <map>

#include "tests/unit/broker/fetching.h"

namespace broker::test {
namespace {

using protocol::TransactionResult;

class Transactions {
 public:
  Transactions(Running& broker, const TopicPtr& topic) : broker_(broker), topic_(topic) {}

  // One transactional record of the producer, or a marker; at the log end.
  void write(base::ProducerId producer, std::size_t bytes = 10) {
    protocol::BatchOptions options;
    options.producer_id = producer;
    options.producer_epoch = base::ProducerEpoch{0};
    options.base_sequence = sequences_[producer]++;
    options.transactional = true;
    append(batch_of({std::string(bytes, 'x')}, options));
  }
  void end(base::ProducerId producer, TransactionResult result) {
    protocol::EndTransactionMarker marker;
    marker.producer_id = producer;
    marker.result = result;
    append(protocol::end_transaction_marker(marker, 1000));
  }
  FetchedPartition read(Client& client, base::Offset offset, std::int8_t isolation,
                        std::int32_t bytes = 1 << 20) {
    FetchRequest request = fetch_request(*topic_, offset);
    request.isolation_level = isolation;
    request.topics[0].partitions[0].partition_max_bytes = bytes;
    return fetch(client, request, 12);
  }

 private:
  void append(base::Buffer batch) {
    REQUIRE(on_partition(broker_, {topic_->id, 0},
                         [&](Partition& partition) -> Task<base::Result<void>> {
                           CO_TRY_VOID(partition.append_internal(batch, 1000));
                           co_return base::Result<void>();
                         })
                .has_value());
  }
  Running& broker_;
  TopicPtr topic_;
  std::map<base::ProducerId, std::int32_t> sequences_;
};

std::vector<std::pair<base::ProducerId, base::Offset>> aborted_in(const FetchedPartition& found) {
  std::vector<std::pair<base::ProducerId, base::Offset>> all;
  REQUIRE(found.aborted_transactions);
  for (const auto& one : *found.aborted_transactions)
    all.emplace_back(one.producer_id, one.first_offset);
  return all;
}
using Aborted = std::vector<std::pair<base::ProducerId, base::Offset>>;

}  // namespace

TEST_CASE("read_committed ends at the first open transaction and knows the aborted ones") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  Transactions log(broker, topic);
  log.write(1);                          // 0
  log.write(2);                          // 1
  log.end(2, TransactionResult::abort);  // 2
  log.write(3);                          // 3
  FetchedPartition found = log.read(client, 0, 1);
  CHECK(found.high_watermark == 4);
  CHECK(found.last_stable_offset == 0);
  CHECK(found.records.bytes.empty());
  CHECK(aborted_in(found).empty());
  CHECK(!log.read(client, 0, 0).aborted_transactions);  // null when not asked
  CHECK(!log.read(client, 0, 0).records.bytes.empty());

  log.end(1, TransactionResult::abort);  // 4
  found = log.read(client, 0, 1);
  CHECK(found.last_stable_offset == 3);
  // In the order of their begins, though the second ended first.
  CHECK(aborted_in(found) == Aborted{{1, 0}, {2, 1}});
  CHECK(protocol::parse_batch(found.records.bytes)->base_offset == 0);

  log.end(3, TransactionResult::commit);  // 5
  found = log.read(client, 3, 1);
  CHECK(found.last_stable_offset == 6);
  CHECK(aborted_in(found) == Aborted{{1, 0}});  // its marker is still ahead
  CHECK(aborted_in(log.read(client, 5, 1)).empty());
  CHECK(log.read(client, 9, 1).error_code == number(ErrorCode::offset_out_of_range));
  CHECK(!log.read(client, 9, 1).aborted_transactions);
}

TEST_CASE("the aborted list speaks of what was read, not of the whole log") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  Transactions log(broker, topic);
  constexpr int count = 60;
  for (base::ProducerId i = 0; i < count; ++i) {
    log.write(i, 2000);
    log.end(i, TransactionResult::abort);
  }
  CHECK(aborted_in(log.read(client, 0, 1)).size() == count);
  // One entry of the index stands for 4 KiB.
  const auto some = aborted_in(log.read(client, 0, 1, 5000));
  CHECK(some.size() >= 2);
  CHECK(some.size() <= 8);
  CHECK(some.front() == std::pair<base::ProducerId, base::Offset>{0, 0});
}

TEST_CASE("a long poll of read_committed waits for the marker") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Transactions log(broker, topic);
  log.write(1);
  FetchRequest request = waiting_request(*topic, 0);
  request.isolation_level = 1;
  const Poll found = poll(broker, request, 12, [&] {
    log.write(2);  // more that is not decided
    std::this_thread::sleep_for(milliseconds(100));
    log.end(1, TransactionResult::commit);
  });
  CHECK(found.took >= milliseconds(100));
  CHECK(found.took < soon);
  const FetchedPartition& one = found.answer.responses.at(0).partitions.at(0);
  CHECK(one.last_stable_offset == 1);
  CHECK(!one.records.bytes.empty());
}

}  // namespace broker::test
