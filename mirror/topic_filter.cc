#include "mirror/topic_filter.h"

#include <fmt/format.h>
#include <re2/re2.h>

namespace mirror {
namespace {

// Bounds what one pattern may cost, whoever sends it.
constexpr std::int64_t pattern_memory_bytes_max = 8 << 20;

re2::RE2::Options options() {
  re2::RE2::Options out;
  out.set_log_errors(false);
  out.set_max_mem(pattern_memory_bytes_max);
  return out;
}

}  // namespace

struct PatternList::Compiled {
  explicit Compiled(const std::string& pattern) : regex(pattern, options()) {}
  re2::RE2 regex;
};

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const std::size_t first = item.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    item = item.substr(first, item.find_last_not_of(" \t") - first + 1);
    items.emplace_back(item);
  }
  return items;
}

std::string join_list(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

std::string quote_name(std::string_view name) {
  return re2::RE2::QuoteMeta(re2::StringPiece(name.data(), name.size()));
}

PatternList::PatternList(const std::vector<std::string>& patterns) {
  std::string joined;
  for (const std::string& pattern : patterns) {
    const Compiled one(pattern);  // alone, so that the sentence can name it
    if (!one.regex.ok()) {
      problem_ = fmt::format("'{}' is no regular expression (RE2): {}", pattern, one.regex.error());
      return;
    }
    joined += (joined.empty() ? "(?:" : "|(?:") + pattern + ")";
  }
  if (joined.empty()) return;
  auto all = std::make_shared<const Compiled>(joined);
  if (all->regex.ok())
    compiled_ = std::move(all);
  else
    problem_ = fmt::format("the patterns together are too large: {}", all->regex.error());
}

bool PatternList::matches(std::string_view name) const {
  return compiled_ &&
         re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), compiled_->regex);
}

}  // namespace mirror
