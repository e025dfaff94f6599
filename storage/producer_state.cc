#include "storage/producer_state.h"

#include <algorithm>
#include <limits>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "storage/error.h"

namespace storage {
namespace {

constexpr std::size_t snapshot_header_bytes = 10;  // version, checksum, count
constexpr std::size_t snapshot_entry_bytes = 46;
constexpr std::int16_t snapshot_version = 1;

std::int32_t sequence_minus(std::int32_t sequence, std::int32_t delta) {
  const std::int64_t value = std::int64_t{sequence} - delta;  // wraps from 0 to 2^31-1
  return static_cast<std::int32_t>(value >= 0 ? value : value + (std::int64_t{1} << 31));
}

bool follows(std::int32_t last, std::int32_t next) {
  return std::int64_t{next} == std::int64_t{last} + 1 ||
         (next == 0 && last == std::numeric_limits<std::int32_t>::max());
}

}  // namespace

const ProducerState::Producer* ProducerState::find(base::ProducerId id) const {
  auto it = producers_.find(id);
  return it == producers_.end() ? nullptr : &it->second;
}

base::Result<std::optional<ProducerState::Batch>> ProducerState::check(
    const protocol::BatchInfo& info) const {
  std::optional<Batch> repeated;
  const Producer* producer = info.producer_id ? find(*info.producer_id) : nullptr;
  if (producer == nullptr) return repeated;
  if (info.base_sequence && info.producer_epoch == producer->epoch) {
    for (std::size_t i = 0; i < producer->batch_count; ++i) {
      const Batch& known = producer->batches[i];
      if (known.base_sequence == *info.base_sequence &&
          known.last_sequence == info.last_sequence()) {
        repeated = known;
        return repeated;
      }
    }
  }
  if (!producer->epoch) return repeated;  // who never told an epoch may send any sequence
  const base::ProducerEpoch epoch = info.producer_epoch.value_or(-1);
  if (epoch < *producer->epoch) return StorageErrc::invalid_producer_epoch;
  if (info.base_sequence) {
    if (epoch != *producer->epoch) {
      if (*info.base_sequence != 0) return StorageErrc::out_of_order_sequence;
    } else {
      const std::int32_t last = producer->last() ? producer->last()->last_sequence : -1;
      if (!follows(last, *info.base_sequence)) return StorageErrc::out_of_order_sequence;
    }
  }
  if (producer->transaction_first_offset && !info.transactional())
    return StorageErrc::invalid_producer_state;
  return repeated;
}

base::Result<void> ProducerState::check_marker(const protocol::BatchInfo& info,
                                               const protocol::ControlRecord& control) const {
  const Producer* producer = info.producer_id ? find(*info.producer_id) : nullptr;
  if (producer == nullptr) return {};
  if (producer->epoch && info.producer_epoch.value_or(-1) < *producer->epoch)
    return StorageErrc::invalid_producer_epoch;
  if (control.coordinator_epoch.value_or(0) < producer->coordinator_epoch)
    return StorageErrc::coordinator_fenced;
  return {};
}

std::optional<CompletedTransaction> ProducerState::apply(
    const protocol::BatchInfo& info, const std::optional<protocol::ControlRecord>& control,
    std::optional<std::int64_t> now_ms) {
  if (control) {
    if (control->type == protocol::ControlType::producer_id_reset) {
      clear();
      return std::nullopt;
    }
    const bool marker = control->type == protocol::ControlType::abort ||
                        control->type == protocol::ControlType::commit;
    return marker && info.producer_id ? apply_marker(info, *control) : std::nullopt;
  }
  if (info.control() || !info.producer_id) return std::nullopt;
  Producer& producer = producers_[*info.producer_id];
  add_batch(producer, info);
  if (now_ms) producer.last_append_ms = *now_ms;
  if (info.transactional() && !producer.transaction_first_offset) {
    producer.transaction_first_offset = info.base_offset;
    open_[info.base_offset] = *info.producer_id;
  }
  return std::nullopt;
}

void ProducerState::add_batch(Producer& producer, const protocol::BatchInfo& info) {
  if (producer.epoch != info.producer_epoch) {
    producer.epoch = info.producer_epoch;
    producer.batch_count = 0;
  }
  producer.last_timestamp_ms = info.max_timestamp;
  if (!info.base_sequence) return;
  if (producer.batch_count == producer.batches.size()) {
    std::move(producer.batches.begin() + 1, producer.batches.end(), producer.batches.begin());
    --producer.batch_count;
  }
  producer.batches[producer.batch_count++] = Batch{
      *info.base_sequence, info.last_sequence().value_or(*info.base_sequence), info.last_offset,
      static_cast<std::int32_t>(info.last_offset - info.base_offset), info.max_timestamp};
}

std::optional<CompletedTransaction> ProducerState::apply_marker(
    const protocol::BatchInfo& info, const protocol::ControlRecord& control) {
  Producer& producer = producers_[*info.producer_id];
  if (producer.epoch != info.producer_epoch) {
    producer.epoch = info.producer_epoch;
    producer.batch_count = 0;
  }
  producer.coordinator_epoch = control.coordinator_epoch.value_or(-1);
  producer.last_timestamp_ms = info.max_timestamp;
  if (!producer.transaction_first_offset) return std::nullopt;  // a transaction without records
  CompletedTransaction done;
  done.producer_id = *info.producer_id;
  done.first_offset = *producer.transaction_first_offset;
  done.marker_offset = info.last_offset;
  done.aborted = control.type == protocol::ControlType::abort;
  open_.erase(done.first_offset);
  producer.transaction_first_offset.reset();
  done.last_stable_offset = open_.empty() ? info.last_offset + 1 : open_.begin()->first;
  completed_.push_back({done.first_offset, done.marker_offset});
  return done;
}

base::Offset ProducerState::last_stable_offset(base::Offset high_watermark) {
  while (!completed_.empty() && completed_.front().marker < high_watermark) completed_.pop_front();
  return decided_below(high_watermark);
}

base::Offset ProducerState::decided_below(base::Offset offset) const {
  base::Offset stable = offset;
  for (const Undecided& one : completed_)
    if (one.marker >= offset) stable = std::min(stable, one.first);
  if (!open_.empty()) stable = std::min(stable, open_.begin()->first);
  return stable;
}

std::vector<std::pair<base::ProducerId, const ProducerState::Producer*>>
ProducerState::open_transactions() const {
  std::vector<std::pair<base::ProducerId, const Producer*>> all;
  for (const auto& [first, id] : open_) all.emplace_back(id, find(id));
  return all;
}

void ProducerState::clear() {
  producers_.clear();
  open_.clear();
  completed_.clear();
}

void ProducerState::expire(std::int64_t now_ms, std::int64_t expiration_ms) {
  std::erase_if(producers_, [&](const auto& one) {
    return !one.second.transaction_first_offset &&
           std::max(one.second.last_timestamp_ms, one.second.last_append_ms) <=
               now_ms - expiration_ms;
  });
}

base::Buffer ProducerState::encode_snapshot() const {
  std::map<base::ProducerId, const Producer*> sorted;
  for (const auto& [id, producer] : producers_) sorted[id] = &producer;
  base::Buffer content(snapshot_header_bytes + sorted.size() * snapshot_entry_bytes);
  std::byte* at = content.data();
  protocol::store_be(at, snapshot_version);
  protocol::store_be(at + 6, static_cast<std::int32_t>(sorted.size()));
  at += snapshot_header_bytes;
  for (const auto& [id, producer] : sorted) {
    const Batch* last = producer->last();
    protocol::store_be(at, id);
    protocol::store_be(at + 8, producer->epoch.value_or(-1));
    protocol::store_be(at + 10, last ? last->last_sequence : -1);
    protocol::store_be(at + 14, last ? last->last_offset : base::Offset{-1});
    protocol::store_be(at + 22, last ? last->offset_delta : 0);
    protocol::store_be(at + 26, producer->last_timestamp_ms);
    protocol::store_be(at + 34, producer->coordinator_epoch);
    protocol::store_be(at + 38, producer->transaction_first_offset.value_or(-1));
    at += snapshot_entry_bytes;
  }
  protocol::store_be(content.data() + 2, protocol::crc32c(base::Bytes(content).subspan(6)));
  return content;
}

base::Result<ProducerState> ProducerState::decode_snapshot(base::Bytes content) {
  if (content.size() < snapshot_header_bytes) return StorageErrc::corrupt_file;
  const std::byte* at = content.data();
  const auto count = protocol::load_be<std::int32_t>(at + 6);
  if (protocol::load_be<std::int16_t>(at) != snapshot_version || count < 0 ||
      content.size() - snapshot_header_bytes !=
          static_cast<std::size_t>(count) * snapshot_entry_bytes ||
      protocol::load_be<std::uint32_t>(at + 2) != protocol::crc32c(content.subspan(6)))
    return StorageErrc::corrupt_file;
  at += snapshot_header_bytes;
  ProducerState state;
  for (std::int32_t i = 0; i < count; ++i, at += snapshot_entry_bytes) {
    auto [entry, fresh] = state.producers_.try_emplace(protocol::load_be<std::int64_t>(at));
    if (!fresh) return StorageErrc::corrupt_file;
    Producer& producer = entry->second;
    const auto epoch = protocol::load_be<std::int16_t>(at + 8);
    if (epoch >= 0) producer.epoch = epoch;
    const auto last_sequence = protocol::load_be<std::int32_t>(at + 10);
    const auto last_offset = protocol::load_be<std::int64_t>(at + 14);
    const auto delta = protocol::load_be<std::int32_t>(at + 22);
    producer.last_timestamp_ms = protocol::load_be<std::int64_t>(at + 26);
    if (last_offset >= 0 && last_sequence >= 0 && delta >= 0) {
      producer.batches[0] = {sequence_minus(last_sequence, delta), last_sequence, last_offset,
                             delta, producer.last_timestamp_ms};
      producer.batch_count = 1;
    }
    producer.coordinator_epoch = protocol::load_be<std::int32_t>(at + 34);
    const auto first = protocol::load_be<std::int64_t>(at + 38);
    if (first >= 0) {
      producer.transaction_first_offset = first;
      if (!state.open_.emplace(first, entry->first).second) return StorageErrc::corrupt_file;
    }
  }
  return state;
}

}  // namespace storage
