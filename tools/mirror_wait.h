// `--wait` of the mirror commands.
#pragma once
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "protocol/messages/describe_cluster_mirrors.gen.h"
#include "tools/arguments.h"
#include "tools/client.h"
#include "tools/mirror_report.h"

namespace tools {

struct Wait {
  std::string mirror;
  std::set<std::string> topics;  // empty: all that the mirror has
  Aim aim = Aim::caught_up;
  std::chrono::seconds timeout{0};
};

// State and offsets of one mirror, or of all when the name is empty. Failure when there is no such
// mirror. `groups`: also the consumer groups.
protocol::DescribeClusterMirrorsResponse describe_mirrors(Client& client, const std::string& mirror,
                                                          bool groups = false);

// What a poll shows: whether everything is where it should be, and whether it can get there.
struct WaitView {
  std::size_t partitions = 0, done = 0, failed = 0;
  std::optional<std::uint64_t> bytes;
  std::optional<std::int64_t> lag;
  std::optional<std::string> hopeless;  // a partition that will not get there by itself, and why
  std::optional<std::string> hint;      // why nothing moves
};
WaitView view_of(const protocol::DescribeClusterMirrorsResponse& response, const Wait& wait);

// Polls until the aim is reached. Failure(timed_out), Failure(failed) when a partition cannot get
// there by itself, Failure(interrupted) after Ctrl-C; the mirror goes on in all cases. A broker
// that is away for a while is waited for.
void wait_for_mirror(const std::vector<Address>& bootstrap, const Wait& wait, Output& output);

}  // namespace tools
