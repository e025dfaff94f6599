// The words of the transaction coordinator: what a transactional id is, and what a decision
// consists of. Pure, like everything in this folder.
#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/types.h"
#include "protocol/base/ids.h"
#include "protocol/error_code.h"

namespace broker::transactions {

using groups::Now;
using groups::Record;

// Kafka's numbers, as they stand in the records. Dead and PrepareEpochFence are never written: an
// id that ends leaves a tombstone, and a fence is an abort at once.
enum class State : std::int8_t {
  empty = 0,
  ongoing = 1,
  prepare_commit = 2,
  prepare_abort = 3,
  complete_commit = 4,
  complete_abort = 5,
  dead = 6,
  prepare_epoch_fence = 7,
};

// Kafka's names, for instance CompleteCommit.
std::string_view state_name(State state);
std::optional<State> parse_state(std::string_view name);

// What a client can do: in version 2 each transaction has an epoch of its own, and partitions are
// added by writing to them (KIP-890).
constexpr std::int16_t classic_version = 0;
constexpr std::int16_t epoch_bump_version = 2;

struct Producer {
  base::ProducerId id = -1;
  base::ProducerEpoch epoch = -1;
  bool operator==(const Producer&) const = default;
};

// An epoch above which a producer id has none left: the last one is kept for fencing.
constexpr base::ProducerEpoch epoch_exhausted = std::numeric_limits<base::ProducerEpoch>::max() - 1;

// The very last epoch is the coordinator's own: nobody was told it.
constexpr bool may_be_told(base::ProducerEpoch epoch) {
  return epoch <= epoch_exhausted;
}

struct Part {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const Part&) const = default;
};
using Parts = std::set<Part>;

// A transactional id and the transaction it is in, or was in last.
struct Transaction {
  Producer producer;
  base::ProducerId previous_id = -1;
  // The id that the producer goes on with after this transaction: the old one's epochs are used up.
  base::ProducerId next_id = -1;
  std::int32_t timeout_ms = 0;
  State state = State::empty;
  Parts partitions;
  std::int64_t last_update_ms = -1;
  std::int64_t start_ms = -1;
  std::int16_t client_version = classic_version;
  bool operator==(const Transaction&) const = default;

  bool preparing() const { return state == State::prepare_commit || state == State::prepare_abort; }
  bool exhausted() const { return producer.epoch >= epoch_exhausted; }
};

// What follows from an event. The records are to be written and applied before the next event is
// looked at; once they are durable the transactions named in `endings` want their markers.
struct Decision {
  std::vector<Record> records;
  std::vector<std::string> endings;
};

template <class Answer>
struct Decided : Decision {
  Answer answer{};
};

struct Settings {
  std::int32_t timeout_max_ms = 900'000;                               // transaction.max.timeout.ms
  std::int64_t expiration_ms = std::int64_t{7} * 24 * 60 * 60 * 1000;  // transactional.id.…
  // A transaction whose partitions do not fit into one record cannot grow.
  std::size_t record_bytes_max = 700'000;
};

struct InitProducerId {
  std::string transactional_id;
  std::int32_t timeout_ms = 0;
  // What the producer has, if it goes on after an error (KIP-360).
  std::optional<Producer> expected;
  // An id that nobody has yet, for when one is wanted.
  std::optional<base::ProducerId> fresh_id;
};

struct EndTransaction {
  std::string transactional_id;
  Producer producer;
  bool commit = false;
  std::int16_t client_version = classic_version;
  std::optional<base::ProducerId> fresh_id;
};

struct ProducerAnswer {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  Producer producer;
  // Nothing was decided: ask again with a fresh id.
  bool wants_fresh_id = false;
};

struct AddPartitions {
  std::string transactional_id;
  Producer producer;
  std::vector<Part> partitions;
  std::int16_t client_version = classic_version;
};

struct Description {
  protocol::ErrorCode error = protocol::ErrorCode::none;
  Transaction transaction;
};

// Empty sets let everything through.
struct Filter {
  std::set<State> states = {};
  bool no_state = false;  // only states were asked for that there are not
  std::set<base::ProducerId> producer_ids = {};
  std::int64_t duration_ms = -1;
};

struct Listed {
  std::string transactional_id;
  base::ProducerId producer_id = -1;
  State state = State::empty;
};

}  // namespace broker::transactions
