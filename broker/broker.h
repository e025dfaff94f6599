// The process as its parts see it: settings, shards, catalog, mirrors. One per process; outlives
// every shard's work.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/catalog.h"
#include "broker/config.h"
#include "broker/partition.h"
#include "broker/shard.h"
#include "storage/log_dir.h"

namespace mirror {
class Coordinator;
}

namespace broker {

class ClientQuotas;
class GroupCoordinator;
class LogStore;
class MirrorTarget;
class ProducerIds;
class Server;
class TransactionCoordinator;

class Broker {
 public:
  // `files` outlives the broker.
  Broker(Config config, storage::FileSystem& files);
  ~Broker();

  // Opens the directory, the metadata store, catalog and logs, starts the shards and binds the
  // listeners. When this returns without error clients are served. The error is a sentence for the
  // operator.
  std::optional<std::string> start();
  // Orderly: no new connections, running requests end within the deadline, logs are synced and
  // closed, the clean mark is set.
  void stop();

  const Config& config() const { return config_; }
  base::NodeId node_id() const { return config_.node_id(); }
  const std::string& cluster_id() const { return cluster_id_; }

  std::size_t shard_count() const { return shards_.size(); }
  Shard& shard(std::size_t index) { return *shards_[index]; }
  // The shard that a partition belongs to for life.
  Shard& shard_of(const base::TopicPartition& id);
  std::size_t shard_index_of(const base::TopicPartition& id) const;

  Catalog& catalog() { return *catalog_; }
  LogStore& logs() { return *logs_; }
  ProducerIds& producer_ids() { return *producer_ids_; }
  ClientQuotas& quotas() { return *quotas_; }
  GroupCoordinator& groups() { return *groups_; }
  TransactionCoordinator& transactions() { return *transactions_; }
  MirrorTarget& mirror_target() { return *mirror_target_; }
  mirror::Coordinator& mirrors() { return *mirrors_; }

  // Where clients that came in through `listener` find this broker.
  const Endpoint& advertised(std::string_view listener) const;
  // Port that the listener is bound to (they differ when 0 was asked for).
  std::uint16_t bound_port(std::string_view listener) const;

 private:
  std::optional<std::string> open_storage();
  void open_logs();
  std::optional<std::string> start_mirrors();
  void start_background();
  boost::asio::awaitable<void> tick_loop(Shard* shard);
  boost::asio::awaitable<void> compact_loop(Shard* shard, std::chrono::milliseconds interval);
  boost::asio::awaitable<void> retention_loop(Shard* shard);
  boost::asio::awaitable<void> checkpoint_loop();
  // Syncs every log of every shard and answers where they stand. On shard 0.
  boost::asio::awaitable<std::vector<storage::LogDirectory::Checkpoint>> flush_all();
  // Closes every log. Whether all of them could be, and where they stand. On shard 0.
  struct Closed {
    bool clean = true;
    std::vector<storage::LogDirectory::Checkpoint> checkpoints;
  };
  boost::asio::awaitable<Closed> close_all();
  static boost::asio::awaitable<Closed> close_partitions(Shard& shard);
  void end_threads(bool quiet);

  Config config_;
  storage::FileSystem& files_;
  std::string cluster_id_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<LogStore> logs_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<ProducerIds> producer_ids_;
  std::unique_ptr<ClientQuotas> quotas_;
  std::unique_ptr<GroupCoordinator> groups_;
  std::unique_ptr<TransactionCoordinator> transactions_;
  std::unique_ptr<MirrorTarget> mirror_target_;
  std::unique_ptr<mirror::Coordinator> mirrors_;
  std::unique_ptr<Server> server_;
  std::vector<Endpoint> advertised_;
  std::atomic<int> background_{0};  // loops that still run
  bool started_ = false;
};

}  // namespace broker
