// Words for raw bytes. `Bytes` borrows: whoever holds one sees to it that the owner outlives it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace base {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using Buffer = std::vector<std::byte>;

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Buffer to_buffer(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

// Lower-case hexadecimal, for messages and tests.
std::string to_hex(Bytes bytes);

}  // namespace base
