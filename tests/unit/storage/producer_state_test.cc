// Idempotence and transactions: Kafka's rules for sequences and epochs.
#include "storage/producer_state.h"

#include <limits>

#include "storage/error.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using namespace storage;

namespace {

protocol::BatchInfo data(base::Offset base, std::int32_t sequence, int count = 1,
                         base::ProducerEpoch epoch = 0, bool transactional = false) {
  return *protocol::parse_batch(make_batch({.base = base,
                                            .count = count,
                                            .producer = 9,
                                            .producer_epoch = epoch,
                                            .sequence = sequence,
                                            .transactional = transactional}));
}

std::optional<CompletedTransaction> mark(ProducerState& state, base::Offset offset,
                                         protocol::TransactionResult result,
                                         base::ProducerEpoch epoch = 0) {
  const base::Buffer marker = make_marker(offset, 0, 9, epoch, result);
  return state.apply(*protocol::parse_batch(marker), *protocol::read_control(marker));
}

}  // namespace

TEST_CASE("sequences: in order, repeated, with a gap") {
  ProducerState state;
  CHECK(state.check(data(0, 42)).value() == std::nullopt);  // unknown producer: any sequence
  for (int i = 0; i < 7; ++i) {
    CHECK(state.check(data(i * 2, i * 2, 2)).value() == std::nullopt);
    state.apply(data(i * 2, i * 2, 2), std::nullopt);
  }
  for (int i = 2; i < 7; ++i) {  // the last five are known
    auto repeated = state.check(data(100, i * 2, 2));
    REQUIRE(repeated);
    REQUIRE(*repeated);
    CHECK((*repeated)->first_offset() == i * 2);
  }
  CHECK(state.check(data(100, 2, 2)).error() == StorageErrc::out_of_order_sequence);
  CHECK(state.check(data(100, 12, 1)).error() == StorageErrc::out_of_order_sequence);
  CHECK(state.check(data(100, 15)).error() == StorageErrc::out_of_order_sequence);
}

TEST_CASE("sequences wrap") {
  ProducerState state;
  constexpr std::int32_t top = std::numeric_limits<std::int32_t>::max();
  state.apply(data(0, top - 1, 2), std::nullopt);
  CHECK(state.check(data(2, 0)).value() == std::nullopt);
  ProducerState wrapped;
  wrapped.apply(data(0, top, 2), std::nullopt);  // top, 0
  CHECK(wrapped.check(data(2, 1)).value() == std::nullopt);
  auto loaded = ProducerState::decode_snapshot(wrapped.encode_snapshot());
  REQUIRE(loaded);
  CHECK(loaded->check(data(2, top, 2)).value().has_value());
}

TEST_CASE("producer epochs fence") {
  ProducerState state;
  state.apply(data(0, 0, 1, 3), std::nullopt);
  CHECK(state.check(data(1, 1, 1, 2)).error() == StorageErrc::invalid_producer_epoch);
  CHECK(state.check(data(1, 1, 1, 4)).error() == StorageErrc::out_of_order_sequence);
  CHECK(state.check(data(1, 0, 1, 4)).value() == std::nullopt);
  const base::Buffer old = make_marker(1, 0, 9, 2, protocol::TransactionResult::commit);
  CHECK(state.check_marker(*protocol::parse_batch(old), **protocol::read_control(old)).error() ==
        StorageErrc::invalid_producer_epoch);
}

TEST_CASE("transactions: open, decided, last stable offset") {
  ProducerState state;
  state.apply(data(10, 0, 2, 0, true), std::nullopt);
  state.apply(data(12, 2, 2, 0, true), std::nullopt);
  CHECK(state.check(data(14, 4, 1, 0, false)).error() == StorageErrc::invalid_producer_state);
  CHECK(state.last_stable_offset(14) == 10);
  auto done = mark(state, 14, protocol::TransactionResult::abort);
  REQUIRE(done);
  CHECK(done->aborted);
  CHECK(done->first_offset == 10);
  CHECK(done->marker_offset == 14);
  CHECK(done->last_stable_offset == 15);
  CHECK(state.last_stable_offset(14) == 10);  // the marker is not below the high watermark yet
  CHECK(state.last_stable_offset(15) == 15);
  CHECK_FALSE(mark(state, 15, protocol::TransactionResult::commit));  // nothing was open
  CHECK(state.open_transactions().empty());
}

TEST_CASE("a producer-id reset forgets entries and open transactions") {
  ProducerState state;
  state.apply(data(0, 0, 1, 0, true), std::nullopt);
  const base::Buffer reset = make_reset(1, 0);
  state.apply(*protocol::parse_batch(reset), *protocol::read_control(reset));
  CHECK(state.size() == 0);
  CHECK(state.open_transactions().empty());
  CHECK(state.last_stable_offset(2) == 2);
  CHECK(state.check(data(2, 500)).value() == std::nullopt);
}

TEST_CASE("old producers expire unless a transaction is open") {
  ProducerState state;
  state.apply(data(0, 0), std::nullopt);  // at 1000
  state.expire(2000, 1001);
  CHECK(state.size() == 1);
  state.expire(2000, 1000);
  CHECK(state.size() == 0);
  state.apply(data(1, 0, 1, 0, true), std::nullopt);
  state.expire(1'000'000, 1000);
  CHECK(state.size() == 1);
}
