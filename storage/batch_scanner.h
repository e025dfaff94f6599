// Walks the record batches of a segment file, buffered, without reading record bytes that nobody
// asked for.
#pragma once
#include <cstdint>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"
#include "storage/file.h"

namespace storage {

// No batch larger than this is stored, and a length field that says more is damage: nothing is ever
// allocated on its word. Kafka's own limit is set by max.message.bytes, a few MiB in practice.
constexpr std::uint32_t batch_bytes_limit = 256u << 20;

// Headers only: hops from batch to batch with small reads.
class HeaderScanner {
 public:
  // Both outlive the scanner. Batches lie in [position, end).
  HeaderScanner(const File& file, std::uint64_t position, std::uint64_t end,
                std::size_t buffer_bytes = 4096);

  // False at the exact end, and when there is an error: BatchErrc when what stands there is no
  // batch or not a whole one, else one of the file's.
  bool next();
  base::Error error() const { return error_; }
  const protocol::BatchInfo& info() const { return info_; }
  std::uint64_t position() const { return position_; }  // of the batch that info() tells about
  std::uint64_t next_position() const { return next_; }

 private:
  base::Result<void> advance();

  const File& file_;
  std::uint64_t position_ = 0;
  std::uint64_t next_;
  std::uint64_t end_;
  std::size_t buffer_bytes_;
  base::Buffer buffer_;
  std::uint64_t buffer_position_ = 0;  // where in the file the buffer begins
  std::size_t buffer_size_ = 0;
  protocol::BatchInfo info_;
  base::Error error_;
};

// Whole batches with their checksums verified, read sequentially in large pieces.
class CheckedScanner {
 public:
  CheckedScanner(const File& file, std::uint64_t position, std::uint64_t end);

  // As above. The checksum is verified of batches that reach `verify_from`.
  bool next(base::Offset verify_from = 0);
  base::Error error() const { return error_; }
  const protocol::BatchInfo& info() const { return info_; }
  base::Bytes batch() const { return batch_; }  // until the next call of next()
  std::uint64_t position() const { return position_; }
  std::uint64_t next_position() const { return next_; }

 private:
  base::Result<void> fill(std::size_t at_least);
  base::Result<void> advance(base::Offset verify_from);

  const File& file_;
  std::uint64_t position_ = 0;
  std::uint64_t next_;
  std::uint64_t end_;
  base::Buffer buffer_;
  std::size_t begin_ = 0, size_ = 0;  // what of the buffer is still to be walked
  protocol::BatchInfo info_;
  base::Bytes batch_;
  base::Error error_;
};

// The bytes of one batch.
base::Result<base::Buffer> read_batch(const File& file, std::uint64_t position,
                                      const protocol::BatchInfo& info);

}  // namespace storage
