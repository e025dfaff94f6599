#include "broker/transaction_coordinator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/error_map.h"
#include "broker/group_coordinator.h"
#include "broker/producer_ids.h"
#include "protocol/base/check.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

namespace asio = boost::asio;
using protocol::ErrorCode;

namespace {

transactions::Settings transaction_settings_of(const Config& config) {
  transactions::Settings settings;
  settings.timeout_max_ms = static_cast<std::int32_t>(config.integer("transaction.max.timeout.ms"));
  settings.expiration_ms = config.integer("transactional.id.expiration.ms");
  settings.record_bytes_max = coordinator_record_bytes_max;
  return settings;
}

// Absent also when it is a mirror's copy of another cluster's: its states are not ours.
TopicPtr own_state_topic(const Snapshot& catalog) {
  const TopicPtr topic = catalog.find(transaction_state_topic);
  return topic && !is_mirrored(*topic) ? topic : nullptr;
}

// What keeps a group's offsets, or will once the topic is made.
transactions::Part offsets_part(const TopicPtr& offsets, const Config& config,
                                std::string_view group) {
  const std::int64_t count = offsets ? static_cast<std::int64_t>(offsets->partitions.size())
                                     : config.integer("offsets.topic.num.partitions");
  return {std::string(consumer_offsets_topic),
          partition_for_group(group, static_cast<std::int32_t>(count))};
}

transactions::ProducerAnswer refused_producer(ErrorCode error) {
  transactions::ProducerAnswer answer;
  answer.error = error;
  return answer;
}

}  // namespace

NewTopic transaction_topic(const Config& config) {
  NewTopic topic;
  topic.name = std::string(transaction_state_topic);
  topic.partitions =
      static_cast<std::int32_t>(config.integer("transaction.state.log.num.partitions"));
  topic.internal = true;
  topic.configs = {{"cleanup.policy", "compact"},
                   {"compression.type", "uncompressed"},
                   {"segment.bytes", config.text("transaction.state.log.segment.bytes")},
                   {"unclean.leader.election.enable", "false"}};
  return topic;
}

TransactionCoordinator::TransactionCoordinator(Broker& broker)
    : broker_(broker),
      settings_(transaction_settings_of(broker.config())),
      by_shard_(broker.shard_count()) {}

TransactionCoordinator::~TransactionCoordinator() = default;

void TransactionCoordinator::spawn(Shard& shard, asio::awaitable<void> loop) {
  ++running_;
  asio::co_spawn(shard.executor(), std::move(loop), [this](std::exception_ptr failure) {
    --running_;
    if (failure) base::logger("transactions").error("a loop of transactions ended by an exception");
  });
}

void TransactionCoordinator::start() {
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    spawn(shard, housekeeping(&shard));
  }
}

std::optional<base::TopicPartition> TransactionCoordinator::locate(
    std::string_view transactional_id) const {
  const Shard* here = Shard::current();
  CHECK(here != nullptr);
  const TopicPtr topic = own_state_topic(*here->catalog());
  if (!topic) return std::nullopt;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  return base::TopicPartition{topic->id, partition_for_group(transactional_id, count)};
}

std::shared_ptr<TransactionPartition> TransactionCoordinator::find_or_open(Shard& shard,
                                                                           const Place& id) {
  Partitions& mine = by_shard_[shard.index()];
  const auto at = mine.find(id.partition);
  if (at != mine.end()) {
    if (!at->second->ended()) return at->second;
    at->second->end(ErrorCode::not_coordinator);
    mine.erase(at);
  }
  if (shard.stopping()) return nullptr;
  auto partition = shard.find(id);
  if (!partition || partition->closed()) return nullptr;
  auto opened =
      std::make_shared<TransactionPartition>(*this, shard, std::move(partition), settings_);
  mine.emplace(id.partition, opened);
  spawn(shard, opened->run());
  return opened;
}

