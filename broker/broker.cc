#include "broker/broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "broker/bounds.h"
#include "broker/compactor.h"
#include "broker/error.h"
#include "broker/fetch_sessions.h"
#include "broker/group_coordinator.h"
#include "broker/log_store.h"
#include "broker/mirror_target.h"
#include "broker/producer_ids.h"
#include "broker/quotas.h"
#include "broker/retention.h"
#include "broker/server.h"
#include "broker/transaction_coordinator.h"
#include "mirror/coordinator.h"
#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "storage/error.h"

namespace broker {

namespace asio = boost::asio;

namespace {

constexpr std::string_view metadata_directory = "__calque_metadata";
constexpr std::string_view cluster_key = "cluster";

spdlog::logger& log() {
  return base::logger("broker");
}

std::string open_problem(const std::string& path, const base::Error& error) {
  using storage::StorageErrc;
  if (error == StorageErrc::locked)
    return fmt::format(
        "log.dirs: {} is in use by another process: stop it, or name another "
        "directory",
        path);
  if (error == StorageErrc::wrong_cluster)
    return fmt::format(
        "log.dirs: {} belongs to another node.id or cluster (see meta.properties "
        "there): set node.id as it was, or name another directory",
        path);
  return fmt::format("log.dirs: {} cannot be opened: {}", path, error.message());
}

storage::LogDirectory::Checkpoint checkpoint_of(const Partition& partition) {
  storage::LogDirectory::Checkpoint one;
  one.topic = partition.topic().name;
  one.partition = partition.index();
  one.recovery_point = partition.log().durable_end();
  one.log_start = partition.log_start();
  one.high_watermark = std::min(partition.high_watermark(), one.recovery_point);
  return one;
}

std::uint64_t request_bytes_of_shard(const Config& config) {
  const auto largest = static_cast<std::uint64_t>(config.request_bytes_max());
  const std::int64_t queued = config.integer("queued.max.request.bytes");
  const std::uint64_t all =
      queued > 0 ? static_cast<std::uint64_t>(queued) : largest * queued_requests_default;
  return std::max<std::uint64_t>(1, all / config.shard_count());
}

FetchSessions::Limits session_limits_of_shard(const Config& config, std::size_t index) {
  const auto all =
      static_cast<std::size_t>(config.integer("max.incremental.fetch.session.cache.slots"));
  FetchSessions::Limits limits;
  limits.sessions = all / config.shard_count() + (index < all % config.shard_count() ? 1 : 0);
  limits.partitions = fetch_session_partitions_max / config.shard_count();
  return limits;
}

}  // namespace

Broker::Broker(Config config, storage::FileSystem& files)
    : config_(std::move(config)), files_(files), advertised_(config_.advertised()) {}

Broker::~Broker() {
  if (started_) stop();
}

Shard& Broker::shard_of(const base::TopicPartition& id) {
  return *shards_[shard_index_of(id)];
}

std::size_t Broker::shard_index_of(const base::TopicPartition& id) const {
  return std::hash<base::TopicPartition>{}(id) % shards_.size();
}

const Endpoint& Broker::advertised(std::string_view listener) const {
  const auto at = std::ranges::find(advertised_, listener, &Endpoint::listener);
  return at != advertised_.end() ? *at : advertised_.front();
}

std::uint16_t Broker::bound_port(std::string_view listener) const {
  return server_->port(listener);
}

std::optional<std::string> Broker::open_storage() {
  const std::string& path = config_.log_directory();
  std::optional<std::uint64_t> reserve;
  if (config_.is_set("calque.disk.reserve.bytes"))
    reserve = static_cast<std::uint64_t>(config_.integer("calque.disk.reserve.bytes"));
  auto logs = LogStore::open(files_, path, node_id(), reserve);
  if (logs.has_error()) return open_problem(path, logs.error());
  logs_ = std::move(logs).value();
  cluster_id_ = logs_->cluster_id();

  const std::string metadata_path = path + "/" + std::string(metadata_directory);
  auto store = storage::open_rocksdb_store(metadata_path);
  if (store.has_error())
    return fmt::format("the metadata store {} cannot be opened: {}", metadata_path,
                       store.error().message());
  catalog_ = std::make_unique<Catalog>(*this, std::move(store).value());
  const auto problem = [&](std::string_view what, const base::Error& error) {
    return fmt::format("the metadata store {}: {}: {}", metadata_path, what, error.message());
  };

  const auto cluster = catalog_->store().get(cluster_key);
  if (cluster.has_error()) return problem("the cluster id cannot be read", cluster.error());
  if (*cluster) {
    const auto record = storage::decode_cluster((*cluster)->value);
    if (record.has_error()) return problem("the cluster id is damaged", record.error());
    if (record->cluster_id != cluster_id_)
      return fmt::format(
          "{} belongs to cluster {} and meta.properties in {} says {}: restore the "
          "one that was replaced",
          metadata_path, record->cluster_id, path, cluster_id_);
  } else {
    storage::ClusterRecord record;
    record.cluster_id = cluster_id_;
    const auto written =
        catalog_->store().txn({}, {{std::string(cluster_key), storage::encode(record)}});
    if (written.has_error()) return problem("the cluster id was not written", written.error());
  }
  if (const auto loaded = catalog_->load(); loaded.has_error())
    return problem("the catalog cannot be read", loaded.error());
  if (const auto raised = catalog_->raise_all_epochs(); raised.has_error())
    return problem("the leader epochs were not raised", raised.error());

  std::vector<LogStore::Known> known;
  for (const auto& [name, topic] : catalog_->snapshot()->topics())
    known.push_back({name, static_cast<std::int32_t>(topic->partitions.size()), topic->id});
  const auto strays = logs_->set_strays_aside(known);
  if (strays.has_error())
    return fmt::format("log.dirs: {} cannot be looked through: {}", path, strays.error().message());
  for (const std::string& one : *strays)
    log().warn("a log that no topic knows was moved aside: {}", one);
  return std::nullopt;
}

// Each shard opens its own. A log that cannot be opened leaves its partition out, the others go on.
void Broker::open_logs() {
  const SnapshotPtr snapshot = catalog_->snapshot();
  std::vector<std::future<void>> opened;
  for (const auto& shard : shards_) {
    auto open = [this, snapshot, mine = shard.get()]() -> asio::awaitable<void> {
      for (const auto& [name, topic] : snapshot->topics()) {
        const auto count = static_cast<std::int32_t>(topic->partitions.size());
        for (std::int32_t i = 0; i < count; ++i) {
          if (&shard_of({topic->id, i}) != mine) continue;
          auto partition = catalog_->open_partition(topic, i);
          if (partition.has_error())
            log().error("{}-{} stays offline, its log cannot be opened: {}", name, i,
                        partition.error().message());
          else
            mine->add(std::move(partition).value());
        }
      }
      co_return;
    };
    opened.push_back(asio::co_spawn(shard->executor(), std::move(open), asio::use_future));
  }
  for (auto& one : opened) one.get();
}

std::optional<std::string> Broker::start_mirrors() {
  using std::chrono::milliseconds;
  mirror::CoordinatorOptions options;
  options.metadata_refresh_interval =
      milliseconds(config_.integer("mirror.metadata.refresh.interval.ms"));
  options.retry_backoff_initial =
      milliseconds(config_.integer("mirror.failed.retry.initial.backoff.ms"));
  options.retry_backoff_max = milliseconds(config_.integer("mirror.failed.retry.max.backoff.ms"));
  options.retry_attempts_max =
      static_cast<std::int16_t>(config_.integer("mirror.failed.retry.max.attempts"));
  options.node_id = node_id();
  auto begin = [this, options]() -> asio::awaitable<base::Result<void>> {
    mirrors_ = std::make_unique<mirror::Coordinator>(*mirror_target_, options);
    co_return co_await mirrors_->start();
  };
  const auto begun = asio::co_spawn(shard(0).executor(), std::move(begin), asio::use_future).get();
  if (begun.has_error())
    return fmt::format("the mirrors' states cannot be read: {}", begun.error().message());
  return std::nullopt;
}

std::optional<std::string> Broker::start() {
  CHECK(!started_);
  started_ = true;
  for (std::size_t i = 0; i < config_.shard_count(); ++i) {
    shards_.push_back(std::make_unique<Shard>(i, request_bytes_of_shard(config_)));
    shards_.back()->set_fetch_sessions(std::make_unique<FetchSessions>(
        i, config_.shard_count(), session_limits_of_shard(config_, i),
        base::Random::from_system()));
  }
  if (auto problem = open_storage()) return problem;
  producer_ids_ = std::make_unique<ProducerIds>(*this);
  quotas_ = std::make_unique<ClientQuotas>(*this);
  groups_ = std::make_unique<GroupCoordinator>(*this);
  transactions_ = std::make_unique<TransactionCoordinator>(*this);
  mirror_target_ = std::make_unique<MirrorTarget>(*this);
  for (const auto& shard : shards_) {
    shard->set_catalog(catalog_->snapshot());
    shard->start();
  }
  open_logs();
  groups_->start();
  transactions_->start();
  if (auto problem = start_mirrors()) return problem;
  start_background();
  server_ = std::make_unique<Server>(*this);
  if (auto problem = server_->start()) return problem;
  for (Endpoint& one : advertised_)
    if (one.port == 0) one.port = server_->port(one.listener);
  return std::nullopt;
}

void Broker::start_background() {
  const auto ended = [this](std::exception_ptr failure) {
    --background_;
    if (failure) log().error("a background loop ended by an exception");
  };
  const std::chrono::milliseconds cleaner_backoff(config_.integer("log.cleaner.backoff.ms"));
  for (const auto& shard : shards_) {
    background_ += 3;
    asio::co_spawn(shard->executor(), tick_loop(shard.get()), ended);
    asio::co_spawn(shard->executor(), compact_loop(shard.get(), cleaner_backoff), ended);
    asio::co_spawn(shard->executor(), retention_loop(shard.get()), ended);
  }
  ++background_;
  asio::co_spawn(shard(0).executor(), checkpoint_loop(), ended);
}

asio::awaitable<void> Broker::tick_loop(Shard* shard) {
  while (!shard->stopping()) {
    co_await shard->stop_signal().wait(base::Clock::now() + tick_interval);
    const std::int64_t now_ms = base::wall_clock_ms();
    for (const auto& [id, partition] : shard->partitions()) partition->tick(now_ms);
  }
}

asio::awaitable<void> Broker::compact_loop(Shard* shard, std::chrono::milliseconds interval) {
  Compactor compactor(*shard, interval);
  co_await compactor.run();
}

asio::awaitable<void> Broker::retention_loop(Shard* shard) {
  Retention retention(*this, *shard);
  co_await retention.run();
}

asio::awaitable<void> Broker::checkpoint_loop() {
  const std::chrono::milliseconds interval(
      config_.integer("log.flush.offset.checkpoint.interval.ms"));
  Shard& home = shard(0);
  for (;;) {
    co_await home.stop_signal().wait(base::Clock::now() + interval);
    if (home.stopping()) co_return;
    auto all = co_await flush_all();
    auto work = [this, &all] { return logs_->write_checkpoints(all); };
    const auto written = co_await home.on_disk(std::move(work));
    if (written.has_error())
      log().error("the checkpoint files were not written: {}", written.error().message());
  }
}

asio::awaitable<std::vector<storage::LogDirectory::Checkpoint>> Broker::flush_all() {
  using Checkpoints = std::vector<storage::LogDirectory::Checkpoint>;
  std::vector<Job<Checkpoints>> jobs;
  for (const auto& one : shards_) {
    auto flush = [mine = one.get()]() -> asio::awaitable<Checkpoints> {
      std::vector<std::shared_ptr<Partition>> partitions;
      for (const auto& [id, partition] : mine->partitions()) partitions.push_back(partition);
      Checkpoints checkpoints;
      for (const auto& partition : partitions) {
        // What goes wrong is logged where it happens; the checkpoint says how far it got.
        static_cast<void>(co_await partition->flush(partition->log_end()));
        if (mine->find(partition->id()) == partition)
          checkpoints.push_back(checkpoint_of(*partition));
      }
      co_return checkpoints;
    };
    jobs.push_back({one.get(), std::move(flush)});
  }
  Checkpoints all;
  for (auto& some : co_await on_each(std::move(jobs)))
    std::ranges::move(some, std::back_inserter(all));
  co_return all;
}

namespace {

// Closes them side by side: each waits for the device several times, and those that wait together
// share what it does. Returns when all are closed: nobody else looks at them meanwhile.
std::vector<base::Result<void>> close_logs(const std::vector<storage::Log*>& logs) {
  std::vector<base::Result<void>> outcomes(logs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < logs.size(); i = next++) outcomes[i] = logs[i]->close();
  };
  std::vector<std::thread> threads;
  while (threads.size() + 1 < std::min(closing_threads, logs.size())) threads.emplace_back(work);
  work();
  for (std::thread& one : threads) one.join();
  return outcomes;
}

}  // namespace

