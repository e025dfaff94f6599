#include "protocol/base/ids.h"

#include "protocol/base/bytes.h"

namespace base {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string Uuid::to_string() const {
  std::string out;
  std::uint32_t bits = 0;
  int have = 0;
  for (std::byte b : bytes) {
    bits = bits << 8 | static_cast<std::uint32_t>(b);
    have += 8;
    while (have >= 6) {
      have -= 6;
      out += alphabet[bits >> have & 63];
    }
  }
  out += alphabet[bits << (6 - have) & 63];  // 128 bits leave 2
  return out;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != 22) return std::nullopt;
  Uuid id;
  std::uint32_t bits = 0;
  int have = 0;
  std::size_t at = 0;
  for (char c : text) {
    std::size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have >= 8 && at < id.bytes.size()) {
      have -= 8;
      id.bytes[at++] = static_cast<std::byte>(bits >> have & 255);
    }
  }
  return id;
}

std::string to_hex(Bytes bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += digits[static_cast<unsigned>(b) >> 4];
    out += digits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

}  // namespace base
