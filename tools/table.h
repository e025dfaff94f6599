// Left-justified columns of fixed width, as KIP-1279's command line prints them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Column {
  std::string_view title;
  std::size_t width = 0;  // 0: the last column, never cut
};

// Texts that are too long are cut on the left, where names of one system are alike: `...tail`.
std::string cut_left(std::string_view text, std::size_t width);
// `head...`, for sentences.
std::string cut_right(std::string_view text, std::size_t width);

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  std::string header() const;
  // One cell for each column; empty ones show as "-".
  std::string row(const std::vector<std::string>& cells) const;

 private:
  std::vector<Column> columns_;
};

// "-" for absent.
template <class T>
std::string cell(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "-";
}

// "1.5 GiB", "832 B".
std::string human_bytes(double bytes);
// "3 s", "4 m 05 s", "2 h 10 m".
std::string human_seconds(double seconds);

}  // namespace tools
