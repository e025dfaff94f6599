#include "mirror/mirror_shard.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <utility>

#include "protocol/base/log.h"

namespace mirror {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;
constexpr auto fetcher_idle_max = 60s;
constexpr auto sync_request_interval = 1s;
constexpr int flushes_per_tick = 64;

// FAILED for want of something that a sync with the source would show.
bool waits_for_source(const State& state) {
  return state.state == MirrorState::failed && (state.last_failure == Failure::source_unreachable ||
                                                state.last_failure == Failure::source_behind);
}

}  // namespace

MirrorShard::MirrorShard(Target& target, PartitionStates& states, std::size_t shard,
                         std::shared_ptr<const MirrorSettings> settings,
                         std::function<void()> sync_wanted, SettleOffsets settle_offsets)
    : target_(target),
      states_(states),
      executor_(target.executor(shard)),
      sync_wanted_(std::move(sync_wanted)),
      settle_offsets_(std::move(settle_offsets)),
      tasks_(executor_),
      tick_timer_(executor_) {
  set_settings(std::move(settings));
}

MirrorShard::~MirrorShard() = default;

void MirrorShard::set_settings(std::shared_ptr<const MirrorSettings> settings) {
  settings_ = std::move(settings);
  machine_settings_.retry = settings_->retry;
  machine_settings_.support_unclean_leader_election =
      settings_->config.support_unclean_leader_election;
  machine_settings_.on_source_trimmed =
      settings_->config.fail_on_source_trimmed ? TrimPolicy::fail : TrimPolicy::fast_forward;
  if (client_ && settings_->config.source_cluster_id)
    client_->remember_cluster(*settings_->config.source_cluster_id);
}

void MirrorShard::start() {
  tasks_.spawn("mirror tick", tick_loop());
}

boost::asio::awaitable<void> MirrorShard::stop() {
  stopping_ = true;
  tick_timer_.cancel();
  for (auto& [id, driver] : drivers_) driver->close();
  for (auto& [endpoint, slot] : fetchers_) slot.fetcher->close();
  if (client_) client_->close();
  co_await tasks_.wait();
  by_name_.clear();
  drivers_.clear();
  fetchers_.clear();
}

ConnectionOptions MirrorShard::connection_options() const {
  return {.client_id = settings_->client_id,
          .connect_timeout = settings_->config.connect_timeout,
          .request_timeout = settings_->config.request_timeout};
}

SourceClientOptions MirrorShard::client_options() const {
  return {.bootstrap = settings_->config.bootstrap,
          .connection = connection_options(),
          .cluster_id = settings_->config.source_cluster_id};
}

// ---- Partitions.

bool MirrorShard::add(base::TopicPartition id, std::optional<Record> record) {
  if (drivers_.contains(id)) return true;
  if (stopping_) return false;
  auto partition = target_.partition(id);
  if (!partition) return false;
  auto driver = std::make_shared<PartitionDriver>(*this, std::move(partition));
  drivers_[id] = driver;
  by_name_[{driver->topic(), id.partition}] = driver.get();
  driver->restore(std::move(record));
  return true;
}

std::vector<base::TopicPartition> MirrorShard::keep_only(
    const std::vector<base::TopicPartition>& ids) {
  const std::set<base::TopicPartition> keep(ids.begin(), ids.end());
  std::vector<base::TopicPartition> dropped;
  for (auto it = drivers_.begin(); it != drivers_.end();) {
    PartitionDriver& driver = *it->second;
    if (keep.contains(it->first) && !driver.is_gone()) {
      ++it;
      continue;
    }
    driver.close();
    dropped.push_back(it->first);
    by_name_.erase({driver.topic(), it->first.partition});
    it = drivers_.erase(it);
  }
  return dropped;
}

PartitionDriver* MirrorShard::find(const std::string& topic, std::int32_t partition) const {
  const auto found = by_name_.find({topic, partition});
  return found == by_name_.end() ? nullptr : found->second;
}

void MirrorShard::command(const std::string& topic, std::int32_t partition, const Event& event) {
  if (PartitionDriver* driver = find(topic, partition)) driver->handle(event);
}

void MirrorShard::assign(const LeaderAssignment& assignment) {
  if (PartitionDriver* driver = find(assignment.topic, assignment.partition))
    driver->set_leader(assignment.leader, assignment.source_topic_id);
}

std::vector<PartitionSnapshot> MirrorShard::snapshot() const {
  std::vector<PartitionSnapshot> all;
  for (const auto& [id, driver] : drivers_) {
    const State& state = driver->state();
    PartitionSnapshot one{.topic = driver->topic(),
                          .partition = id.partition,
                          .local = {},
                          .offsets = driver->offsets_here()};
    one.local.state = state.state;
    one.local.final_failure = state.state == MirrorState::failed && state.pending != Pending::retry;
    if (state.state == MirrorState::failed) {
      one.local.unreachable = state.last_failure == Failure::source_unreachable;
      if (state.last_failure == Failure::source_behind) one.local.behind_epoch = state.source_epoch;
    }
    one.local.leader_epoch = state.leader_epoch;
    if (driver->leader()) one.local.fetches_from = driver->leader()->node;
    all.push_back(std::move(one));
  }
  return all;
}

