#include "broker/transactions/transaction_shard.h"

#include <algorithm>

#include "broker/transactions/records.h"
#include "protocol/record_frame.h"

namespace broker::transactions {

using protocol::ErrorCode;

bool TransactionShard::apply(base::Bytes key, std::optional<base::Bytes> value) {
  protocol::TransactionLogKey name;
  if (!protocol::unframe_key(key, name)) return false;
  const std::string& id = name.transactional_id;
  if (!value) {
    const auto at = entries_.find(id);
    if (at == entries_.end()) return true;
    set_deadline(id, at->second, std::nullopt);
    entries_.erase(at);
    return true;
  }
  protocol::TransactionLogValue content;
  if (!protocol::unframe_value(*value, content)) return false;
  std::optional<Transaction> transaction = transaction_of(std::move(content));
  if (!transaction) return false;
  Entry& entry = entries_[id];
  entry.transaction = std::move(*transaction);
  if (!entry.transaction.preparing()) entry.marked.clear();
  if (entry.transaction.state != State::ongoing) set_deadline(id, entry, std::nullopt);
  return true;
}

void TransactionShard::set_deadline(const std::string& id, Entry& entry,
                                    std::optional<std::int64_t> deadline_ms) {
  if (entry.deadline_ms) deadlines_.erase({*entry.deadline_ms, id});
  entry.deadline_ms = deadline_ms;
  if (deadline_ms) deadlines_.emplace(*deadline_ms, id);
}

Decision TransactionShard::loaded(Now now) {
  Decision decision;
  for (auto& [id, entry] : entries_) {
    const Transaction& transaction = entry.transaction;
    if (transaction.preparing()) decision.endings.push_back(id);
    if (transaction.state != State::ongoing) continue;
    // What is left of the time by the wall clock, which may have been set meanwhile.
    const std::int64_t timeout = std::max(transaction.timeout_ms, 0);
    const std::int64_t run =
        std::clamp<std::int64_t>(now.wall_ms - transaction.start_ms, 0, timeout);
    set_deadline(id, entry, now.monotonic_ms + timeout - run);
  }
  return decision;
}

ErrorCode TransactionShard::check(const Entry& entry, Producer producer) {
  const Transaction& transaction = entry.transaction;
  if (transaction.producer.id != producer.id) return ErrorCode::invalid_producer_id_mapping;
  if (transaction.producer.epoch != producer.epoch || !may_be_told(producer.epoch))
    return ErrorCode::producer_fenced;
  return transaction.preparing() ? ErrorCode::concurrent_transactions : ErrorCode::none;
}

Decided<ProducerAnswer> TransactionShard::init_producer_id(const InitProducerId& asked, Now now) {
  Decided<ProducerAnswer> decided;
  if (asked.transactional_id.empty()) {
    decided.answer.error = ErrorCode::invalid_request;
    return decided;
  }
  if (asked.timeout_ms <= 0 || asked.timeout_ms > settings_.timeout_max_ms) {
    decided.answer.error = ErrorCode::invalid_transaction_timeout;
    return decided;
  }
  const auto at = entries_.find(asked.transactional_id);
  if (at == entries_.end()) {
    if (!asked.fresh_id) {
      decided.answer.wants_fresh_id = true;
      return decided;
    }
    Transaction made;
    made.producer = {*asked.fresh_id, 0};
    made.previous_id = *asked.fresh_id;
    made.timeout_ms = asked.timeout_ms;
    made.last_update_ms = now.wall_ms;
    decided.answer.producer = made.producer;
    decided.records.push_back(transaction_record(asked.transactional_id, made));
    return decided;
  }
  Entry& entry = at->second;
  const Transaction& transaction = entry.transaction;
  // A producer that was given another id in between is fenced, unless it did not hear of it: its
  // own was used up.
  if (asked.expected && asked.expected->id != transaction.producer.id &&
      (asked.expected->id != transaction.previous_id || asked.expected->epoch < epoch_exhausted)) {
    decided.answer.error = ErrorCode::producer_fenced;
    return decided;
  }
  if (transaction.preparing()) {
    decided.answer.error = ErrorCode::concurrent_transactions;
    return decided;
  }
  if (transaction.state != State::ongoing) return bump_epoch(asked, entry, now);
  // The transaction of whoever had the id before is aborted first; the client comes again.
  static_cast<Decision&>(decided) = abort_by_server(asked.transactional_id, entry, now);
  decided.answer.error = ErrorCode::concurrent_transactions;
  return decided;
}

Decided<ProducerAnswer> TransactionShard::bump_epoch(const InitProducerId& asked, Entry& entry,
                                                     Now now) {
  Decided<ProducerAnswer> decided;
  Transaction next = entry.transaction;
  const base::ProducerEpoch current = next.producer.epoch;
  base::ProducerEpoch last = -1;
  if (asked.expected && asked.expected->epoch == entry.last_epoch &&
      asked.expected->epoch != current) {
    last = entry.last_epoch;  // asks a second time: the answer to the first was lost
  } else if (asked.expected && asked.expected->epoch != current) {
    decided.answer.error = ErrorCode::producer_fenced;
    return decided;
  } else if (next.exhausted()) {
    if (!asked.fresh_id) {
      decided.answer.wants_fresh_id = true;
      return decided;
    }
    if (asked.expected) last = current;
    next.producer = {*asked.fresh_id, 0};
  } else {
    if (asked.expected) last = current;
    next.producer.epoch = static_cast<base::ProducerEpoch>(current + 1);
  }
  entry.last_epoch = last;
  next.previous_id = entry.transaction.producer.id;
  next.next_id = -1;
  next.timeout_ms = asked.timeout_ms;
  next.state = State::empty;
  next.partitions.clear();
  next.start_ms = -1;
  next.last_update_ms = now.wall_ms;
  decided.answer.producer = next.producer;
  decided.records.push_back(transaction_record(asked.transactional_id, next));
  return decided;
}

Decided<ErrorCode> TransactionShard::add_partitions(const AddPartitions& asked, Now now) {
  Decided<ErrorCode> decided;
  if (asked.transactional_id.empty()) {
    decided.answer = ErrorCode::invalid_request;
    return decided;
  }
  const auto at = entries_.find(asked.transactional_id);
  if (at == entries_.end()) {
    decided.answer = ErrorCode::invalid_producer_id_mapping;
    return decided;
  }
  Entry& entry = at->second;
  decided.answer = check(entry, asked.producer);
  if (decided.answer != ErrorCode::none) return decided;
  Transaction next = entry.transaction;
  const bool begun = next.state == State::ongoing;
  next.partitions.insert(asked.partitions.begin(), asked.partitions.end());
  if (begun && next.partitions.size() == entry.transaction.partitions.size()) return decided;
  next.previous_id = next.producer.id;
  next.state = State::ongoing;
  next.client_version = asked.client_version;
  next.last_update_ms = now.wall_ms;
  if (!begun) next.start_ms = now.wall_ms;
  Record record = transaction_record(asked.transactional_id, next);
  if (record.value->size() > settings_.record_bytes_max) {
    decided.answer = ErrorCode::unknown_server_error;  // as when Kafka's log refuses the record
    return decided;
  }
  if (!begun) set_deadline(at->first, entry, now.monotonic_ms + next.timeout_ms);
  decided.records.push_back(std::move(record));
  return decided;
}

std::vector<ErrorCode> TransactionShard::verify(const AddPartitions& asked) const {
  const auto at = entries_.find(asked.transactional_id);
  ErrorCode error = ErrorCode::none;
  if (asked.transactional_id.empty())
    error = ErrorCode::invalid_request;
  else if (at == entries_.end())
    error = ErrorCode::invalid_producer_id_mapping;
  else
    error = check(at->second, asked.producer);
  std::vector<ErrorCode> answers(asked.partitions.size(), error);
  for (std::size_t i = 0; error == ErrorCode::none && i < answers.size(); ++i)
    if (!at->second.transaction.partitions.contains(asked.partitions[i]))
      answers[i] = ErrorCode::transaction_abortable;
  return answers;
}

std::optional<Decision> TransactionShard::expire(Now now) {
  if (deadlines_.empty() || deadlines_.begin()->first > now.monotonic_ms) return std::nullopt;
  const std::string id = deadlines_.begin()->second;
  return abort_by_server(id, entries_.find(id)->second, now);
}

std::optional<std::int64_t> TransactionShard::next_deadline_ms() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

Decision TransactionShard::clean(Now now) {
  Decision decision;
  for (const auto& [id, entry] : entries_) {
    const Transaction& transaction = entry.transaction;
    if (transaction.preparing() || transaction.state == State::ongoing) continue;
    if (transaction.last_update_ms <= now.wall_ms - settings_.expiration_ms)
      decision.records.push_back(transaction_tombstone(id));
  }
  return decision;
}

Description TransactionShard::describe(std::string_view transactional_id) const {
  Description description;
  if (transactional_id.empty()) {
    description.error = ErrorCode::invalid_request;
    return description;
  }
  const auto at = entries_.find(transactional_id);
  if (at == entries_.end()) {
    description.error = ErrorCode::transactional_id_not_found;
    return description;
  }
  description.transaction = at->second.transaction;
  for (const Part& part : at->second.marked) description.transaction.partitions.erase(part);
  return description;
}

std::vector<Listed> TransactionShard::list(const Filter& filter, Now now) const {
  std::vector<Listed> all;
  if (filter.no_state) return all;
  for (const auto& [id, entry] : entries_) {
    const Transaction& transaction = entry.transaction;
    const bool state = filter.states.empty() || filter.states.contains(transaction.state);
    const bool producer =
        filter.producer_ids.empty() || filter.producer_ids.contains(transaction.producer.id);
    // As in Kafka what never began is as old as the clock.
    const bool old =
        filter.duration_ms < 0 || now.wall_ms - transaction.start_ms > filter.duration_ms;
    if (state && producer && old) all.push_back({id, transaction.producer.id, transaction.state});
  }
  return all;
}

std::map<std::string, Transaction> TransactionShard::written() const {
  std::map<std::string, Transaction> all;
  for (const auto& [id, entry] : entries_) all.emplace(id, entry.transaction);
  return all;
}

}  // namespace broker::transactions