std::vector<std::shared_ptr<TransactionPartition>> TransactionCoordinator::open_all(Shard& shard) {
  std::vector<std::shared_ptr<TransactionPartition>> all;
  const TopicPtr topic = own_state_topic(*shard.catalog());
  if (!topic) return all;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const base::TopicPartition id = {topic->id, i};
    if (&broker_.shard_of(id) != &shard) continue;
    if (auto one = find_or_open(shard, id)) all.push_back(std::move(one));
  }
  return all;
}

asio::awaitable<void> TransactionCoordinator::housekeeping(Shard* shard) {
  open_all(*shard);
  const std::chrono::milliseconds interval(
      broker_.config().integer("transaction.remove.expired.transaction.cleanup.interval.ms"));
  for (;;) {
    co_await shard->stop_signal().wait(base::Clock::now() + interval);
    if (shard->stopping()) break;
    for (const auto& one : open_all(*shard)) co_await one->clean();
  }
  for (const auto& [index, one] : by_shard_[shard->index()])
    one->end(ErrorCode::coordinator_not_available);
}

asio::awaitable<base::Result<void>> TransactionCoordinator::ensure_topic() {
  if (const TopicPtr topic = Shard::current()->catalog()->find(transaction_state_topic)) {
    if (is_mirrored(*topic)) co_return BrokerErrc::mirror_not_stopped;
    co_return base::Result<void>();
  }
  const auto made = co_await broker_.catalog().create_topic(transaction_topic(broker_.config()));
  if (made.has_error() && made.error() != BrokerErrc::topic_exists) co_return made.error();
  co_return base::Result<void>();
}

template <class F>
auto TransactionCoordinator::at_home(std::string_view transactional_id, F f)
    -> std::invoke_result_t<F, TransactionPartition&> {
  using Outcome = typename std::invoke_result_t<F, TransactionPartition&>::value_type;
  Outcome none;
  none.error = ErrorCode::not_coordinator;
  const auto place = locate(transactional_id);
  if (!place) co_return none;
  Shard& target = broker_.shard_of(*place);
  auto job = [this, &target, &none, id = *place,
              run = std::move(f)]() -> std::invoke_result_t<F, TransactionPartition&> {
    const auto partition = find_or_open(target, id);
    if (!partition) co_return none;
    co_return co_await run(*partition);
  };
  co_return co_await on(target, std::move(job));
}

asio::awaitable<transactions::ProducerAnswer> TransactionCoordinator::init_producer_id(
    transactions::InitProducerId asked) {
  for (;;) {
    auto ask = [&asked](TransactionPartition& partition) {
      auto decide = [&asked](transactions::TransactionShard& state, transactions::Now now) {
        return state.init_producer_id(asked, now);
      };
      return partition.decide(decide);
    };
    const auto outcome = co_await at_home(asked.transactional_id, std::move(ask));
    if (outcome.error != ErrorCode::none) co_return refused_producer(outcome.error);
    if (!outcome.value.wants_fresh_id || asked.fresh_id) co_return outcome.value;
    const auto fresh = co_await broker_.producer_ids().next();
    if (fresh.has_error()) co_return refused_producer(kafka_error(fresh.error()));
    asked.fresh_id = *fresh;
  }
}

asio::awaitable<ErrorCode> TransactionCoordinator::add_partitions(
    transactions::AddPartitions asked) {
  auto ask = [&asked](TransactionPartition& partition) {
    auto decide = [&asked](transactions::TransactionShard& state, transactions::Now now) {
      return state.add_partitions(asked, now);
    };
    return partition.decide(decide);
  };
  const auto outcome = co_await at_home(asked.transactional_id, std::move(ask));
  co_return outcome.error != ErrorCode::none ? outcome.error : outcome.value;
}

