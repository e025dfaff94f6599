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

void LogModel::settle_epochs(bool holds_bytes) {
  begun.reset();
  if (start == end && !holds_bytes) epochs_from = batches.size();
}

void LogModel::truncate_to(base::Offset offset) {
  if (offset > end) return;
  begun.reset();
  if (offset == end) return;
  if (offset < start) return restart_at(offset);
  while (!batches.empty() && batches.back().info.last_offset >= offset) batches.pop_back();
  epochs_from = std::min(epochs_from, batches.size());
  // An empty log keeps the base of its segment, which only the log knows: the first batch's.
  end = batches.empty() ? std::min(end, offset) : batches.back().info.next_offset();
  if (end < start) restart_at(start);
}

void LogModel::restart_at(base::Offset offset) {
  batches.clear();
  begun.reset();
  epochs_from = 0;
  start = end = offset;
}

base::Buffer LogModel::bytes_from(base::Offset from) const {
  base::Buffer all;
  for (const ModelBatch& batch : batches)
    if (batch.info.last_offset >= from)
      all.insert(all.end(), batch.bytes.begin(), batch.bytes.end());
  return all;
}

std::vector<LogModel::Epoch> LogModel::epochs() const {
  std::vector<Epoch> all;
  base::Offset before = 0;
  for (std::size_t i = epochs_from; i < batches.size(); ++i) {
    const protocol::BatchInfo& info = batches[i].info;
    const base::LeaderEpoch epoch = *info.partition_leader_epoch;
    if (all.empty() || all.back().epoch < epoch)
      all.push_back({epoch, info.base_offset, before, info.base_offset, false});
    // Of an epoch that the log start cuts, what is above is all there is.
    if (info.last_offset >= start && !all.back().has_batch) {
      all.back().has_batch = true;
      all.back().high = info.base_offset;
    }
    before = info.next_offset();
  }
  if (begun) all.push_back({begun->epoch, begun->end_offset, begun->end_offset, begun->end_offset});
  // Epochs that ended below the log start are forgotten.
  while (all.size() > 1 && all[1].start <= start) all.erase(all.begin());
  if (!all.empty()) {
    Epoch& first = all.front();
    for (base::Offset* at : {&first.start, &first.low, &first.high}) *at = std::max(*at, start);
  }
  return all;
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
      if (record.offset >= start && (!found || record.timestamp > found->timestamp_ms))
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

void Trace::note(const std::string& what, const LogModel& model) {
  lines_.push_back("\n  " + what + ": [" + std::to_string(model.start) + ", " +
                   std::to_string(model.end) + ")" + (model.begun ? " begun" : ""));
  if (lines_.size() > 16) lines_.erase(lines_.begin());
}

std::string Trace::text() const {
  std::string all = " after";
  for (const std::string& line : lines_) all += line;
  return all;
}

// Returns from a function that gives what differs.
#define SAME(ours, theirs)                                                             \
  do {                                                                                 \
    if (!((ours) == (theirs)))                                                         \
      return std::string(#ours) + " is " + Catch::Detail::stringify(ours) + ", not " + \
             Catch::Detail::stringify(theirs);                                         \
  } while (false)
#define SAME_SO_FAR(expression)                                      \
  do {                                                               \
    if (std::string what = (expression); !what.empty()) return what; \
  } while (false)

namespace {

// The answer of OffsetForLeaderEpoch, by Kafka's rule.
std::optional<storage::EpochEnd> end_of(const std::vector<storage::EpochEnd>& epochs,
                                        base::LeaderEpoch epoch, base::Offset log_end) {
  if (epochs.empty() || epoch > epochs.back().epoch) return std::nullopt;
  if (epoch == epochs.back().epoch) return storage::EpochEnd{epoch, log_end};
  std::optional<base::LeaderEpoch> floor;
  for (const auto& one : epochs) {
    if (one.epoch > epoch) return storage::EpochEnd{floor.value_or(epoch), one.end_offset};
    floor = one.epoch;
  }
  return std::nullopt;
}

std::string epochs_described(const std::vector<storage::EpochEnd>& epochs,
                             const std::vector<LogModel::Epoch>& expected) {
  std::string text = "; epochs";
  for (const auto& one : epochs)
    text += " " + std::to_string(one.epoch) + "@" + std::to_string(one.end_offset);
  text += ", expected";
  for (const auto& one : expected)
    text += " " + std::to_string(one.epoch) + "@" + std::to_string(one.start) + "(" +
            std::to_string(one.low) + ".." + std::to_string(one.high) + ")";
  return text;
}

std::string epochs_difference(const storage::Log& log, const LogModel& model) {
  const auto epochs = log.epochs();
  auto expected = model.epochs();
  if (model.loaded && expected.size() == epochs.size() + 1 && !expected.front().has_batch)
    expected.erase(expected.begin());
  SAME(log.last_epoch().value_or(-1), expected.empty() ? -1 : expected.back().epoch);
  SAME(epochs.size(), expected.size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    SAME(epochs[i].epoch, expected[i].epoch);
    const base::Offset start = epochs[i].end_offset;
    const bool in_gap = start >= expected[i].low && start <= expected[i].high;
    if (!model.loaded || !in_gap) SAME(start, expected[i].start);
  }
  for (base::LeaderEpoch epoch = 0; epoch < log.last_epoch().value_or(0) + 2; ++epoch) {
    auto ours = log.end_offset_for(epoch), theirs = end_of(epochs, epoch, model.end);
    SAME(ours.has_value(), theirs.has_value());
    if (!ours) continue;
    SAME(ours->epoch, theirs->epoch);
    SAME(ours->end_offset, theirs->end_offset);
  }
  return {};
}

std::string bytes_difference(const storage::Log& log, const LogModel& model, base::Random& random) {
  const auto max_bytes = static_cast<std::uint32_t>(1 + random.below(4000));
  auto all = try_read_all(log, model.start, max_bytes);
  if (!all) return "reading: " + all.error().message();
  if (*all != model.bytes_from(model.start)) return "other bytes";
  if (model.batches.empty()) return {};
  // Any batch of the log, found from an offset in it or in the gap before it.
  const std::size_t index = random.below(model.batches.size());
  const protocol::BatchInfo& batch = model.batches[index].info;
  const base::Offset before = index == 0 ? 0 : model.batches[index - 1].info.next_offset();
  const base::Offset low = std::max(before, model.start);
  if (batch.last_offset < low) return {};
  const base::Offset from = low + static_cast<base::Offset>(random.below(
                                      static_cast<std::uint64_t>(batch.last_offset - low + 1)));
  storage::ReadLimits limits;
  limits.max_bytes = 1;
  auto one = log.read(from, limits);
  if (!one) return "reading one: " + one.error().message();
  SAME(one->first_base.value_or(-1), batch.base_offset);
  SAME(one->slice.size, batch.size_bytes);
  limits.max_bytes = 1 << 20;
  limits.below = batch.base_offset;  // from the gap before it there is nothing below it
  if (from < batch.base_offset) {
    one = log.read(from, limits);
    if (!one) return "reading a gap: " + one.error().message();
    SAME(one->slice.size, 0u);
  }
  limits.below = batch.base_offset + 1;  // it, and no more
  one = log.read(from, limits);
  if (!one) return "reading up to one: " + one.error().message();
  SAME(one->slice.size, batch.size_bytes);
  return {};
}

std::string same_time(const base::Result<std::optional<storage::TimestampOffset>>& ours,
                      const std::optional<storage::TimestampOffset>& theirs) {
  if (!ours) return "asking for a time: " + ours.error().message();
  SAME((*ours).has_value(), theirs.has_value());
  if (!theirs) return {};
  SAME((*ours)->offset, theirs->offset);
  SAME((*ours)->timestamp_ms, theirs->timestamp_ms);
  SAME((*ours)->epoch.value_or(-1), theirs->epoch.value_or(-1));
  return {};
}

std::string transactions_difference(const storage::Log& log, const LogModel& model,
                                    base::Random& random) {
  const auto transactions = model.transactions();
  SAME(log.open_transactions().size(), transactions.open.size());
  base::Offset stable = model.end;
  for (const auto& [producer, first] : transactions.open) stable = std::min(stable, first);
  for (const auto& one : log.open_transactions()) {
    auto open = transactions.open.find(one.producer_id);
    SAME(one.first_offset, open == transactions.open.end() ? -1 : open->second);
  }
  SAME(log.last_stable_offset(model.end), stable);

  const base::Offset span = std::max<base::Offset>(1, model.end - model.start);
  const base::Offset from =
      model.start + static_cast<base::Offset>(random.below(static_cast<std::uint64_t>(span)));
  const base::Offset to =
      from +
      static_cast<base::Offset>(random.below(static_cast<std::uint64_t>(model.end - from) + 1));
  auto aborted = log.aborted_transactions(from, to);
  if (!aborted) return "aborted transactions: " + aborted.error().message();
  std::vector<base::Offset> ours, theirs;
  for (const auto& one : *aborted) ours.push_back(one.first_offset);
  for (const auto& one : transactions.aborted)
    if (one.marker >= from && one.first < to) theirs.push_back(one.first);
  if (ours == theirs) return {};
  std::string text = "aborted transactions from " + std::to_string(from) + " to " +
                     std::to_string(to) + ": " + Catch::Detail::stringify(ours) + " of";
  for (const auto& one : transactions.aborted)
    text += " " + std::to_string(one.first) + ".." + std::to_string(one.marker);
  return text;
}

}  // namespace

std::string difference(const storage::Log& log, const LogModel& model, base::Random& random) {
  SAME(log.log_start(), model.start);
  SAME(log.log_end(), model.end);
  if (auto what = epochs_difference(log, model); !what.empty())
    return what + epochs_described(log.epochs(), model.epochs());
  SAME_SO_FAR(bytes_difference(log, model, random));
  const std::int64_t timestamp = 1'000'000 + static_cast<std::int64_t>(random.below(100'100));
  SAME_SO_FAR(
      same_time(log.offset_for_timestamp(timestamp), model.offset_for_timestamp(timestamp)));
  SAME_SO_FAR(same_time(log.max_timestamp(), model.max_timestamp()));
  return transactions_difference(log, model, random);
}

}  // namespace storage_test
