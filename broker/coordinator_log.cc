#include "broker/coordinator_log.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "broker/bounds.h"
#include "broker/error.h"
#include "broker/shard.h"
#include "protocol/batch_builder.h"
#include "protocol/record.h"

namespace broker {

using protocol::ErrorCode;

namespace {

// The last epoch that there is: no marker can be of one above it.
constexpr base::ProducerEpoch last_producer_epoch = std::numeric_limits<std::int16_t>::max();

void apply_control(base::Bytes batch, const protocol::BatchInfo& info, const LogContent& apply) {
  if (!info.producer_id || !apply.marker) return;
  const auto control = protocol::read_control(batch);
  if (control.has_error() || !*control) return;  // of a kind that is not known here
  const protocol::ControlType type = (*control)->type;
  if (type == protocol::ControlType::commit || type == protocol::ControlType::abort)
    apply.marker(*info.producer_id, type == protocol::ControlType::commit);
}

}  // namespace

base::Result<base::Offset> apply_content(base::Bytes batches, base::Offset from,
                                         const LogContent& apply) {
  protocol::BatchIterator it(batches, protocol::CrcCheck::yes);
  base::Offset next = from;
  while (it.next()) {
    const protocol::BatchInfo& info = it.info();
    next = info.next_offset();
    if (info.control()) {
      if (info.last_offset >= from) apply_control(it.batch(), info, apply);
      continue;
    }
    groups::Place place;
    if (info.transactional()) place.transaction = info.producer_id;
    TRY(auto reader, protocol::RecordReader::open(it.batch()));
    protocol::Record record;
    while (reader.next(record)) {
      if (record.offset < from || !record.key) continue;
      place.offset = record.offset;
      apply.record(*record.key, record.value, place);
    }
    if (reader.error()) return reader.error();
  }
  if (it.stopped()) return it.stopped();
  return next;
}

boost::asio::awaitable<base::Result<void>> CoordinatorLog::replay(LogContent apply) {
  base::Offset offset = partition_->log_start();
  for (;;) {
    ReadRequest request;
    request.offset = std::max(offset, partition_->log_start());
    request.bytes_max = coordinator_read_bytes;
    const ReadAnswer answer = partition_->read(request);
    if (answer.error) co_return answer.error;
    // At the end; compaction may have left no batch there (C12).
    if (answer.slice.size == 0) co_return base::Result<void>();
    base::Buffer bytes(answer.slice.size);
    auto read = [&bytes, &answer] {
      return answer.slice.file->pread(bytes, answer.slice.position);
    };
    CO_TRY_VOID(co_await home_.on_disk(std::move(read)));
    CO_TRY(offset, apply_content(bytes, request.offset, apply));
    if (offset <= request.offset) co_return base::Result<void>();
  }
}

ErrorCode CoordinatorLog::check(const groups::Producer& producer) const {
  if (producer.id < 0) return ErrorCode::invalid_producer_id_mapping;
  const auto known = partition_->log().active_producer(producer.id);
  const base::ProducerEpoch least = known ? known->epoch.value_or(0) : base::ProducerEpoch{0};
  return producer.epoch < least ? ErrorCode::invalid_producer_epoch : ErrorCode::none;
}

ErrorCode CoordinatorLog::check(const TransactionMarker& marker) const {
  const ErrorCode error = check(groups::Producer{marker.producer_id, marker.producer_epoch});
  const auto known = partition_->log().active_producer(marker.producer_id);
  if (error != ErrorCode::none || !known) return error;
  if (partition_->coordinator_epoch_of(marker) < known->coordinator_epoch)
    return ErrorCode::invalid_producer_epoch;
  // KIP-890: the records are of the epoch before, unless there is none above theirs. An equal one
  // has been here already: there is nothing open then.
  const bool should_be_above = marker.transaction_version >= 2 &&
                               marker.producer_epoch != last_producer_epoch &&
                               known->transaction_first_offset;
  return should_be_above && marker.producer_epoch == known->epoch
             ? ErrorCode::invalid_producer_epoch
             : ErrorCode::none;
}

base::Result<base::Offset> CoordinatorLog::append(
    std::span<const groups::Record> records, const std::optional<groups::Producer>& transaction,
    std::int64_t now_ms) {
  const base::Offset first = partition_->log_end();
  protocol::BatchOptions options;
  if (transaction) {
    options.producer_id = transaction->id;
    options.producer_epoch = transaction->epoch;
    options.transactional = true;
  }
  while (!records.empty()) {
    protocol::BatchBuilder builder(options);
    std::size_t count = 0;
    do {
      const groups::Record& one = records[count];
      std::optional<base::Bytes> value;
      if (one.value) value = base::Bytes(*one.value);
      builder.add(now_ms, base::Bytes(one.key), value);
      ++count;
    } while (count < records.size() && builder.size_bytes() < coordinator_batch_bytes);
    base::Buffer batch = std::move(builder).build();
    TRY_VOID(partition_->append_internal(batch, now_ms));
    records = records.subspan(count);
  }
  return first;
}

base::Result<void> CoordinatorLog::append(const TransactionMarker& marker, std::int64_t now_ms) {
  protocol::EndTransactionMarker end;
  end.producer_id = marker.producer_id;
  end.producer_epoch = marker.producer_epoch;
  end.coordinator_epoch = partition_->coordinator_epoch_of(marker);
  end.result =
      marker.committed ? protocol::TransactionResult::commit : protocol::TransactionResult::abort;
  base::Buffer batch = protocol::end_transaction_marker(end, now_ms);
  TRY_VOID(partition_->append_internal(batch, now_ms));
  return {};
}

boost::asio::awaitable<base::Result<void>> CoordinatorLog::flush() {
  return partition_->flush(partition_->log_end());
}

}  // namespace broker