asio::awaitable<Broker::Closed> Broker::close_partitions(Shard& shard) {
  std::vector<std::shared_ptr<Partition>> partitions;
  std::vector<storage::Log*> logs;
  for (const auto& [id, partition] : std::unordered_map(shard.partitions())) {
    storage::Log* const log = co_await partition->close();
    if (log == nullptr) continue;
    partitions.push_back(partition);
    logs.push_back(log);
  }
  const auto outcomes = close_logs(logs);
  Closed closed;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    if (outcomes[i].has_error()) {
      closed.clean = false;
      log().error("{}-{} was not closed cleanly: {}", partitions[i]->topic().name,
                  partitions[i]->index(), outcomes[i].error().message());
    }
    closed.checkpoints.push_back(checkpoint_of(*partitions[i]));
  }
  co_return closed;
}

asio::awaitable<Broker::Closed> Broker::close_all() {
  std::vector<Job<Closed>> jobs;
  for (const auto& one : shards_)
    jobs.push_back({one.get(), [mine = one.get()] { return close_partitions(*mine); }});
  Closed all;
  for (Closed& some : co_await on_each(std::move(jobs))) {
    all.clean = all.clean && some.clean;
    std::ranges::move(some.checkpoints, std::back_inserter(all.checkpoints));
  }
  co_return all;
}

