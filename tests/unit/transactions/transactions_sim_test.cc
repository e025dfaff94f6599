// Random producers, of both versions, against the coordinator and partitions' logs: they write,
// commit, abort, fall silent, fence one another and ask again for answers that were lost; the
// coordinator dies at any of its writes, before or after they are on disk, and between two markers.
// No transaction is ever committed in one partition and aborted in another, none that was
// acknowledged ends otherwise, and in the end every transaction has ended everywhere.
// SEEDS=n runs so many worlds, SEED=n only that one.
#include <set>

#include "broker/transactions/records.h"
#include "protocol/base/random.h"
#include "tests/lib/seeds.h"
#include "tests/unit/transactions/model_transactions.h"

using namespace broker::transactions;
using namespace broker::transactions::test;

namespace {

using Txn = int;  // numbers the transactions of all producers

// A partition's log, with the checks of the real one.
class SimPartition {
 public:
  struct Ticket {
    std::uint64_t markers = 0;
  };
  bool in_transaction(Producer producer) const {
    const auto at = producers_.find(producer.id);
    return at != producers_.end() && at->second.epoch == producer.epoch && !at->second.open.empty();
  }
  Ticket ticket(Producer producer) { return {producers_[producer.id].markers}; }
  bool write(Producer producer, Txn txn, const std::optional<Ticket>& ticket) {
    State& state = producers_[producer.id];
    if (producer.epoch < state.epoch) return false;
    if (!in_transaction(producer) && (!ticket || ticket->markers != state.markers)) return false;
    state.epoch = producer.epoch;
    state.open.insert(txn);
    return true;
  }
  void mark(Producer producer, bool commit, std::map<Txn, std::set<bool>>& outcomes) {
    State& state = producers_[producer.id];
    if (producer.epoch < state.epoch) return;
    state.epoch = producer.epoch;
    ++state.markers;
    for (const Txn txn : state.open) outcomes[txn].insert(commit);
    state.open.clear();
  }
  bool all_decided() const {
    return std::ranges::all_of(producers_, [](const auto& one) { return one.second.open.empty(); });
  }