asio::awaitable<std::vector<ErrorCode>> TransactionCoordinator::verify(
    transactions::AddPartitions asked) {
  using Outcome = CoordinatorOutcome<std::vector<ErrorCode>>;
  auto ask = [&asked](TransactionPartition& partition) -> asio::awaitable<Outcome> {
    auto look = [&asked](const transactions::TransactionShard& state, transactions::Now) {
      return state.verify(asked);
    };
    co_return partition.look(look);
  };
  Outcome outcome = co_await at_home(asked.transactional_id, std::move(ask));
  if (outcome.error != ErrorCode::none)
    outcome.value.assign(asked.partitions.size(), outcome.error);
  co_return std::move(outcome.value);
}

asio::awaitable<ErrorCode> TransactionCoordinator::add_offsets(std::string transactional_id,
                                                               transactions::Producer producer,
                                                               std::string group) {
  const TopicPtr topic = Shard::current()->catalog()->find(consumer_offsets_topic);
  transactions::AddPartitions asked;
  asked.transactional_id = std::move(transactional_id);
  asked.producer = producer;
  asked.partitions.push_back(offsets_part(topic, broker_.config(), group));
  co_return co_await add_partitions(std::move(asked));
}

asio::awaitable<TransactionCoordinator::OffsetsAdmission> TransactionCoordinator::admit_offsets(
    std::string transactional_id, transactions::Producer producer, std::string group, bool add) {
  OffsetsAdmission admission;
  const TopicPtr topic = Shard::current()->catalog()->find(consumer_offsets_topic);
  if (!topic) co_return admission;  // the group's coordinator will say so
  const transactions::Part part = offsets_part(topic, broker_.config(), group);
  admission.place = {topic->id, part.partition};
  Shard& target = broker_.shard_of(admission.place);
  auto look = [&target, &admission, producer]() -> asio::awaitable<bool> {
    const auto partition = target.find(admission.place);
    if (partition) admission.ticket = partition->take_ticket(producer.id, producer.epoch);
    co_return true;
  };
  co_await on(target, std::move(look));
  const bool asks = add || broker_.config().flag("transaction.partition.verification.enable");
  if (!admission.ticket || !asks) co_return admission;
  transactions::AddPartitions asked;
  asked.transactional_id = std::move(transactional_id);
  asked.producer = producer;
  asked.partitions.push_back(part);
  asked.client_version = transactions::epoch_bump_version;
  if (add) {
    admission.error = co_await add_partitions(std::move(asked));
  } else {
    const std::vector<ErrorCode> errors = co_await verify(std::move(asked));
    admission.error = errors.at(0);
  }
  co_return admission;
}

asio::awaitable<transactions::ProducerAnswer> TransactionCoordinator::end(
    transactions::EndTransaction asked) {
  using Outcome = CoordinatorOutcome<transactions::ProducerAnswer>;
  for (;;) {
    auto ask = [&asked](TransactionPartition& partition) -> asio::awaitable<Outcome> {
      auto decide = [&asked](transactions::TransactionShard& state, transactions::Now now) {
        return state.end(asked, now);
      };
      const Outcome decided = co_await partition.decide(decide);
      if (decided.error == ErrorCode::none && decided.value.error == ErrorCode::none)
        co_await partition.settled(asked.transactional_id, base::Clock::now() + markers_wait_max);
      co_return decided;
    };
    const Outcome outcome = co_await at_home(asked.transactional_id, std::move(ask));
    if (outcome.error != ErrorCode::none) co_return refused_producer(outcome.error);
    if (!outcome.value.wants_fresh_id || asked.fresh_id) co_return outcome.value;
    const auto fresh = co_await broker_.producer_ids().next();
    if (fresh.has_error()) co_return refused_producer(kafka_error(fresh.error()));
    asked.fresh_id = *fresh;
  }
}

asio::awaitable<transactions::Description> TransactionCoordinator::describe(
    std::string transactional_id) {
  using Outcome = CoordinatorOutcome<transactions::Description>;
  auto ask = [&transactional_id](TransactionPartition& partition) -> asio::awaitable<Outcome> {
    auto look = [&transactional_id](const transactions::TransactionShard& state,
                                    transactions::Now) { return state.describe(transactional_id); };
    co_return partition.look(look);
  };
  Outcome outcome = co_await at_home(transactional_id, std::move(ask));
  if (outcome.error != ErrorCode::none) outcome.value.error = outcome.error;
  co_return std::move(outcome.value);
}

