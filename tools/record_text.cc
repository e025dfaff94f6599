#include "tools/record_text.h"

#include <algorithm>

#include "tools/json.h"

namespace tools {

std::string bytes_text(std::optional<base::Bytes> bytes) {
  if (!bytes) return "null";
  const std::string_view text = base::as_text(*bytes);
  const bool printable = std::ranges::none_of(text, [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\n' && c != '\t') || u == 0x7f;
  });
  // Quoted and escaped, so that a line stays a line.
  if (printable && is_utf8(text)) return json_string(text);
  return "hex:" + base::to_hex(*bytes);
}

}  // namespace tools
