// A coordinator of transactions for tests: the pure core, a log of what it wrote, a clock, and
// logs of partitions that take markers. After each step what a replay of the log gives is compared
// with what is there.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/transactions/transaction_shard.h"
#include "tests/unit/model_core.h"

namespace broker::transactions::test {

using protocol::ErrorCode;

class Coordinator : public broker::test::ModelCore<TransactionShard> {
 public:
  explicit Coordinator(Settings settings = {}) : settings_(settings) {
    state_ = fresh();
    replica_ = fresh();
  }

  std::vector<Record>& log() { return log_; }
  Transaction get(const std::string& id) {
    const Description found = state_->describe(id);
    REQUIRE(found.error == ErrorCode::none);
    return found.transaction;
  }
  // Ids whose markers are to be written.
  std::vector<std::string>& owed() { return owed_; }

  ProducerAnswer init(const std::string& id, std::optional<Producer> expected = {},
                      std::int32_t timeout_ms = 10'000) {
    InitProducerId asked{id, timeout_ms, expected, std::nullopt};
    ProducerAnswer answer = run(state_->init_producer_id(asked, now_));
    if (!answer.wants_fresh_id) return answer;
    asked.fresh_id = next_id_++;
    answer = run(state_->init_producer_id(asked, now_));
    CHECK(!answer.wants_fresh_id);
    return answer;
  }
  Producer made(const std::string& id) {
    const ProducerAnswer answer = init(id);
    REQUIRE(answer.error == ErrorCode::none);
    return answer.producer;
  }
  ErrorCode add(const std::string& id, Producer producer, std::vector<Part> parts,
                std::int16_t version = classic_version) {
    const AddPartitions asked{id, producer, std::move(parts), version};
    return run(state_->add_partitions(asked, now_));
  }
  ProducerAnswer end(const std::string& id, Producer producer, bool commit,
                     std::int16_t version = classic_version) {
    EndTransaction asked{id, producer, commit, version, std::nullopt};
    ProducerAnswer answer = run(state_->end(asked, now_));
    if (!answer.wants_fresh_id) return answer;
    asked.fresh_id = next_id_++;
    answer = run(state_->end(asked, now_));
    CHECK(!answer.wants_fresh_id);
    return answer;
  }
  // Every marker that is owed is written, and the transactions are complete.
  void finish() {
    while (!owed_.empty()) {
      const std::string id = owed_.back();
      owed_.pop_back();
      const auto ending = state_->ending(id);
      if (!ending) continue;
      for (const Part& part : ending->partitions) state_->marked(id, ending->producer, part);
      const auto left = state_->ending(id);
      REQUIRE(left);
      CHECK(left->partitions.empty());
      carry_out(state_->complete(id, ending->producer, now_));
    }
  }
  // All that is left is the log, or its beginning.
  void restart(std::optional<std::size_t> records_left = std::nullopt) {
    if (records_left) log_.resize(std::min(*records_left, log_.size()));
    owed_.clear();
    // The monotonic clock begins somewhere else.
    now_.monotonic_ms = 5'000;
    load();
  }
  void carry_out(Decision decision) override {
    for (Record& one : decision.records) {
      std::optional<base::Bytes> value;
      if (one.value) value = base::Bytes(*one.value);
      REQUIRE(state_->apply(one.key, value));
      REQUIRE(replica_->apply(one.key, value));
      log_.push_back(std::move(one));
    }
    std::ranges::move(decision.endings, std::back_inserter(owed_));
    CHECK(replica_->written() == state_->written());
  }

 private:
  std::unique_ptr<TransactionShard> fresh() {
    return std::make_unique<TransactionShard>(settings_);
  }
  std::unique_ptr<TransactionShard> replayed() override {
    auto state = fresh();
    for (const Record& one : log_) {
      std::optional<base::Bytes> value;
      if (one.value) value = base::Bytes(*one.value);
      REQUIRE(state->apply(one.key, value));
    }
    return state;
  }

  Settings settings_;
  std::vector<Record> log_;
  std::vector<std::string> owed_;
  base::ProducerId next_id_ = 1000;
};

}  // namespace broker::transactions::test