void Broker::stop() {
  if (!std::exchange(started_, false)) return;
  const bool ran = mirrors_ != nullptr;
  for (const auto& one : shards_)
    asio::post(one->executor(), [mine = one.get()] { mine->begin_stop(); });
  bool quiet = !server_ || server_->stop();
  if (ran) {
    auto end = [this]() -> asio::awaitable<Closed> {
      co_await mirrors_->stop();
      mirrors_.reset();
      co_return co_await close_all();
    };
    const Closed closed =
        asio::co_spawn(shard(0).executor(), std::move(end), asio::use_future).get();
    if (closed.clean && quiet) {
      if (const auto marked = logs_->close_clean(closed.checkpoints); marked.has_error())
        log().error("the directory was not marked as cleanly closed: {}", marked.error().message());
    }
  }
  const auto deadline = base::Clock::now() + drain_max;
  const auto left = [this] {
    return background_.load() + (groups_ ? groups_->running() : 0) +
           (transactions_ ? transactions_->running() : 0);
  };
  while (left() > 0 && base::Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  end_threads(quiet && left() == 0);
}

void Broker::end_threads(bool quiet) {
  for (const auto& one : shards_) one->stop();
  if (quiet) {
    for (const auto& one : shards_)
      while (!one->partitions().empty()) one->remove(one->partitions().begin()->first);
    return;
  }
  // Coroutines that still hang in one shard may refer to another: they cannot be taken apart in any
  // order, and the process is about to end.
  log().error("some work did not end in time; it is left as it is");
  for (auto& one : shards_) static_cast<void>(one.release());
  shards_.clear();
}

}  // namespace broker
