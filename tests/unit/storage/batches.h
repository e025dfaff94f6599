// Batches and directories for the storage tests.
#pragma once
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/random.h"
#include "protocol/batch_builder.h"
#include "storage/file.h"
#include "storage/log.h"

// A failed REQUIRE tells the error.
template <class T>
struct Catch::StringMaker<boost::system::result<T>> {
  static std::string convert(const boost::system::result<T>& result) {
    return result.has_error() ? result.error().message() : "a value";
  }
};

namespace storage_test {

struct BatchSpec {
  base::Offset base = 0;
  int count = 1;
  std::optional<base::Offset> last =
      std::nullopt;  // beyond the records: a gap that compaction left
  base::LeaderEpoch epoch = 0;
  std::int64_t timestamp = 1000;  // of the first record; the others follow by 1 ms
  std::size_t value_bytes = 20;
  protocol::Codec codec = protocol::Codec::none;
  std::optional<base::ProducerId> producer = std::nullopt;
  base::ProducerEpoch producer_epoch = 0;
  std::int32_t sequence = 0;
  bool transactional = false;
};

base::Buffer make_batch(const BatchSpec& spec);
base::Buffer make_marker(base::Offset base, base::LeaderEpoch epoch, base::ProducerId producer,
                         base::ProducerEpoch producer_epoch, protocol::TransactionResult result,
                         std::int32_t coordinator_epoch = 0);
base::Buffer make_reset(base::Offset base, base::LeaderEpoch epoch);
base::Buffer join(const std::vector<base::Buffer>& parts);

// Everything from `from` on as read() gives it, slice by slice. The first tells what a reader
// stumbles over: an error, or corrupt_batch if the slices are no batches in order.
base::Result<base::Buffer> try_read_all(const storage::Log& log, base::Offset from,
                                        std::uint32_t max_bytes = 1 << 20);
base::Buffer read_all(const storage::Log& log, base::Offset from,
                      std::uint32_t max_bytes = 1 << 20);
base::Buffer read_slice(const storage::FileSlice& slice);
base::Result<void> sync(storage::Log& log);

// A directory of its own that goes away with it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// 0, 1, ... so many. By hand: SEEDS in the environment times as many, or only SEED.
std::vector<std::uint64_t> seeds(std::uint64_t count);

}  // namespace storage_test
