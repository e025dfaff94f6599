// The bytes that a connection has received and not handled yet: requests one behind the other, each
// after its size (four bytes, big-endian), the last one perhaps in part. Pure; not thread-safe.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "protocol/base/bytes.h"

namespace broker {

class RequestBuffer {
 public:
  static constexpr std::size_t prefix_bytes = sizeof(std::int32_t);

  // Of memory; 0: there is only room for the size of one request.
  std::size_t capacity() const { return capacity_; }
  // Whether all that came has been taken.
  bool empty() const { return begin_ == end_; }

  // What the request at the front says its size is, whatever that may be; nothing before that came.
  std::optional<std::int32_t> announced() const;
  // Whether the request at the front is there to its end.
  bool whole() const;
  // The request at the front, which must be whole(), without its size. It stays where it is until
  // room(), reserve() or drop() is called, also when others are taken.
  base::MutableBytes take();
  // The same, which stays at the front.
  base::Bytes front() const;

  // Makes memory for `bytes`, of which the first are those that came and were not taken.
  void reserve(std::size_t bytes);
  // Where the next bytes are to be written, not empty unless whole(). Ahead: as many as there is
  // memory for; else not beyond the request at the front, whose memory must be reserved once its
  // size is there.
  base::MutableBytes room(bool ahead);
  // So many bytes were written to room().
  void add(std::size_t count);
  // Gives the memory back. Only when empty().
  void drop();

 private:
  std::byte* memory() { return capacity_ > 0 ? memory_.get() : prefix_.data(); }
  const std::byte* memory() const { return capacity_ > 0 ? memory_.get() : prefix_.data(); }
  std::size_t limit() const { return capacity_ > 0 ? capacity_ : prefix_bytes; }
  void move_to_front();

  std::array<std::byte, prefix_bytes> prefix_{};
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // of what was not taken
  std::size_t end_ = 0;
};

}  // namespace broker