std::map<std::string, std::vector<PartitionDescription>> MirrorShard::describe() const {
  std::map<std::string, std::vector<PartitionDescription>> all;
  const auto now = base::Clock::now();
  for (const auto& [id, driver] : drivers_) all[driver->topic()].push_back(driver->describe(now));
  return all;
}

// ---- What drivers need.

std::chrono::milliseconds MirrorShard::source_deadline() const {
  // An alignment is some four requests one after another.
  return settings_->config.request_timeout * 4 + settings_->config.fetch_wait_max;
}

std::int32_t MirrorShard::jitter_permille() {
  constexpr auto span = static_cast<std::uint64_t>(2 * jitter_permille_max + 1);
  return static_cast<std::int32_t>(random_.below(span)) - jitter_permille_max;
}

void MirrorShard::spawn(boost::asio::awaitable<void> task) {
  tasks_.spawn("mirror partition", std::move(task));
}

Task<void> MirrorShard::persist(base::TopicPartition id, Record record, LeaderEpoch leader_epoch) {
  PartitionKey key{settings_->mirror, id};
  co_return co_await states_.write(std::move(key), std::move(record), leader_epoch);
}

Task<void> MirrorShard::forget(base::TopicPartition id) {
  PartitionKey key{settings_->mirror, id};
  co_return co_await states_.forget(std::move(key));
}

boost::asio::awaitable<void> MirrorShard::settle_groups(std::string topic, GroupPartition at) {
  co_await settle_offsets_(std::move(topic), at);
}

Fetcher* MirrorShard::fetcher_of(base::NodeId node) {
  const auto broker = brokers_.find(node);
  // Never without knowing which cluster it must be.
  if (broker == brokers_.end() || stopping_ || !settings_->config.source_cluster_id) return nullptr;
  FetcherSlot& slot = fetchers_[broker->second];
  slot.idle_since.reset();
  if (!slot.fetcher) {
    const MirrorConfig& config = settings_->config;
    FetcherOptions options{.endpoint = broker->second,
                           .connection = connection_options(),
                           .cluster_id = *config.source_cluster_id,
                           .wait_max = config.fetch_wait_max,
                           .backoff = config.fetch_backoff,
                           .min_bytes = config.fetch_min_bytes,
                           .partition_max_bytes = config.fetch_max_bytes,
                           .response_max_bytes = std::min(config.fetch_response_max_bytes,
                                                          settings_->response_budget_bytes)};
    slot.fetcher = std::make_shared<Fetcher>(executor_, std::move(options));
    tasks_.spawn("mirror fetcher", run_fetcher(slot.fetcher));
  }
  return slot.fetcher.get();
}

boost::asio::awaitable<void> MirrorShard::run_fetcher(std::shared_ptr<Fetcher> fetcher) {
  co_await fetcher->run();
}

// ---- Once a second.

boost::asio::awaitable<void> MirrorShard::tick_loop() {
  while (!stopping_) {
    tick_timer_.expires_after(tick_interval);
    co_await tick_timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (!stopping_) tick();
  }
}

void MirrorShard::tick() {
  const auto now = base::Clock::now();
  bool waiting = false;
  for (auto& [id, driver] : drivers_) {
    driver->tick(now);
    waiting |= waits_for_source(driver->state());
  }
  if (waiting && now - sync_asked_at_ >= sync_request_interval) {
    sync_asked_at_ = now;
    sync_wanted_();
  }
  flush_some(now);
  drop_idle_fetchers(now);
}

void MirrorShard::flush_some(base::Clock::time_point now) {
  if (drivers_.empty()) return;
  auto it = drivers_.lower_bound(flush_next_);
  int begun = 0;
  for (std::size_t seen = 0; seen < drivers_.size() && begun < flushes_per_tick; ++seen, ++it) {
    if (it == drivers_.end()) it = drivers_.begin();
    if (it->second->flush_if_due(now)) ++begun;
  }
  flush_next_ = it == drivers_.end() ? base::TopicPartition{} : it->first;
}

void MirrorShard::drop_idle_fetchers(base::Clock::time_point now) {
  for (auto it = fetchers_.begin(); it != fetchers_.end();) {
    FetcherSlot& slot = it->second;
    if (!slot.fetcher->idle())
      slot.idle_since.reset();
    else if (!slot.idle_since)
      slot.idle_since = now;
    const bool drop = slot.idle_since && now - *slot.idle_since > fetcher_idle_max;
    if (drop) slot.fetcher->close();  // its coroutine keeps it until it has ended
    it = drop ? fetchers_.erase(it) : std::next(it);
  }
}

}  // namespace mirror
