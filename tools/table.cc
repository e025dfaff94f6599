#include "tools/table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tools {

std::string cut_left(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(text.size() - width));
  return "..." + std::string(text.substr(text.size() - (width - 3)));
}

std::string cut_right(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, width));
  return std::string(text.substr(0, width - 3)) + "...";
}

std::string Table::header() const {
  std::vector<std::string> titles;
  for (const Column& c : columns_) titles.emplace_back(c.title);
  return row(titles);
}

std::string Table::row(const std::vector<std::string>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string text = i < cells.size() && !cells[i].empty() ? cells[i] : "-";
    if (columns_[i].width == 0) {
      line += text;
    } else {
      // A blank always separates two columns.
      line += fmt::format("{:<{}} ", cut_left(text, columns_[i].width), columns_[i].width);
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string human_bytes(double bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string human_seconds(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

}  // namespace tools
