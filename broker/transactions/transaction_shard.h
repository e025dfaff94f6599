// The transactional ids that one partition of __transaction_state keeps (KIP-98, KIP-360, KIP-664,
// KIP-890). Pure: events in, records and answers out. Errors are the coordinator's; those that a
// version of a request knows under another name are the handlers' matter.
//
// Nothing may come between a decision and apply() of its records.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/transactions/types.h"
#include "protocol/base/bytes.h"

namespace broker::transactions {

// A transaction that is to end: who is told, and what.
struct Ending {
  Producer producer;  // of the markers
  bool commit = false;
  std::int16_t version = classic_version;
  Parts partitions;  // those without a marker yet
};

class TransactionShard {
 public:
  explicit TransactionShard(Settings settings) : settings_(settings) {}

  // False: the record is not understood, and was passed over.
  bool apply(base::Bytes key, std::optional<base::Bytes> value);
  // After the last record of the log: what was under way goes on.
  Decision loaded(Now now);

  Decided<ProducerAnswer> init_producer_id(const InitProducerId& asked, Now now);
  Decided<protocol::ErrorCode> add_partitions(const AddPartitions& asked, Now now);
  // Whether each partition is in the transaction, in the order asked.
  std::vector<protocol::ErrorCode> verify(const AddPartitions& asked) const;
  Decided<ProducerAnswer> end(const EndTransaction& asked, Now now);

  // Nothing: the transaction needs no markers (any more).
  std::optional<Ending> ending(std::string_view transactional_id) const;
  // The partition has its marker on disk, or needs none.
  void marked(std::string_view transactional_id, Producer producer, const Part& part);
  // All partitions are marked.
  Decision complete(std::string_view transactional_id, Producer producer, Now now);

  // One transaction that has run too long, to be aborted; nothing if there is none.
  std::optional<Decision> expire(Now now);
  std::optional<std::int64_t> next_deadline_ms() const;
  // Drops ids that were not used for so long.
  Decision clean(Now now);

  Description describe(std::string_view transactional_id) const;
  std::vector<Listed> list(const Filter& filter, Now now) const;

  std::size_t size() const { return entries_.size(); }
  // What the records say, for tests: equal live and after a replay.
  std::map<std::string, Transaction> written() const;

 private:
  struct Entry {
    Transaction transaction;
    // Not written down: the epoch that the producer had before the last one it was given, for
    // retries; partitions that have their marker; when a transaction has run too long.
    base::ProducerEpoch last_epoch = -1;
    Parts marked;
    std::optional<std::int64_t> deadline_ms;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void set_deadline(const std::string& id, Entry& entry, std::optional<std::int64_t> deadline_ms);
  Decided<ProducerAnswer> bump_epoch(const InitProducerId& asked, Entry& entry, Now now);
  Decided<ProducerAnswer> prepare(const std::string& id, Entry& entry, const EndTransaction& asked,
                                  bool without_partitions, Now now);
  Decided<ProducerAnswer> end_classic(Entry& entry, const EndTransaction& asked, Now now);
  Decided<ProducerAnswer> end_with_bump(Entry& entry, const EndTransaction& asked, Now now);
  Decision abort_by_server(const std::string& id, Entry& entry, Now now);
  // none, or why the producer may not do it.
  static protocol::ErrorCode check(const Entry& entry, Producer producer);

  Settings settings_;
  Entries entries_;
  std::set<std::pair<std::int64_t, std::string>> deadlines_;
};

}  // namespace broker::transactions
