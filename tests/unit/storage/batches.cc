#include "tests/unit/storage/batches.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "storage/error.h"

namespace storage_test {

base::Buffer make_batch(const BatchSpec& spec) {
  protocol::BatchOptions options;
  options.base_offset = spec.base;
  options.last_offset = spec.last;
  options.partition_leader_epoch = spec.epoch;
  options.codec = spec.codec;
  options.transactional = spec.transactional;
  if (spec.producer) {
    options.producer_id = spec.producer;
    options.producer_epoch = spec.producer_epoch;
    options.base_sequence = spec.sequence;
  }
  protocol::BatchBuilder builder(options);
  for (int i = 0; i < spec.count; ++i) {
    const std::string key = "k" + std::to_string(spec.base + i);
    const std::string value(spec.value_bytes, static_cast<char>('a' + (spec.base + i) % 26));
    builder.add(spec.timestamp + i, base::as_bytes(key), base::as_bytes(value));
  }
  return std::move(builder).build();
}

base::Buffer make_marker(base::Offset base, base::LeaderEpoch epoch, base::ProducerId producer,
                         base::ProducerEpoch producer_epoch, protocol::TransactionResult result,
                         std::int32_t coordinator_epoch) {
  base::Buffer batch =
      protocol::end_transaction_marker({producer, producer_epoch, coordinator_epoch, result}, 5000);
  protocol::set_base_offset(batch, base);
  protocol::set_partition_leader_epoch(batch, epoch);
  return batch;
}

base::Buffer make_reset(base::Offset base, base::LeaderEpoch epoch) {
  base::Buffer batch = protocol::producer_id_reset(5000);
  protocol::set_base_offset(batch, base);
  protocol::set_partition_leader_epoch(batch, epoch);
  return batch;
}

base::Buffer join(const std::vector<base::Buffer>& parts) {
  base::Buffer all;
  for (const base::Buffer& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

base::Buffer read_slice(const storage::FileSlice& slice) {
  base::Buffer bytes(slice.size);
  if (slice.size > 0) REQUIRE(slice.file->pread(bytes, slice.position));
  return bytes;
}

base::Result<base::Buffer> try_read_all(const storage::Log& log, base::Offset from,
                                        std::uint32_t max_bytes) {
  base::Buffer all;
  while (from < log.log_end()) {
    storage::ReadLimits limits;
    limits.max_bytes = max_bytes;
    TRY(auto result, log.read(from, limits));
    base::Buffer bytes(result.slice.size);
    // Only in the gap that an empty segment begins behind is there nothing before the log end.
    if (bytes.empty()) return all;
    TRY_VOID(result.slice.file->pread(bytes, result.slice.position));
    protocol::BatchIterator it(bytes, protocol::CrcCheck::yes);
    while (it.next()) {
      if (it.info().last_offset < from) return storage::StorageErrc::corrupt_batch;
      from = it.info().next_offset();
    }
    if (it.valid_bytes() == 0) return storage::StorageErrc::corrupt_batch;
    if (it.stopped() && it.stopped() != protocol::BatchErrc::incomplete)
      return storage::StorageErrc::corrupt_batch;
    all.insert(all.end(), bytes.begin(),
               bytes.begin() + static_cast<std::ptrdiff_t>(it.valid_bytes()));
  }
  return all;
}

base::Buffer read_all(const storage::Log& log, base::Offset from, std::uint32_t max_bytes) {
  auto all = try_read_all(log, from, max_bytes);
  REQUIRE(all);
  return std::move(*all);
}

base::Result<void> sync(storage::Log& log) {
  auto job = log.begin_sync();
  if (!job) return {};
  auto outcome = job->run();
  return log.finish_sync(*job, outcome);
}

TemporaryDirectory::TemporaryDirectory() {
  static std::atomic<int> number = 0;
  path_ = (std::filesystem::temp_directory_path() /
           ("calque-storage-" + std::to_string(::getpid()) + "-" + std::to_string(number++)))
              .string();
  std::filesystem::create_directories(path_);
}
TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* only = std::getenv("SEED")) return {std::strtoull(only, nullptr, 10)};
  if (const char* factor = std::getenv("SEEDS")) count *= std::strtoull(factor, nullptr, 10);
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

}  // namespace storage_test
