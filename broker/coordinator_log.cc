#include "broker/coordinator_log.h"

#include <utility>

#include "broker/bounds.h"
#include "broker/error.h"
#include "broker/shard.h"
#include "protocol/batch_builder.h"
#include "protocol/record.h"

namespace broker {

base::Result<base::Offset> apply_records(base::Bytes batches, base::Offset from,
                                         const ApplyRecord& apply) {
  protocol::BatchIterator it(batches, protocol::CrcCheck::yes);
  base::Offset next = from;
  while (it.next()) {
    next = it.info().next_offset();
    if (it.info().control()) continue;
    TRY(auto reader, protocol::RecordReader::open(it.batch()));
    protocol::Record record;
    while (reader.next(record))
      if (record.offset >= from && record.key) apply(*record.key, record.value);
    if (reader.error()) return reader.error();
  }
  if (it.stopped()) return it.stopped();
  return next;
}

boost::asio::awaitable<base::Result<void>> CoordinatorLog::replay(ApplyRecord apply) {
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
    CO_TRY(offset, apply_records(bytes, request.offset, apply));
    if (offset <= request.offset) co_return base::Result<void>();
  }
}

base::Result<void> CoordinatorLog::append(std::span<const groups::Record> records,
                                          std::int64_t now_ms) {
  while (!records.empty()) {
    protocol::BatchBuilder builder{protocol::BatchOptions()};
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
  return {};
}

boost::asio::awaitable<base::Result<void>> CoordinatorLog::flush() {
  return partition_->flush(partition_->log_end());
}

}  // namespace broker