asio::awaitable<CoordinatorOutcome<std::vector<transactions::Listed>>> TransactionCoordinator::list(
    transactions::Filter filter) {
  using Outcome = CoordinatorOutcome<std::vector<transactions::Listed>>;
  std::vector<Job<Outcome>> jobs;
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    auto job = [this, &shard, &filter]() -> asio::awaitable<Outcome> {
      Outcome all;
      auto look = [&filter](const transactions::TransactionShard& state, transactions::Now now) {
        return state.list(filter, now);
      };
      for (const auto& one : open_all(shard)) {
        Outcome some = one->look(look);
        if (some.error == ErrorCode::coordinator_load_in_progress) co_return some;
        std::ranges::move(some.value, std::back_inserter(all.value));
      }
      co_return all;
    };
    jobs.push_back({&shard, std::move(job)});
  }
  Outcome all;
  for (Outcome& some : co_await on_each(std::move(jobs))) {
    if (some.error != ErrorCode::none) all.error = some.error;
    std::ranges::move(some.value, std::back_inserter(all.value));
  }
  if (all.error != ErrorCode::none) all.value.clear();
  co_return all;
}

asio::awaitable<ErrorCode> TransactionCoordinator::write_marker(transactions::Part part,
                                                                TransactionMarker marker) {
  if (part.topic == consumer_offsets_topic)
    co_return co_await broker_.groups().end_transaction(part.partition, marker);
  const TopicPtr topic = Shard::current()->catalog()->find(part.topic);
  if (!topic || part.partition < 0 ||
      static_cast<std::size_t>(part.partition) >= topic->partitions.size())
    co_return ErrorCode::unknown_topic_or_partition;
  const base::TopicPartition id = {topic->id, part.partition};
  Shard& target = broker_.shard_of(id);
  auto job = [&target, id, marker]() -> asio::awaitable<ErrorCode> {
    const auto partition = target.find(id);
    if (!partition) co_return ErrorCode::kafka_storage_error;
    const auto written = partition->append_marker(marker, base::wall_clock_ms());
    if (written.has_error()) co_return kafka_error(written.error());
    const auto flushed = co_await partition->flush(written->last_offset + 1);
    co_return flushed.has_error() ? kafka_error(flushed.error()) : ErrorCode::none;
  };
  co_return co_await on(target, std::move(job));
}

asio::awaitable<bool> TransactionCoordinator::write_owed_marker(transactions::Part part,
                                                                TransactionMarker marker) {
  marker.owed = true;
  const ErrorCode error = co_await write_marker(part, marker);
  switch (error) {
    case ErrorCode::none:
    // The topic is not there any more, or a mirror keeps it now: its log is not ours.
    case ErrorCode::unknown_topic_or_partition:
    case ErrorCode::policy_violation:
      co_return true;
    // The partition has heard of a later producer: what this one wrote was ended by it.
    case ErrorCode::invalid_producer_epoch:
      base::logger("transactions")
          .warn("{}-{}: a later producer than {} of epoch {} has written; no marker is needed",
                part.topic, part.partition, marker.producer_id, marker.producer_epoch);
      co_return true;
    default:
      base::logger("transactions")
          .info("{}-{}: the marker of producer {} is to be written again: {}", part.topic,
                part.partition, marker.producer_id, protocol::error_name(error));
      co_return false;
  }
}

void TransactionCoordinator::topic_deleted(const std::string& name) {
  if (name != transaction_state_topic) return;
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    Shard& shard = broker_.shard(i);
    asio::post(shard.executor(), [this, mine = &shard] {
      for (const auto& [index, one] : by_shard_[mine->index()])
        one->end(ErrorCode::not_coordinator);
      by_shard_[mine->index()].clear();
    });
  }
}

}  // namespace broker
