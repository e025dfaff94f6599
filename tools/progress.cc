#include "tools/progress.h"

#include <fmt/format.h>

#include <ostream>

#include "tools/table.h"

namespace tools {

namespace {

double seconds_between(const ProgressSample& a, const ProgressSample& b) {
  return std::chrono::duration<double>(b.at - a.at).count();
}

}  // namespace

std::string Progress::line() const {
  const ProgressSample& now = samples_.back();
  const ProgressSample& then = samples_.front();
  std::string text = fmt::format("{} of {} partitions {}", now.done, now.partitions, aim_);
  if (now.failed > 0) text += fmt::format(", {} FAILED", now.failed);
  if (now.bytes) text += fmt::format(", {} copied", human_bytes(static_cast<double>(*now.bytes)));
  const double seconds = seconds_between(then, now);
  if (now.bytes && then.bytes && *now.bytes >= *then.bytes && seconds > 0) {
    const auto copied = static_cast<double>(*now.bytes - *then.bytes);
    text += fmt::format(", {:.1f} MB/s", copied / 1e6 / seconds);
  }
  if (now.lag) text += fmt::format(", lag {} records", *now.lag);
  // The lag shrinks by what is copied less what the source got meanwhile, which is what counts.
  if (now.lag && then.lag && *now.lag > 0 && *then.lag > *now.lag && seconds > 0) {
    const double per_second = static_cast<double>(*then.lag - *now.lag) / seconds;
    text +=
        fmt::format(", about {} left", human_seconds(static_cast<double>(*now.lag) / per_second));
  }
  return text;
}

void Progress::show(const ProgressSample& sample) {
  samples_.push_back(sample);
  while (samples_.size() > 2 && samples_.back().at - samples_[1].at >= rate_window)
    samples_.pop_front();
  if (output_.terminal) {
    const std::string text = line();
    output_.err << '\r' << text;
    // Blanks over what is left of a longer line before.
    if (width_ > text.size()) output_.err << std::string(width_ - text.size(), ' ');
    output_.err << std::flush;
    width_ = text.size();
  } else if (!printed_ || sample.at - *printed_ >= plain_interval) {
    output_.err << line() << std::endl;
    printed_ = sample.at;
  }
}

void Progress::finish() {
  if (output_.terminal && width_ > 0) output_.err << '\n' << std::flush;
  width_ = 0;
}

}  // namespace tools
