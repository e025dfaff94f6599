#include "broker/request_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"

namespace broker {
namespace {

// Requests of one size differ by some bytes: the next one shall find room without a new block.
constexpr std::size_t block_bytes = 4096;

}  // namespace

std::optional<std::int32_t> RequestBuffer::announced() const {
  if (end_ - begin_ < prefix_bytes) return std::nullopt;
  return protocol::load_be<std::int32_t>(memory() + begin_);
}

bool RequestBuffer::whole() const {
  const auto size = announced();
  return size && *size > 0 && end_ - begin_ - prefix_bytes >= static_cast<std::size_t>(*size);
}

base::Bytes RequestBuffer::front() const {
  CHECK(whole());
  return {memory() + begin_ + prefix_bytes, static_cast<std::size_t>(*announced())};
}

base::MutableBytes RequestBuffer::take() {
  const std::size_t size = front().size();
  const base::MutableBytes request(memory() + begin_ + prefix_bytes, size);
  begin_ += prefix_bytes + size;
  return request;
}

void RequestBuffer::move_to_front() {
  if (begin_ == 0) return;
  std::memmove(memory(), memory() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

void RequestBuffer::reserve(std::size_t bytes) {
  CHECK(bytes >= end_ - begin_);
  if (capacity_ > 0 && limit() - begin_ >= bytes) return;
  if (capacity_ >= bytes) return move_to_front();
  const std::size_t wanted = (bytes + block_bytes - 1) / block_bytes * block_bytes;
  auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted);
  std::memcpy(larger.get(), memory() + begin_, end_ - begin_);
  memory_ = std::move(larger);
  capacity_ = wanted;
  end_ -= begin_;
  begin_ = 0;
}

base::MutableBytes RequestBuffer::room(bool ahead) {
  if (empty()) begin_ = end_ = 0;
  if (limit() - begin_ < prefix_bytes || end_ == limit()) move_to_front();
  std::size_t until = limit();
  if (!ahead) {
    const auto size = announced();
    CHECK(!size || *size > 0);
    until = begin_ + prefix_bytes + static_cast<std::size_t>(size.value_or(0));
  }
  CHECK(until <= limit() && until >= end_);
  return {memory() + end_, until - end_};
}

void RequestBuffer::add(std::size_t count) {
  CHECK(count <= limit() - end_);
  end_ += count;
}

void RequestBuffer::drop() {
  CHECK(empty());
  memory_.reset();
  capacity_ = begin_ = end_ = 0;
}

}  // namespace broker
