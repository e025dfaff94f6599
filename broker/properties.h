// Java's properties format, as far as server.properties files use it: `key=value`, `key: value`,
// `#` and `!` comments, a backslash at the end of a line, backslash escapes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace broker {

struct Property {
  std::string key;
  std::string value;
  std::size_t line = 0;  // from 1
};

std::vector<Property> parse_properties(std::string_view text);

}  // namespace broker
