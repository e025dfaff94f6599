// The periodic sync of a mirror with its source (KIP-1279 section j): what the source has, compared
// with what is here, and what follows from it.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "mirror/mirror_task.h"
#include "protocol/base/log.h"
#include "protocol/internal_topics.h"

namespace mirror {
namespace {

using namespace std::chrono_literals;

// While the source is away one connection is tried this often, so that mirroring goes on within
// seconds of its return.
constexpr std::chrono::milliseconds away_interval = 1000ms;
// Syncs that partitions ask for come at most this often, and the less often the more there are.
constexpr std::chrono::milliseconds demand_pause_min = 1000ms;
constexpr std::chrono::milliseconds demand_pause_max = 5000ms;
// Listings closer together than this count as one when a topic is missing: a broker that has just
// started may answer without its topics.
constexpr std::chrono::milliseconds absence_interval = 5000ms;

std::int8_t number(MirrorState state) {
  return static_cast<std::int8_t>(state);
}

}  // namespace

void MirrorTask::sync_now() {
  groups_.wake();
  if (syncing_) {
    sync_again_ = true;
    return;
  }
  next_sync_at_ = base::Clock::now();
  sync_timer_.cancel();
}

void MirrorTask::sync_wanted_by_shard() {
  if (syncing_ || stopping_) return;  // the one under way tells them
  const auto at = last_sync_at_ + demand_pause_;
  if (at >= next_sync_at_) return;
  demand_pause_ = std::min(demand_pause_ * 2, demand_pause_max);
  next_sync_at_ = at;
  sync_timer_.cancel();
}

std::chrono::milliseconds MirrorTask::refresh_interval() const {
  return config().refresh_interval.value_or(options_.metadata_refresh_interval);
}

SourceClientOptions MirrorTask::groups_client_options(std::chrono::milliseconds limit) const {
  return {.bootstrap = config().bootstrap,
          .connection = {.client_id =
                             "mirror-groups-src-" + name() + "-" + std::to_string(options_.node_id),
                         .connect_timeout = std::min(limit, config().connect_timeout),
                         .request_timeout = std::min(limit, config().request_timeout)},
          .cluster_id = config().source_cluster_id};
}

boost::asio::awaitable<void> MirrorTask::wait_for_next_sync() {
  while (!stopping_ && base::Clock::now() < next_sync_at_) {
    sync_timer_.expires_at(next_sync_at_);
    co_await sync_timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

boost::asio::awaitable<void> MirrorTask::sync_loop() {
  while (!stopping_) {
    syncing_ = true;
    sync_again_ = false;
    co_await sync_once();
    syncing_ = false;
    last_sync_at_ = base::Clock::now();
    const auto refresh = refresh_interval();
    if (base::Clock::now() >= next_sync_at_ + demand_pause_max) demand_pause_ = demand_pause_min;
    next_sync_at_ = last_sync_at_ + (reachable_ ? refresh : std::min(refresh, away_interval));
    if (sync_again_) next_sync_at_ = last_sync_at_;
    co_await wait_for_next_sync();
  }
}

boost::asio::awaitable<void> MirrorTask::sync_once() {
  if (!client_)
    client_ = std::make_unique<SourceClient>(
        executor_,
        SourceClientOptions{.bootstrap = config().bootstrap,
                            .connection = {.client_id = "mirror-syncer-src-" + name() + "-" +
                                                        std::to_string(options_.node_id),
                                           .connect_timeout = config().connect_timeout,
                                           .request_timeout = config().request_timeout},
                            .cluster_id = config().source_cluster_id});
  const auto metadata = co_await client_->metadata(std::nullopt);
  if (stopping_) co_return;
  note_contact(metadata);
  Source source = source_of(metadata);
  co_await want_unclaimed();
  co_await place_partitions();
  if (stopping_) co_return;
  const Here here = co_await look_here();
  if (stopping_) co_return;
  co_await ask_reverse(here, source);
  if (stopping_) co_return;
  Plan plan = reconcile(here, source, std::move(memory_));
  memory_ = std::move(plan.memory);
  co_await carry_out(plan.requests, source);
}

void MirrorTask::note_contact(const base::Result<SourceMetadata>& metadata) {
  auto& log = base::logger("mirror");
  const bool was = reachable_;
  reachable_ = metadata.has_value();
  if (metadata) {
    source_problem_.clear();
    if (!was) {
      log.info("{}: the source answers, cluster {}", name(), metadata->cluster_id);
      groups_.wake();
    }
  } else {
    ++sync_failures_;
    const std::string problem = client_->describe(metadata.error());
    if (was || !ever_asked_ || problem != source_problem_)  // not once a second
      log.warn("{}: the source cannot be asked: {}", name(), problem);
    source_problem_ = problem;
  }
  ever_asked_ = true;
}

bool MirrorTask::absence_counts(base::Clock::time_point now) {
  const auto refresh = refresh_interval();
  const auto apart = std::min(refresh, absence_interval);
  if (absence_counted_at_ && now - *absence_counted_at_ < apart) return false;
  absence_counted_at_ = now;
  return true;
}

Source MirrorTask::source_of(const base::Result<SourceMetadata>& metadata) {
  Source source;
  if (!metadata) {
    // A foreign cluster is a word about the source; any other failure says nothing.
    if (metadata.error() != SourceErrc::cluster_changed) return source;
    source.reachable = true;
    source.cluster_id = client_->seen_cluster_id();
    return source;
  }
  source.reachable = true;
  source.cluster_id = metadata->cluster_id;
  source.complete = true;
  for (const SourceMetadata::Topic& topic : metadata->topics) {
    if (topic.error != 0) {
      source.complete = false;
      continue;
    }
    SourceTopic one{.name = topic.name,
                    .id = topic.id,
                    .included = config().discovery && !topic.internal &&
                                !protocol::is_coordinator_topic(topic.name) &&
                                config().filter.includes(topic.name),
                    .partitions = {}};
    for (const SourceMetadata::Partition& partition : topic.partitions)
      one.partitions.push_back({partition.leader, partition.leader_epoch});
    source.topics.push_back(std::move(one));
  }
  if (source.complete) source.complete = absence_counts(base::Clock::now());
  brokers_ = metadata->brokers;
  return source;
}

boost::asio::awaitable<void> MirrorTask::ask_reverse(const Here& here, Source& source) {
  std::vector<std::string> names = to_be_adopted(here, source);
  if (names.empty()) co_return;
  const auto answer = co_await client_->reverse_mirrors(target_.cluster_id(), names);
  if (!answer) {
    base::logger("mirror").warn("{}: the source cannot be asked for its mirrors: {}", name(),
                                client_->describe(answer.error()));
    co_return;
  }
  const std::set<std::string> asked(names.begin(), names.end());
  for (SourceTopic& topic : source.topics)
    if (asked.contains(topic.name)) topic.reverse = answer->worst_of(topic.name);
}

// ---- Carrying out.

boost::asio::awaitable<void> MirrorTask::carry_out(const std::vector<Request>& requests,
                                                   const Source& source) {
  bool changed = false;
  std::map<std::string, std::string> conflicts;
  for (const Request& request : requests) {
    if (stopping_) co_return;
    if (const auto* create = std::get_if<CreateTopic>(&request)) {
      co_await create_topic(*create);
      changed = true;
    } else if (const auto* add = std::get_if<AddPartitions>(&request)) {
      co_await add_partitions(*add);
      changed = true;
    } else if (const auto* known = std::get_if<RememberTopicId>(&request)) {
      co_await remember_topic_id(*known);
    } else if (const auto* stop_topic = std::get_if<StopTopic>(&request)) {
      std::vector<std::string> names(1, stop_topic->name);
      co_await want(std::move(names), MirrorState::stopped);
      changed = true;
    } else if (const auto* remember = std::get_if<RememberCluster>(&request)) {
      co_await remember_cluster(*remember);
    } else if (const auto* conflict = std::get_if<Conflict>(&request)) {
      conflicts[conflict->name] = conflict->text;
      if (!conflicts_.contains(conflict->name))
        base::logger("mirror").warn("{}: topic {} cannot be mirrored: {}", name(), conflict->name,
                                    conflict->text);
    }
  }
  if (source.reachable) conflicts_ = std::move(conflicts);
  if (stopping_) co_return;
  Orders orders = no_orders();
  for (const Request& request : requests) order(orders, request, &source);
  std::optional<std::map<base::NodeId, Endpoint>> brokers;
  if (reachable_) brokers = brokers_;
  send(std::move(orders), std::move(brokers));
  if (changed) co_await push_desired();
}

boost::asio::awaitable<void> MirrorTask::create_topic(CreateTopic request) {
  const auto attached =
      co_await target_.attach_topic(name(), request.name, request.id, request.partitions);
  if (!attached) {
    base::logger("mirror").error("{}: topic {} cannot be created here: {}", name(), request.name,
                                 attached.error().message());
    co_return;
  }
  base::logger("mirror").info("{}: topic {} with {} partitions is mirrored from now on", name(),
                              request.name, request.partitions);
  std::vector<std::string> names(1, request.name);
  co_await want(std::move(names), MirrorState::mirroring);
}

boost::asio::awaitable<void> MirrorTask::add_partitions(AddPartitions request) {
  const auto added = co_await target_.add_partitions(request.name, request.total);
  if (!added)
    base::logger("mirror").error("{}: topic {} cannot get {} partitions: {}", name(), request.name,
                                 request.total, added.error().message());
}

// If it cannot be kept, the next sync tries again.
boost::asio::awaitable<void> MirrorTask::remember_topic_id(RememberTopicId request) {
  const auto kept = co_await target_.remember_source_id(request.name, request.id);
  if (kept)
    base::logger("mirror").info("{}: the source has topic ids now, that of {} is {}", name(),
                                request.name, request.id.to_string());
  else
    base::logger("mirror").error("{}: the source's id of topic {} cannot be kept: {}", name(),
                                 request.name, kept.error().message());
}

boost::asio::awaitable<void> MirrorTask::want(std::vector<std::string> names, MirrorState state) {
  if (names.empty()) co_return;
  const auto set = co_await target_.set_desired_state(names, number(state));
  if (!set)
    base::logger("mirror").error("{}: the desired state of topic {} cannot be kept: {}", name(),
                                 names.front(), set.error().message());
}

// Attached before a crash came between that and the wish.
boost::asio::awaitable<void> MirrorTask::want_unclaimed() {
  std::vector<std::string> unclaimed;
  for (const LocalTopic& topic : topics())
    if (topic.desired_state == number(MirrorState::unknown)) unclaimed.push_back(topic.name);
  co_await want(std::move(unclaimed), MirrorState::mirroring);
}

// Durable before any partition can fetch: fetchers are made only once the settings name the
// cluster.
boost::asio::awaitable<void> MirrorTask::remember_cluster(RememberCluster request) {
  ConfigMap configs = definition_.configs;
  configs[config_key::source_cluster_id] = request.cluster_id;
  MirrorConfig changed = config();
  changed.source_cluster_id = request.cluster_id;
  const auto saved = co_await change_config(std::move(configs), std::move(changed));
  if (saved)
    client_->remember_cluster(request.cluster_id);
  else
    base::logger("mirror").error("{}: the source's cluster id cannot be kept: {}", name(),
                                 saved.error().message());
}

}  // namespace mirror
