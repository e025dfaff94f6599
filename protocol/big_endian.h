// Big-endian integers in raw bytes. The caller has made sure that the bytes are there.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace protocol {

// With constant bounds the compiler turns the loops into one move and one byte swap.
template <std::integral T>
T load_be(const std::byte* from) {
  using U = std::make_unsigned_t<T>;
  U value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    if constexpr (sizeof(T) > 1) value = static_cast<U>(value << 8);
    value = static_cast<U>(value | std::to_integer<U>(from[i]));
  }
  return static_cast<T>(value);
}

template <std::integral T>
void store_be(std::byte* to, T value) {
  auto rest = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = sizeof(T); i-- > 0;) {
    to[i] = static_cast<std::byte>(rest & 0xff);
    if constexpr (sizeof(T) > 1) rest = static_cast<std::make_unsigned_t<T>>(rest >> 8);
  }
}

}  // namespace protocol
