// The words of a transcript: "log end=10 epoch=3" and what they stand for. Bad transcripts throw.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mirror/machine.h"

namespace scenario {

// A line taken apart: the first word, bare words, and key=value pairs.
struct Line {
  std::string command;
  std::vector<std::string> words;
  std::map<std::string, std::string> values;

  explicit Line(const std::string& text);
  bool has(const std::string& word) const;
  std::int64_t number(const std::string& key, std::int64_t otherwise) const;
  std::optional<mirror::LeaderEpoch> epoch(
      const std::string& key) const;  // "-" and missing: absent
  std::optional<mirror::Position> position(const std::string& key) const;  // "3:100", "-:0"
};

// The event that the line stands for, as an outcome of the state's current ticket.
mirror::Event parse_event(const Line& line, const mirror::State& state);
// "set ule=on trim=fail attempts=3": changes the settings.
void apply_settings(const Line& line, mirror::Settings& settings);

}  // namespace scenario
