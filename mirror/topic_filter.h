// Which names a mirror includes: KIP-1279's lists of regular expressions (j.5), RE2 dialect.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mirror {

// Splits at commas, trims, drops what is empty.
std::vector<std::string> split_list(std::string_view list);
std::string join_list(const std::vector<std::string>& items);
// The pattern that matches this name and no other.
std::string quote_name(std::string_view name);

// A list of patterns, joined by `|`, of which one must match the whole name. An empty list matches
// nothing. Copies share what was compiled.
class PatternList {
 public:
  PatternList() = default;
  explicit PatternList(const std::vector<std::string>& patterns);
  // Empty: all patterns are good. Otherwise one sentence that names the bad one.
  const std::string& problem() const { return problem_; }
  bool matches(std::string_view name) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
  std::string problem_;
};

struct TopicFilter {
  PatternList include, exclude;
  bool excludes(std::string_view name) const { return exclude.matches(name); }
  bool includes(std::string_view name) const { return include.matches(name) && !excludes(name); }
};

}  // namespace mirror