 private:
  struct State {
    base::ProducerEpoch epoch = -1;
    std::uint64_t markers = 0;
    std::set<Txn> open;
  };
  std::map<base::ProducerId, State> producers_;
};

struct SimClient {
  std::string id;
  std::int16_t version = classic_version;
  std::optional<Producer> producer;
  std::optional<Txn> txn;
  std::set<std::int32_t> added;  // by the first version
  std::optional<bool> ending;    // asked for, and not answered yet
  // A write that was admitted and is not in the log yet.
  struct Pending {
    std::int32_t partition = 0;
    std::optional<SimPartition::Ticket> ticket;
  };
  std::optional<Pending> pending;
};

// A write whose client gave up on the answer and aborted: it may come to the log long after.
struct Stray {
  Producer producer;
  Txn txn = 0;
  SimClient::Pending pending;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    partitions_.resize(1 + random_.below(3));
    clients_.resize(2 + random_.below(4));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].id = random_.chance(60) ? "x" : "y";
      clients_[i].version = random_.chance(50) ? classic_version : epoch_bump_version;
    }
    // Some ids begin with few epochs left.
    if (random_.chance(20)) use_up("x");
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      for (const auto& [txn, results] : outcomes_) CHECK(results.size() == 1);
    }
    settle();
  }

 private:
  void use_up(const std::string& id) {
    const Producer producer = c_.made(id);
    Transaction old = c_.get(id);
    old.producer = {producer.id,
                    static_cast<base::ProducerEpoch>(epoch_exhausted - random_.below(4))};
    Decision decision;
    decision.records.push_back(transaction_record(id, old));
    c_.carry_out(std::move(decision));
  }

  // The coordinator dies at the write of this decision: nobody hears the answer.
  template <class Answer>
  std::optional<Answer> survive(Decided<Answer> decided) {
    if (decided.records.empty() || !random_.chance(4)) return c_.run(std::move(decided));
    const std::size_t before = c_.log().size();
    const bool on_disk = random_.chance(50);
    c_.run(std::move(decided));
    c_.restart(on_disk ? std::nullopt : std::optional(before));
    return std::nullopt;
  }

  void step() {
    SimClient& one = clients_[random_.below(clients_.size())];
    switch (random_.below(12)) {
      case 0:
        if (random_.chance(25)) init(one);
        break;
      case 1:
      case 2:
      case 3:
        admit(one);
        break;
      case 4:
      case 5:
        write(one);
        break;
      case 6:
        end(one);
        break;
      case 7:
      case 8:
      case 9:
        mark();
        break;
      case 10:
        c_.pass(static_cast<std::int64_t>(random_.below(3000)));
        break;
      case 11:
        if (random_.chance(15)) c_.restart();
        if (random_.chance(30)) arrive();
        break;
    }
    if (!one.producer) init(one);
  }

  void begin_anew(SimClient& one, std::optional<Producer> producer) {
    one.producer = producer;
    one.txn.reset();
    one.added.clear();
    one.ending.reset();
  }

  void init(SimClient& one) {
    std::optional<Producer> expected;
    if (one.producer && random_.chance(50)) expected = one.producer;
    InitProducerId asked{one.id, 1'000 + static_cast<std::int32_t>(random_.below(9'000)), expected,
                         fresh_id_++};
    const auto answer = survive(c_.state().init_producer_id(asked, c_.now()));
    if (!answer) return;
    if (answer->error == ErrorCode::none)
      begin_anew(one, answer->producer);
    else if (answer->error == ErrorCode::producer_fenced)
      begin_anew(one, std::nullopt);
  }

  // The coordinator is asked for a write, which is done some time later.
  void admit(SimClient& one) {
    if (!one.producer || one.ending || one.pending) return;
    const auto index = static_cast<std::int32_t>(random_.below(partitions_.size()));
    if (!one.txn) one.txn = ++last_txn_;
    const Part part{"t", index};
    SimPartition& partition = partitions_[static_cast<std::size_t>(index)];
    AddPartitions asked{one.id, *one.producer, {part}, one.version};
    if (one.version == classic_version && !one.added.contains(index)) {
      const auto added = survive(c_.state().add_partitions(asked, c_.now()));
      if (!added || *added != ErrorCode::none) return lose(one, added);
      one.added.insert(index);
      return;  // writing comes with another request
    }
    if (partition.in_transaction(*one.producer)) {
      one.pending = SimClient::Pending{index, std::nullopt};
      return;
    }
    const SimPartition::Ticket ticket = partition.ticket(*one.producer);
    const auto error = one.version == classic_version
                           ? std::optional(c_.state().verify(asked).at(0))
                           : survive(c_.state().add_partitions(asked, c_.now()));
    if (!error || *error != ErrorCode::none) return lose(one, error);
    one.pending = SimClient::Pending{index, ticket};
  }
  void lose(SimClient& one, std::optional<ErrorCode> error) {
    if (error == ErrorCode::producer_fenced || error == ErrorCode::invalid_producer_id_mapping ||
        error == ErrorCode::transaction_abortable)
      begin_anew(one, random_.chance(50) ? one.producer : std::nullopt);
  }

  void write(SimClient& one) {
    if (!one.pending || !one.producer) return;
    const SimClient::Pending pending = *one.pending;
    one.pending.reset();
    if (!one.txn) return;
    SimPartition& partition = partitions_[static_cast<std::size_t>(pending.partition)];
    if (!partition.write(*one.producer, *one.txn, pending.ticket)) begin_anew(one, std::nullopt);
  }

  void end(SimClient& one) {
    if (!one.producer || !one.txn) return;
    if (one.pending) {
      if (one.ending || random_.chance(80)) return;
      strays_.push_back({*one.producer, *one.txn, *one.pending});
      one.pending.reset();
      one.ending = false;
    }
    if (!one.ending) one.ending = random_.chance(60);
    EndTransaction asked{one.id, *one.producer, *one.ending, one.version, fresh_id_++};
    const auto answer = survive(c_.state().end(asked, c_.now()));
    if (!answer) return;  // asks again
    if (answer->error == ErrorCode::concurrent_transactions) return;
    if (answer->error != ErrorCode::none) return begin_anew(one, std::nullopt);
    acknowledged_[*one.txn] = *one.ending;
    begin_anew(one, one.version == classic_version ? one.producer : answer->producer);
  }

  void arrive() {
    if (strays_.empty()) return;
    const Stray stray = strays_.back();
    strays_.pop_back();
    SimPartition& partition = partitions_[static_cast<std::size_t>(stray.pending.partition)];
    // In a later transaction the sequence numbers tell that it does not belong there.
    if (partition.in_transaction(stray.producer)) return;
    partition.write(stray.producer, stray.txn, stray.pending.ticket);
  }

  // One marker, or the completion of a transaction that has them all.
  void mark() {
    if (c_.owed().empty()) return;
    const std::size_t at = random_.below(c_.owed().size());
    const std::string id = c_.owed()[at];
    const auto ending = c_.state().ending(id);
    if (!ending) {
      c_.owed().erase(c_.owed().begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    if (!ending->partitions.empty()) {
      auto part = ending->partitions.begin();
      std::advance(part, random_.below(ending->partitions.size()));
      partitions_[static_cast<std::size_t>(part->partition)].mark(ending->producer, ending->commit,
                                                                  outcomes_);
      if (random_.chance(5)) return c_.restart();
      c_.state().marked(id, ending->producer, *part);
      return;
    }
    Decided<bool> completed;
    static_cast<Decision&>(completed) = c_.state().complete(id, ending->producer, c_.now());
    survive(std::move(completed));
  }

  void settle() {
    // Nobody does anything any more: what is open runs too long, what ends is ended.
    while (!strays_.empty()) arrive();
    for (int turn = 0; turn < 3; ++turn) {
      c_.pass(20'000);
      for (int i = 0; i < 2'000 && !c_.owed().empty(); ++i) mark();
    }
    CHECK(c_.owed().empty());
    for (const SimPartition& partition : partitions_) CHECK(partition.all_decided());
    for (const auto& [txn, results] : outcomes_) {
      CHECK(results.size() == 1);
      const auto told = acknowledged_.find(txn);
      if (told != acknowledged_.end()) CHECK(results == std::set<bool>{told->second});
    }
  }

  base::Random random_;
  Coordinator c_;
  std::vector<SimPartition> partitions_;
  std::vector<SimClient> clients_;
  std::vector<Stray> strays_;
  std::map<Txn, std::set<bool>> outcomes_;
  std::map<Txn, bool> acknowledged_;
  Txn last_txn_ = 0;
  base::ProducerId fresh_id_ = 1'000'000;
};

}  // namespace

TEST_CASE("no transaction is half committed, and all of them end") {
  const Seeds all = seeds(10'000);
  for (std::uint64_t seed = all.first; seed <= all.last; ++seed) {
    CAPTURE(seed);
    World world(seed);
    world.run(150);
  }
}
