#include "tools/json.h"

#include <fmt/format.h>

#include <cmath>

namespace tools {

namespace {

// Length of the well-formed UTF-8 character at the front, 0 if there is none: no overlong forms,
// no surrogates, nothing above U+10FFFF.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char c = byte(0);
  if (c < 0x80) return 1;
  const std::size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if (c < 0xc2 || c > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
      (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
    return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      result += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      result += {'\\', text[0]};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04x}", c);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + '"';
}

void Json::separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

Json& Json::open(char c) {
  separate();
  text_ += c;
  first_ = true;
  return *this;
}

Json& Json::close(char c) {
  text_ += c;
  first_ = false;
  return *this;
}

Json& Json::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  text_ += json_string(name);
  text_ += ':';
  first_ = true;
  return *this;
}

Json& Json::value(std::string_view text) {
  return raw(json_string(text));
}

Json& Json::value(bool flag) {
  return raw(flag ? "true" : "false");
}

Json& Json::value(double number) {
  return std::isfinite(number) ? raw(fmt::format("{:.3f}", number)) : null();
}

}  // namespace tools
