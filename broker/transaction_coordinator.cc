#include "broker/transaction_coordinator.h"

#include <utility>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/error_map.h"
#include "broker/group_coordinator.h"
#include "broker/producer_ids.h"
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
      partitions_(broker, transactions_kind,
                  [this](Shard& shard, std::shared_ptr<Partition> partition) {
                    return std::make_shared<TransactionPartition>(*this, shard,
                                                                  std::move(partition), settings_);
                  }) {}

asio::awaitable<base::Result<void>> TransactionCoordinator::ensure_topic() {
  return partitions_.ensure_topic(transaction_topic(broker_.config()));
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
    const auto outcome = co_await partitions_.at_home(asked.transactional_id, std::move(ask));
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
  const auto outcome = co_await partitions_.at_home(asked.transactional_id, std::move(ask));
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
  Outcome outcome = co_await partitions_.at_home(asked.transactional_id, std::move(ask));
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
    const Outcome outcome = co_await partitions_.at_home(asked.transactional_id, std::move(ask));
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
  Outcome outcome = co_await partitions_.at_home(transactional_id, std::move(ask));
  if (outcome.error != ErrorCode::none) outcome.value.error = outcome.error;
  co_return std::move(outcome.value);
}

asio::awaitable<CoordinatorOutcome<std::vector<transactions::Listed>>> TransactionCoordinator::list(
    transactions::Filter filter) {
  using Outcome = CoordinatorOutcome<std::vector<transactions::Listed>>;
  auto ask = [filter =
                  std::move(filter)](TransactionPartition& partition) -> asio::awaitable<Outcome> {
    auto look = [&filter](const transactions::TransactionShard& state, transactions::Now now) {
      return state.list(filter, now);
    };
    co_return partition.look(look);
  };
  return partitions_.collect(std::move(ask));
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
  if (name == transaction_state_topic) partitions_.topic_deleted();
}

}  // namespace broker
