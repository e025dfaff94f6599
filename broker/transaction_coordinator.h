// The transaction coordinator as the rest of the broker sees it: it finds the partition of
// __transaction_state that keeps a transactional id, has the pure core of broker/transactions/
// decide there, and answers when what was decided is on disk.
//
// The functions may be awaited on any shard; they hop there and back by themselves.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/partition.h"
#include "broker/shard.h"
#include "broker/transaction_marker.h"
#include "broker/transaction_partition.h"
#include "broker/transactions/transaction_shard.h"
#include "protocol/error_code.h"
#include "protocol/internal_topics.h"

namespace broker {

class Broker;

using protocol::transaction_state_topic;

// The topic as this coordinator makes it.
NewTopic transaction_topic(const Config& config);

class TransactionCoordinator {
 public:
  explicit TransactionCoordinator(Broker& broker);
  ~TransactionCoordinator();

  // Begins to load what is there. After the logs were opened, before clients are let in.
  void start();
  // Loops that still run: none some moments after the shards began to stop.
  int running() const { return running_.load(); }

  // Makes the topic unless it is there. Errors are the catalog's;
  // mirror_not_stopped when a mirror brought it.
  boost::asio::awaitable<base::Result<void>> ensure_topic();

  // Errors are those of the pure core, and the coordinator's: not_coordinator,
  // coordinator_load_in_progress.
  boost::asio::awaitable<transactions::ProducerAnswer> init_producer_id(
      transactions::InitProducerId asked);
  boost::asio::awaitable<protocol::ErrorCode> add_partitions(transactions::AddPartitions asked);
  // Of each partition, in the order asked, whether it is in the transaction.
  boost::asio::awaitable<std::vector<protocol::ErrorCode>> verify(
      transactions::AddPartitions asked);
  // The group's part of __consumer_offsets takes part in the transaction.
  boost::asio::awaitable<protocol::ErrorCode> add_offsets(std::string transactional_id,
                                                          transactions::Producer producer,
                                                          std::string group);
  // Before offsets are committed in a transaction: the same from clients that do not ask for it
  // themselves, else it is looked whether it does. The ticket is to be given back.
  struct OffsetsAdmission {
    protocol::ErrorCode error = protocol::ErrorCode::none;
    base::TopicPartition place;
    std::optional<TransactionTicket> ticket;
  };
  boost::asio::awaitable<OffsetsAdmission> admit_offsets(std::string transactional_id,
                                                         transactions::Producer producer,
                                                         std::string group, bool add);
  // Waits a moment for the markers, too: the producer's next transaction can begin then.
  boost::asio::awaitable<transactions::ProducerAnswer> end(transactions::EndTransaction asked);
  boost::asio::awaitable<transactions::Description> describe(std::string transactional_id);
  boost::asio::awaitable<CoordinatorOutcome<std::vector<transactions::Listed>>> list(
      transactions::Filter filter);

  // Writes a marker and waits for the disk. Errors are those of WriteTxnMarkers.
  boost::asio::awaitable<protocol::ErrorCode> write_marker(transactions::Part part,
                                                           TransactionMarker marker);
  // The same for a transaction of ours. False: the partition must be asked again.
  boost::asio::awaitable<bool> write_owed_marker(transactions::Part part, TransactionMarker marker);

  // From any shard; done later.
  void topic_deleted(const std::string& name);

  void spawn(Shard& shard, boost::asio::awaitable<void> loop);

 private:
  using Partitions = std::map<std::int32_t, std::shared_ptr<TransactionPartition>>;
  using Place = base::TopicPartition;

  // Where an id is kept; nothing before the topic is there. On any shard.
  std::optional<Place> locate(std::string_view transactional_id) const;
  // On the partition's shard. Null: it is not there, or not any more.
  std::shared_ptr<TransactionPartition> find_or_open(Shard& shard, const Place& id);
  // All partitions that belong to the shard. On it.
  std::vector<std::shared_ptr<TransactionPartition>> open_all(Shard& shard);
  boost::asio::awaitable<void> housekeeping(Shard* shard);
  // Runs `f`, which takes (TransactionPartition&) and gives an awaitable of an outcome, where the
  // id is kept.
  template <class F>
  auto at_home(std::string_view transactional_id, F f)
      -> std::invoke_result_t<F, TransactionPartition&>;

  Broker& broker_;
  transactions::Settings settings_;
  std::vector<Partitions> by_shard_;  // each touched by its shard alone
  std::atomic<int> running_{0};
};

}  // namespace broker
