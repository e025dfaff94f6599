#include "broker/api/produce_transaction.h"

#include "broker/broker.h"
#include "broker/transaction_coordinator.h"
#include "protocol/batch.h"

namespace broker::api {

using protocol::ErrorCode;

namespace {

constexpr std::int16_t abortable_since = 11;  // TRANSACTION_ABORTABLE is known
constexpr std::int16_t adds_partitions_since = 12;

// Errors of the coordinator as a producer of this version knows them.
ErrorCode produce_error(ErrorCode error, std::int16_t version) {
  switch (error) {
    case ErrorCode::producer_fenced:
      return ErrorCode::invalid_producer_epoch;
    case ErrorCode::transaction_abortable:
      return version < abortable_since ? ErrorCode::invalid_txn_state : error;
    case ErrorCode::concurrent_transactions:
      return version < adds_partitions_since ? ErrorCode::not_enough_replicas : error;
    // Retriable, and no reason to ask for metadata.
    case ErrorCode::not_coordinator:
    case ErrorCode::coordinator_load_in_progress:
    case ErrorCode::coordinator_not_available:
      return ErrorCode::not_enough_replicas;
    default:
      return error;
  }
}

// A transactional batch, by its header.
struct Begun {
  ProduceItem* item;
  transactions::Producer producer;
  bool needs_coordinator = false;
};

std::vector<std::vector<Begun>> transactional_batches(
    std::vector<std::vector<ProduceItem>>& by_shard) {
  std::vector<std::vector<Begun>> all(by_shard.size());
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    for (ProduceItem& item : by_shard[i]) {
      const auto info = protocol::parse_batch(item.batch);
      // What is wrong with the others the partition finds out.
      if (info.has_error() || !info->transactional() || !info->producer_id) continue;
      all[i].push_back({&item, {*info->producer_id, info->producer_epoch.value_or(-1)}});
    }
  }
  return all;
}

Task<bool> take_tickets(Shard& shard, std::vector<Begun>& begun) {
  for (Begun& one : begun) {
    const auto partition = shard.find(one.item->id);
    // A partition that cannot be written to anyway has no part in the transaction.
    if (!partition || partition->check_writable().has_error()) continue;
    one.item->ticket = partition->take_ticket(one.producer.id, one.producer.epoch);
    one.needs_coordinator = one.item->ticket.has_value();
  }
  co_return true;
}

}  // namespace

Task<bool> admit_transaction(Broker& broker, std::string transactional_id, std::int16_t version,
                             std::vector<std::vector<ProduceItem>>& by_shard) {
  auto begun = transactional_batches(by_shard);
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    if (begun[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, mine = &begun[i]] { return take_tickets(*target, *mine); };
    jobs.push_back({target, std::move(run)});
  }
  if (jobs.empty()) co_return true;
  co_await on_each(std::move(jobs));

  transactions::AddPartitions asked;
  asked.transactional_id = std::move(transactional_id);
  asked.client_version = transactions::epoch_bump_version;
  std::vector<ProduceItem*> items;
  bool one_producer = true;
  for (const auto& of_shard : begun) {
    for (const Begun& one : of_shard) {
      if (!one.needs_coordinator) continue;
      if (items.empty()) asked.producer = one.producer;
      one_producer = one_producer && one.producer == asked.producer;
      items.push_back(one.item);
      asked.partitions.push_back({std::string(one.item->topic), one.item->id.partition});
    }
  }
  const bool adds = version >= adds_partitions_since;
  if (items.empty() ||
      (!adds && !broker.config().flag("transaction.partition.verification.enable")))
    co_return true;
  std::vector<ErrorCode> errors;
  if (!one_producer) {
    errors.assign(items.size(), ErrorCode::invalid_producer_id_mapping);
  } else if (adds) {
    const ErrorCode error = co_await broker.transactions().add_partitions(std::move(asked));
    errors.assign(items.size(), error);
  } else {
    errors = co_await broker.transactions().verify(std::move(asked));
  }
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i]->refused = produce_error(errors[i], version);
  co_return true;
}

}  // namespace broker::api
