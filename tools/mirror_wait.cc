#include "tools/mirror_wait.h"

#include <fmt/format.h>

#include <ostream>

#include "tools/interrupt.h"
#include "tools/progress.h"

namespace tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int poll_interval_ms = 500;
// A mirror finds its topics one after the other, so what is complete now may not be all: the same
// partitions must be complete this many times in a row.
constexpr int settled_polls = 3;
// How long a broker may be away while we wait, say for its restart.
constexpr std::chrono::seconds absence_max{60};

bool is_meant(const Wait& wait, const PartitionRow& row) {
  if (!wait.topics.empty()) return wait.topics.contains(row.topic);
  // Of a whole mirror those topics count whose desired state is the one that is waited for.
  switch (wait.aim) {
    case Aim::writable:
      return row.desired_state == "STOPPED";
    case Aim::paused:
      return row.desired_state == "PAUSED";
    default:
      return row.desired_state == "MIRRORING";
  }
}

std::string describe_hint(const Wait& wait) {
  return fmt::format("'calque mirror describe {}' shows how far it is", wait.mirror);
}

// Keeps a connection while the broker is there.
class Poller {
 public:
  Poller(const std::vector<Address>& bootstrap, const std::string& mirror)
      : bootstrap_(bootstrap), mirror_(mirror) {}

  std::optional<protocol::DescribeClusterMirrorsResponse> poll() {
    try {
      if (!client_) client_.emplace(bootstrap_, "bootstrap-server");
      auto response = describe_mirrors(*client_, mirror_);
      absent_since_.reset();
      return response;
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::unreachable) throw;
      client_.reset();
      if (!absent_since_) absent_since_ = Clock::now();
      if (Clock::now() - *absent_since_ > absence_max) throw;
      return std::nullopt;
    }
  }

 private:
  const std::vector<Address>& bootstrap_;
  const std::string& mirror_;
  std::optional<Client> client_;
  std::optional<Clock::time_point> absent_since_;
};

void wait_in_loop(const std::vector<Address>& bootstrap, const Wait& wait, Output& output,
                  Progress& progress) {
  const auto deadline = Clock::now() + wait.timeout;
  Poller poller(bootstrap, wait.mirror);
  int settled = 0;
  std::size_t partitions_before = 0;
  std::optional<std::string> hint_shown;
  while (true) {
    if (const auto response = poller.poll()) {
      const WaitView view = view_of(*response, wait);
      progress.show({Clock::now(), view.partitions, view.done, view.failed, view.bytes, view.lag});
      if (view.hint && view.hint != hint_shown) {
        progress.finish();
        output.err << *view.hint << std::endl;
        hint_shown = view.hint;
      }
      const bool complete = view.partitions > 0 && view.done == view.partitions;
      settled = complete && view.partitions == partitions_before ? settled + 1 : complete ? 1 : 0;
      partitions_before = view.partitions;
      // Named topics are all there is to wait for.
      if (complete && (settled >= settled_polls || !wait.topics.empty())) return;
      if (view.hopeless) throw Failure(ExitCode::failed, *view.hopeless);
    } else {
      settled = 0;
    }
    if (Clock::now() >= deadline)
      throw Failure(ExitCode::timed_out,
                    fmt::format("not all partitions are {} after {} s; the mirror goes on, and {}",
                                aim_text(wait.aim), wait.timeout.count(), describe_hint(wait)));
    sleep_ms(poll_interval_ms);
    check_interrupted();
  }
}

}  // namespace

protocol::DescribeClusterMirrorsResponse describe_mirrors(Client& client, const std::string& mirror,
                                                          bool groups) {
  protocol::DescribeClusterMirrorsRequest request;
  if (!mirror.empty()) request.mirror_names = std::vector{mirror};
  request.include_mirror_state = true;
  request.include_mirror_offset = true;
  request.include_groups = groups;
  auto response = client.call_version<protocol::DescribeClusterMirrorsResponse>(request, 0);
  if (response.error_code != 0)
    throw Failure(ExitCode::failed, error_text(response.error_code, response.error_message));
  for (const auto& found : response.mirrors)
    if (found.error_code != 0)
      throw Failure(ExitCode::failed, error_text(found.error_code, found.error_message));
  if (!mirror.empty() && response.mirrors.empty())
    throw Failure(
        ExitCode::failed,
        fmt::format("there is no mirror '{}'; 'calque mirror list' shows those that there are",
                    mirror));
  return response;
}

WaitView view_of(const protocol::DescribeClusterMirrorsResponse& response, const Wait& wait) {
  WaitView view;
  view.lag = 0;
  std::int64_t bytes = 0;
  for (const PartitionRow& row : rows_of(response)) {
    if (!is_meant(wait, row)) continue;
    ++view.partitions;
    if (row.failed()) ++view.failed;
    if (row.bytes_copied) bytes += *row.bytes_copied;
    const auto lag = row.lag();
    view.lag = view.lag && lag ? std::optional(*view.lag + *lag) : std::nullopt;
    if (reached(wait.aim, row)) {
      ++view.done;
    } else if (row.failed_for_good() && wait.aim != Aim::writable) {
      view.hopeless = fmt::format(
          "partition {} of '{}' FAILED and is not tried again by itself: {}; when the cause is "
          "gone, run 'calque mirror recover {} --topics {}'",
          row.partition, row.topic, row.error_message.value_or("no reason is known"), row.mirror,
          row.topic);
    }
  }
  if (wait.aim == Aim::caught_up || wait.aim == Aim::mirroring)
    view.bytes = static_cast<std::uint64_t>(bytes);
  else
    view.lag.reset();
  const bool wants_source = view.bytes.has_value();
  for (const auto& mirror : response.mirrors) {
    if (!wants_source || (mirror.source_reachable && !mirror.source_error)) continue;
    view.hint = fmt::format("the source {} is {}: {}", mirror.source_bootstrap.value_or(""),
                            mirror.source_reachable ? "reachable, but" : "not reached",
                            mirror.source_error.value_or("it has not answered yet"));
  }
  return view;
}

void wait_for_mirror(const std::vector<Address>& bootstrap, const Wait& wait, Output& output) {
  const CatchInterrupt guard;
  Progress progress(output, aim_text(wait.aim));
  try {
    wait_in_loop(bootstrap, wait, output, progress);
  } catch (const Failure& failure) {
    progress.finish();
    if (failure.code() != ExitCode::interrupted) throw;
    throw Failure(
        ExitCode::interrupted,
        fmt::format("stopped waiting; what was asked for goes on, and {}", describe_hint(wait)));
  }
  progress.finish();
}

}  // namespace tools
