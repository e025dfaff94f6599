#include "storage/batch_scanner.h"

#include <algorithm>
#include <cstring>

namespace storage {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

}  // namespace

HeaderScanner::HeaderScanner(const File& file, std::uint64_t position, std::uint64_t end,
                             std::size_t buffer_bytes)
    : file_(file), next_(position), end_(end), buffer_bytes_(buffer_bytes) {}

bool HeaderScanner::next() {
  if (error_ || next_ >= end_) return false;
  auto advanced = advance();
  if (advanced.has_error()) error_ = advanced.error();
  return advanced.has_value();
}

base::Result<void> HeaderScanner::advance() {
  const std::size_t want =
      static_cast<std::size_t>(std::min<std::uint64_t>(protocol::batch_header_bytes, end_ - next_));
  if (next_ < buffer_position_ || next_ + want > buffer_position_ + buffer_size_) {
    buffer_.resize(buffer_bytes_);
    buffer_position_ = next_;
    buffer_size_ = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_bytes_, end_ - next_));
    TRY_VOID(file_.pread(base::MutableBytes(buffer_).first(buffer_size_), next_));
  }
  base::Bytes header(buffer_.data() + (next_ - buffer_position_), want);
  TRY(info_, protocol::parse_batch_header(header, batch_bytes_limit));
  if (info_.size_bytes > end_ - next_) return protocol::BatchErrc::incomplete;
  position_ = next_;
  next_ += info_.size_bytes;
  return {};
}

CheckedScanner::CheckedScanner(const File& file, std::uint64_t position, std::uint64_t end)
    : file_(file), next_(position), end_(end) {}

// Makes the first `at_least` bytes from next_ on available, and more as it comes.
base::Result<void> CheckedScanner::fill(std::size_t at_least) {
  if (size_ >= at_least) return {};
  std::size_t target = std::max(at_least, piece_bytes);
  target = static_cast<std::size_t>(std::min<std::uint64_t>(target, end_ - next_));
  if (begin_ > 0 && size_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, size_);
  begin_ = 0;
  if (buffer_.size() < target) buffer_.resize(target);
  TRY_VOID(file_.pread(base::MutableBytes(buffer_).subspan(size_, target - size_), next_ + size_));
  size_ = target;
  return {};
}

bool CheckedScanner::next(base::Offset verify_from) {
  if (error_ || next_ >= end_) return false;
  auto advanced = advance(verify_from);
  if (advanced.has_error()) error_ = advanced.error();
  return advanced.has_value();
}

base::Result<void> CheckedScanner::advance(base::Offset verify_from) {
  const std::uint64_t left = end_ - next_;
  TRY_VOID(
      fill(static_cast<std::size_t>(std::min<std::uint64_t>(protocol::batch_header_bytes, left))));
  TRY(info_,
      protocol::parse_batch_header(base::Bytes(buffer_).subspan(begin_, size_), batch_bytes_limit));
  if (info_.size_bytes > left) return protocol::BatchErrc::incomplete;
  TRY_VOID(fill(info_.size_bytes));
  batch_ = base::Bytes(buffer_).subspan(begin_, info_.size_bytes);
  if (info_.last_offset >= verify_from) TRY_VOID(protocol::verify_crc(batch_));
  position_ = next_;
  next_ += info_.size_bytes;
  begin_ += info_.size_bytes;
  size_ -= info_.size_bytes;
  return {};
}

base::Result<base::Buffer> read_batch(const File& file, std::uint64_t position,
                                      const protocol::BatchInfo& info) {
  base::Buffer bytes(info.size_bytes);
  TRY_VOID(file.pread(bytes, position));
  return bytes;
}

}  // namespace storage
