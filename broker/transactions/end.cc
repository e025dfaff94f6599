// How a transaction ends: PrepareCommit or PrepareAbort, markers, then CompleteCommit or
// CompleteAbort.
#include "broker/transactions/records.h"
#include "broker/transactions/transaction_shard.h"

namespace broker::transactions {

using protocol::ErrorCode;

namespace {

Decided<ProducerAnswer> refused(ErrorCode error) {
  Decided<ProducerAnswer> decided;
  decided.answer.error = error;
  return decided;
}

}  // namespace

Decided<ProducerAnswer> TransactionShard::end(const EndTransaction& asked, Now now) {
  if (asked.transactional_id.empty()) return refused(ErrorCode::invalid_request);
  const auto at = entries_.find(asked.transactional_id);
  if (at == entries_.end()) return refused(ErrorCode::invalid_producer_id_mapping);
  return asked.client_version >= epoch_bump_version ? end_with_bump(at->second, asked, now)
                                                    : end_classic(at->second, asked, now);
}

Decided<ProducerAnswer> TransactionShard::end_classic(Entry& entry, const EndTransaction& asked,
                                                      Now now) {
  const Transaction& transaction = entry.transaction;
  if (transaction.producer.id != asked.producer.id)
    return refused(ErrorCode::invalid_producer_id_mapping);
  if (transaction.producer.epoch != asked.producer.epoch || !may_be_told(asked.producer.epoch))
    return refused(ErrorCode::producer_fenced);
  switch (transaction.state) {
    case State::ongoing:
      return prepare(asked.transactional_id, entry, asked, false, now);
    case State::prepare_commit:
    case State::prepare_abort: {
      const bool same = asked.commit == (transaction.state == State::prepare_commit);
      return refused(same ? ErrorCode::concurrent_transactions : ErrorCode::invalid_txn_state);
    }
    case State::complete_commit:
    case State::complete_abort: {
      if (asked.commit != (transaction.state == State::complete_commit))
        return refused(ErrorCode::invalid_txn_state);
      Decided<ProducerAnswer> done;
      done.answer.producer = transaction.producer;
      return done;
    }
    default:
      return refused(ErrorCode::invalid_txn_state);
  }
}

// With an epoch for each transaction the state alone does not tell whether this is the end of the
// last one, asked for again, or that of the next, so the epoch has to.
Decided<ProducerAnswer> TransactionShard::end_with_bump(Entry& entry, const EndTransaction& asked,
                                                        Now now) {
  const Transaction& transaction = entry.transaction;
  const bool bumps = transaction.client_version >= epoch_bump_version;
  const bool again_bumped =
      bumps && transaction.producer.epoch == std::int32_t{asked.producer.epoch} + 1;
  const bool again_rotated = bumps && transaction.previous_id == asked.producer.id &&
                             asked.producer.epoch == epoch_exhausted &&
                             transaction.producer.epoch == 0;
  const bool again = again_bumped || again_rotated;
  const bool complete =
      transaction.state == State::complete_commit || transaction.state == State::complete_abort;
  if (transaction.producer.id != asked.producer.id && !again_rotated)
    return refused(ErrorCode::invalid_producer_id_mapping);
  const bool current = asked.producer.epoch == transaction.producer.epoch;
  const bool valid = transaction.preparing() ? again_bumped : current || (complete && again);
  if (!valid || !may_be_told(asked.producer.epoch)) return refused(ErrorCode::producer_fenced);
  if (transaction.state == State::ongoing)
    return prepare(asked.transactional_id, entry, asked, false, now);
  if (transaction.preparing()) {
    const bool same = asked.commit == (transaction.state == State::prepare_commit);
    return refused(same ? ErrorCode::concurrent_transactions : ErrorCode::invalid_txn_state);
  }
  if (complete && again) {
    if (asked.commit != (transaction.state == State::complete_commit))
      return refused(ErrorCode::invalid_txn_state);
    Decided<ProducerAnswer> done;
    done.answer.producer = transaction.producer;
    return done;
  }
  // A client that does not know whether a partition was added aborts, to have a new epoch.
  if (!asked.commit) return prepare(asked.transactional_id, entry, asked, true, now);
  return refused(ErrorCode::invalid_txn_state);
}

Decided<ProducerAnswer> TransactionShard::prepare(const std::string& id, Entry& entry,
                                                  const EndTransaction& asked,
                                                  bool without_partitions, Now now) {
  Decided<ProducerAnswer> decided;
  Transaction next = entry.transaction;
  const bool bumps = asked.client_version >= epoch_bump_version;
  if (bumps && next.exhausted()) {
    if (!asked.fresh_id) {
      decided.answer.wants_fresh_id = true;
      return decided;
    }
    next.next_id = *asked.fresh_id;
  }
  if (bumps) {
    entry.last_epoch = next.producer.epoch;
    ++next.producer.epoch;
  }
  next.previous_id = next.producer.id;
  next.state = asked.commit ? State::prepare_commit : State::prepare_abort;
  next.client_version = asked.client_version;
  next.last_update_ms = now.wall_ms;
  if (without_partitions) next.start_ms = now.wall_ms;
  decided.answer.producer = next.next_id >= 0 ? Producer{next.next_id, 0} : next.producer;
  decided.records.push_back(transaction_record(id, next));
  decided.endings.push_back(id);
  return decided;
}

// The epoch is raised, so that the producer cannot write on. Nobody is told the new one: whoever
// comes is given the next, or another id.
Decision TransactionShard::abort_by_server(const std::string& id, Entry& entry, Now now) {
  Decision decision;
  Transaction next = entry.transaction;
  entry.last_epoch = next.producer.epoch;
  if (may_be_told(next.producer.epoch)) ++next.producer.epoch;
  next.previous_id = next.producer.id;
  next.state = State::prepare_abort;
  next.client_version = epoch_bump_version;
  next.last_update_ms = now.wall_ms;
  decision.records.push_back(transaction_record(id, next));
  decision.endings.push_back(id);
  return decision;
}

std::optional<Ending> TransactionShard::ending(std::string_view transactional_id) const {
  const auto at = entries_.find(transactional_id);
  if (at == entries_.end() || !at->second.transaction.preparing()) return std::nullopt;
  const Transaction& transaction = at->second.transaction;
  Ending ending;
  ending.producer = transaction.producer;
  ending.commit = transaction.state == State::prepare_commit;
  ending.version = transaction.client_version;
  ending.partitions = transaction.partitions;
  for (const Part& part : at->second.marked) ending.partitions.erase(part);
  return ending;
}

void TransactionShard::marked(std::string_view transactional_id, Producer producer,
                              const Part& part) {
  const auto at = entries_.find(transactional_id);
  if (at == entries_.end() || !at->second.transaction.preparing() ||
      at->second.transaction.producer != producer)
    return;
  at->second.marked.insert(part);
}

Decision TransactionShard::complete(std::string_view transactional_id, Producer producer, Now now) {
  Decision decision;
  const auto at = entries_.find(transactional_id);
  if (at == entries_.end() || !at->second.transaction.preparing() ||
      at->second.transaction.producer != producer)
    return decision;
  Transaction next = at->second.transaction;
  next.state = next.state == State::prepare_commit ? State::complete_commit : State::complete_abort;
  next.previous_id = next.producer.id;
  if (next.next_id >= 0) next.producer = {next.next_id, 0};
  next.next_id = -1;
  next.partitions.clear();
  next.last_update_ms = now.wall_ms;
  decision.records.push_back(transaction_record(at->first, next));
  return decision;
}

}  // namespace broker::transactions
