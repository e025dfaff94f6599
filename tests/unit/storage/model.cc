#include "tests/unit/storage/model.h"

#include <algorithm>

#include "protocol/record.h"
#include "storage/error.h"

namespace storage_test {
namespace {

void for_each_record(const ModelBatch& batch, const auto& f) {
  auto reader = protocol::RecordReader::open(batch.bytes);
  REQUIRE(reader);
  protocol::Record record;
  while (reader->next(record)) f(record);
  REQUIRE_FALSE(reader->error());
}

}  // namespace

void LogModel::add(base::Bytes bytes) {
  protocol::BatchIterator it(bytes, protocol::CrcCheck::yes);
  while (it.next()) {
    if (begun && it.info().partition_leader_epoch >= begun->epoch) begun.reset();
    batches.push_back({it.info(), base::to_buffer(it.batch())});
    end = it.info().next_offset();
  }
  REQUIRE_FALSE(it.stopped());
}

void LogModel::truncate_to(base::Offset offset) {
  if (offset > end) return;
  begun.reset();
  if (offset == end) return;
  if (offset < start) return restart_at(offset);
  while (!batches.empty() && batches.back().info.last_offset >= offset) batches.pop_back();
  // An empty log keeps the base of its segment, which only the log knows: the first batch's.
  end = batches.empty() ? std::min(end, offset) : batches.back().info.next_offset();
  if (end < start) restart_at(start);
}

void LogModel::restart_at(base::Offset offset) {
  batches.clear();
  begun.reset();
  start = end = offset;
}

base::Buffer LogModel::bytes_from(base::Offset from) const {
  base::Buffer all;
  for (const ModelBatch& batch : batches)
    if (batch.info.last_offset >= from)
      all.insert(all.end(), batch.bytes.begin(), batch.bytes.end());
  return all;
}

std::vector<storage::EpochEnd> LogModel::epochs() const {
  std::vector<storage::EpochEnd> all;
  for (const ModelBatch& batch : batches)
    if (all.empty() || all.back().epoch < *batch.info.partition_leader_epoch)
      all.push_back({*batch.info.partition_leader_epoch, batch.info.base_offset});
  if (begun) all.push_back(*begun);
  // Epochs that ended below the log start are forgotten.
  while (all.size() > 1 && all[1].end_offset <= start) all.erase(all.begin());
  if (!all.empty()) all.front().end_offset = std::max(all.front().end_offset, start);
  return all;
}

std::optional<storage::EpochEnd> LogModel::end_offset_for(base::LeaderEpoch epoch) const {
  const auto all = epochs();
  if (all.empty() || epoch > all.back().epoch) return std::nullopt;
  if (epoch == all.back().epoch) return storage::EpochEnd{epoch, end};
  std::optional<base::LeaderEpoch> floor;
  for (const auto& one : all) {
    if (one.epoch > epoch) return storage::EpochEnd{floor.value_or(epoch), one.end_offset};
    floor = one.epoch;
  }
  return std::nullopt;
}

std::optional<storage::TimestampOffset> LogModel::offset_for_timestamp(
    std::int64_t timestamp_ms) const {
  std::optional<storage::TimestampOffset> found;
  for (const ModelBatch& batch : batches)
    for_each_record(batch, [&](const protocol::Record& record) {
      if (!found && record.offset >= start && record.timestamp >= timestamp_ms)
        found = {record.timestamp, record.offset, batch.info.partition_leader_epoch};
    });
  return found;
}

std::optional<storage::TimestampOffset> LogModel::max_timestamp() const {
  std::optional<storage::TimestampOffset> found;
  for (const ModelBatch& batch : batches)
    for_each_record(batch, [&](const protocol::Record& record) {
      if (!found || record.timestamp > found->timestamp_ms)
        found = {record.timestamp, record.offset, batch.info.partition_leader_epoch};
    });
  return found;
}

LogModel::Transactions LogModel::transactions() const {
  Transactions state;
  for (const ModelBatch& batch : batches) {
    if (!batch.info.control()) {
      if (batch.info.transactional())
        state.open.try_emplace(*batch.info.producer_id, batch.info.base_offset);
      continue;
    }
    auto control = protocol::read_control(batch.bytes);
    REQUIRE(control);
    if ((*control)->type == protocol::ControlType::producer_id_reset) {
      state.open.clear();
      continue;
    }
    auto it = state.open.find(*batch.info.producer_id);
    if (it == state.open.end()) continue;
    if ((*control)->type == protocol::ControlType::abort)
      state.aborted.push_back({it->first, it->second, batch.info.last_offset});
    state.open.erase(it);
  }
  return state;
}

base::Buffer BatchMaker::next(const LogModel& model, bool far_gaps) {
  if (random_.chance(5)) ++epoch;
  BatchSpec spec;
  spec.base = model.end;
  // An epoch begun here begins here even if its first batch comes behind a gap; a rebuild from the
  // batches would say otherwise. Leaders leave no gap.
  const bool gaps = !model.begun;
  if (gaps && random_.chance(15)) spec.base += static_cast<base::Offset>(random_.below(20));
  if (gaps && far_gaps && random_.chance(3)) spec.base += 3'000'000'000;
  spec.epoch = epoch;
  if (random_.chance(2)) return make_reset(spec.base, epoch);
  const auto producer = static_cast<base::ProducerId>(random_.below(4));
  if (random_.chance(15))
    return make_marker(spec.base, epoch, producer, 0,
                       random_.chance(50) ? protocol::TransactionResult::abort
                                          : protocol::TransactionResult::commit);
  spec.count = 1 + static_cast<int>(random_.below(5));
  if (random_.chance(10)) spec.last = spec.base + spec.count + 2;
  spec.timestamp = 1'000'000 + static_cast<std::int64_t>(random_.below(100'000));
  spec.value_bytes = random_.below(random_.chance(5) ? 3000 : 60);
  if (random_.chance(20)) spec.codec = protocol::Codec::lz4;
  if (random_.chance(50)) {
    spec.producer = producer;
    spec.transactional = random_.chance(60);
    spec.sequence = sequences_[producer];
    sequences_[producer] += spec.count;
  }
  return make_batch(spec);
}

namespace {

void compare_epochs(const storage::Log& log, const LogModel& model) {
  const auto epochs = log.epochs(), expected = model.epochs();
  REQUIRE(log.last_epoch().value_or(-1) == (expected.empty() ? -1 : expected.back().epoch));
  REQUIRE(epochs.size() == expected.size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    REQUIRE(epochs[i].epoch == expected[i].epoch);
    REQUIRE(epochs[i].end_offset == expected[i].end_offset);
  }
  for (base::LeaderEpoch epoch = 0; epoch < log.last_epoch().value_or(0) + 2; ++epoch) {
    auto ours = log.end_offset_for(epoch), theirs = model.end_offset_for(epoch);
    REQUIRE(ours.has_value() == theirs.has_value());
    if (!ours) continue;
    REQUIRE(ours->epoch == theirs->epoch);
    REQUIRE(ours->end_offset == theirs->end_offset);
  }
}

}  // namespace

void compare(const storage::Log& log, const LogModel& model, base::Random& random) {
  REQUIRE(log.log_start() == model.start);
  REQUIRE(log.log_end() == model.end);
  // A restart may lose the last epoch of a log whose records were all deleted.
  if (model.start < model.end || log.last_epoch()) compare_epochs(log, model);
  const auto max_bytes = static_cast<std::uint32_t>(1 + random.below(4000));
  REQUIRE(read_all(log, model.start, max_bytes) == model.bytes_from(model.start));

  if (!model.batches.empty()) {
    // Any batch of the log, found from an offset in it or in the gap before it.
    const ModelBatch& batch = model.batches[random.below(model.batches.size())];
    const base::Offset from = std::max(batch.info.last_offset, model.start);
    storage::ReadLimits limits;
    limits.below = from + 1;
    limits.max_bytes = 1 << 20;
    auto one = log.read(from, limits);
    REQUIRE(one);
    if (from == batch.info.last_offset) REQUIRE(read_slice(one->slice) == batch.bytes);

    const std::int64_t timestamp = 1'000'000 + static_cast<std::int64_t>(random.below(100'100));
    auto ours = log.offset_for_timestamp(timestamp);
    REQUIRE(ours);
    auto theirs = model.offset_for_timestamp(timestamp);
    REQUIRE(ours->has_value() == theirs.has_value());
    if (theirs) {
      REQUIRE((*ours)->offset == theirs->offset);
      REQUIRE((*ours)->timestamp_ms == theirs->timestamp_ms);
      REQUIRE((*ours)->epoch == theirs->epoch);
    }
  }
  const auto transactions = model.transactions();
  REQUIRE(log.open_transactions().size() == transactions.open.size());
  base::Offset stable = model.end;
  for (const auto& [producer, first] : transactions.open) stable = std::min(stable, first);
  for (const auto& one : log.open_transactions())
    REQUIRE(transactions.open.at(one.producer_id) == one.first_offset);
  REQUIRE(log.last_stable_offset(model.end) == stable);

  const base::Offset span = std::max<base::Offset>(1, model.end - model.start);
  const base::Offset from =
      model.start + static_cast<base::Offset>(random.below(static_cast<std::uint64_t>(span)));
  const base::Offset to =
      from +
      static_cast<base::Offset>(random.below(static_cast<std::uint64_t>(model.end - from) + 1));
  auto aborted = log.aborted_transactions(from, to);
  REQUIRE(aborted);
  std::size_t n = 0;
  for (const auto& one : transactions.aborted) {
    if (one.marker < from || one.first >= to) continue;
    REQUIRE(n < aborted->size());
    REQUIRE((*aborted)[n].producer_id == one.producer);
    REQUIRE((*aborted)[n++].first_offset == one.first);
  }
  REQUIRE(n == aborted->size());
}

}  // namespace storage_test
