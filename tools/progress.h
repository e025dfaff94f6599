// Progress of a wait: one line that is redrawn on a terminal, else a line now and then.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "tools/arguments.h"

namespace tools {

// What is known at one moment. Absent is unknown, never 0.
struct ProgressSample {
  std::chrono::steady_clock::time_point at;
  std::size_t partitions = 0;
  std::size_t done = 0;
  std::size_t failed = 0;
  std::optional<std::uint64_t> bytes;  // copied so far
  std::optional<std::int64_t> lag;     // records still to come
};

class Progress {
 public:
  // `aim` names what partitions have to become, e.g. "mirroring with lag 0".
  Progress(Output& output, std::string aim) : output_(output), aim_(std::move(aim)) {}
  // Writes to the error stream, so that the output of --json stays clean.
  void show(const ProgressSample& sample);
  // Leaves the last line standing; to be called before anything else is printed.
  void finish();

  // The line for what was sampled so far.
  std::string line() const;

  static constexpr std::chrono::seconds plain_interval{5};
  // Rates are taken over this time.
  static constexpr std::chrono::seconds rate_window{10};

 private:
  Output& output_;
  std::string aim_;
  std::deque<ProgressSample> samples_;
  std::optional<std::chrono::steady_clock::time_point> printed_;
  std::size_t width_ = 0;  // of the line that stands on the terminal
};

}  // namespace tools
