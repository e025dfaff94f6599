#include "broker/properties.h"

#include <utility>

namespace broker {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\f' || c == '\r';
}

std::string_view left_trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

// An odd number of backslashes at the end joins the next line.
bool is_continued(std::string_view line) {
  std::size_t slashes = 0;
  while (slashes < line.size() && line[line.size() - 1 - slashes] == '\\') ++slashes;
  return slashes % 2 == 1;
}

char unescaped(char c) {
  switch (c) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    default:
      return c;
  }
}

Property split(std::string_view line, std::size_t number) {
  Property property;
  property.line = number;
  std::size_t at = 0;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\' && at + 1 < line.size()) {
      property.key += unescaped(line[++at]);
    } else if (c == '=' || c == ':' || is_blank(c)) {
      break;
    } else {
      property.key += c;
    }
  }
  std::string_view rest = left_trim(line.substr(at));
  if (!rest.empty() && (rest.front() == '=' || rest.front() == ':'))
    rest = left_trim(rest.substr(1));
  for (std::size_t i = 0; i < rest.size(); ++i)
    property.value += rest[i] == '\\' && i + 1 < rest.size() ? unescaped(rest[++i]) : rest[i];
  // Java keeps blanks at the end; in a hand-written file they are never meant.
  while (!property.value.empty() && is_blank(property.value.back())) property.value.pop_back();
  return property;
}

}  // namespace

std::vector<Property> parse_properties(std::string_view text) {
  std::vector<Property> found;
  std::string pending;
  std::size_t number = 0, first = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    line = left_trim(line);
    if (pending.empty()) {
      if (line.empty() || line.front() == '#' || line.front() == '!') continue;
      first = number;
    }
    const bool goes_on = is_continued(line) && !text.empty();
    if (is_continued(line)) line.remove_suffix(1);
    pending += line;
    if (goes_on) continue;
    found.push_back(split(std::exchange(pending, {}), first));
  }
  return found;
}

}  // namespace broker
