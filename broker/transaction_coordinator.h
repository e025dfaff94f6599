// The transaction coordinator as the rest of the broker sees it: it finds the partition of
// __transaction_state that keeps a transactional id, has the pure core of broker/transactions/
// decide there, and answers when what was decided is on disk.
//
// The functions may be awaited on any shard; they hop there and back by themselves.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/coordinator_partitions.h"
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

  // Begins to load what is there. After the logs were opened, before clients are let in.
  void start() { partitions_.start(); }
  // Loops that still run: none some moments after the shards began to stop.
  int running() const { return partitions_.running(); }

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

  void spawn(Shard& shard, boost::asio::awaitable<void> loop) {
    partitions_.spawn(shard, std::move(loop));
  }

 private:
  Broker& broker_;
  transactions::Settings settings_;
  CoordinatorPartitions<TransactionPartition> partitions_;
};

}  // namespace broker
