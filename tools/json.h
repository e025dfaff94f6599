// Writes JSON, one value after the other, without a document in memory.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tools {

// Quoted and escaped. Bytes that are no UTF-8 become U+FFFD, so that the result always parses.
std::string json_string(std::string_view text);
bool is_utf8(std::string_view text);

class Json {
 public:
  Json& begin_object() { return open('{'); }
  Json& end_object() { return close('}'); }
  Json& begin_array() { return open('['); }
  Json& end_array() { return close(']'); }
  Json& key(std::string_view name);

  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(bool flag);
  Json& value(double number);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json& value(T number) {
    return raw(std::to_string(number));
  }
  Json& null() { return raw("null"); }
  template <class T>
  Json& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }

  template <class T>
  Json& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& text() const { return text_; }

 private:
  Json& open(char c);
  Json& close(char c);
  Json& raw(std::string_view text);
  void separate();

  std::string text_;
  bool first_ = true;  // no comma before the next value
};

}  // namespace tools
