// Reads whole partitions and checks them.
#include "tests/bench/kload_fetch.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/messages/fetch.gen.h"

namespace kload {

base::Buffer fetch_frame(const Target& target, const std::vector<Position>& positions,
                         std::int32_t max_wait_ms) {
  protocol::FetchRequest request;
  request.max_wait_ms = max_wait_ms;
  request.min_bytes = 1;
  request.max_bytes = 50 << 20;
  request.session_epoch = -1;
  auto& topic = request.topics.emplace_back();
  topic.topic = target.topic;
  for (const Position& position : positions) {
    if (position.offset >= position.end) continue;
    auto& one = topic.partitions.emplace_back();
    one.partition = position.partition;
    one.fetch_offset = position.offset;
    one.partition_max_bytes = 1 << 20;
  }
  return frame(fetch_version, request);
}

void walk_fetched(base::Bytes answer, std::vector<Position>& positions,
                  const std::function<void(const protocol::BatchInfo&, base::Bytes batch)>& each) {
  protocol::FetchResponse response;
  if (!decode(body_of(answer, protocol::ApiKey::fetch, fetch_version), fetch_version, response) ||
      response.error_code != 0)
    die("an answer to Fetch that cannot be read");
  for (const auto& topic : response.responses)
    for (const auto& one : topic.partitions) {
      if (one.error_code != 0) die(fmt::format("Fetch: error {}", one.error_code));
      if (one.records.null) continue;
      Position& position = positions.at(static_cast<std::size_t>(one.partition_index));
      protocol::BatchIterator it(one.records.bytes, protocol::CrcCheck::yes);
      while (it.next()) {
        if (it.info().base_offset > position.offset) die("offsets are not contiguous");
        position.offset = it.info().next_offset();
        each(it.info(), it.batch());
      }
      if (it.stopped() && it.stopped() != protocol::BatchErrc::incomplete) die("a damaged batch");
    }
}

void fetch(const Target& target, const Options& options) {
  std::vector<Position> positions;
  for (const std::int64_t end : log_ends(target, options.partitions))
    positions.push_back({static_cast<std::int32_t>(positions.size()), 0, end});
  Link link(target);
  std::uint64_t bytes = 0, batches = 0;
  const auto began = Clock::now();
  const auto unread = [](const Position& p) { return p.offset < p.end; };
  while (std::ranges::any_of(positions, unread)) {
    link.send(fetch_frame(target, positions, 500));
    walk_fetched(link.receive(), positions, [&](const protocol::BatchInfo& info, base::Bytes) {
      bytes += info.size_bytes;
      ++batches;
    });
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  fmt::print(R"({{"seconds": {:.3f}, "gb": {:.6f}, "batches": {}}})"
             "\n",
             seconds, static_cast<double>(bytes) / 1e9, batches);
}

}  // namespace kload
