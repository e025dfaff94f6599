// Reads whole partitions and checks them; and an open loop from producer to consumer.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "protocol/batch.h"
#include "protocol/batch_builder.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/produce.gen.h"
#include "protocol/record.h"
#include "tests/bench/kload_link.h"

namespace kload {
namespace {

struct Position {
  std::int32_t partition = 0;
  std::int64_t offset = 0, end = 0;
};

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

// Hands on each batch, and moves the position behind it.
template <class F>
void walk_fetched(base::Bytes answer, std::vector<Position>& positions, F each) {
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

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

base::Buffer timed_frame(const Target& target, const Options& options, int records,
                         std::int64_t intended_ns) {
  protocol::BatchBuilder builder({});
  base::Buffer value(static_cast<std::size_t>(options.record_bytes));
  std::memcpy(value.data(), &intended_ns, sizeof intended_ns);
  for (int i = 0; i < records; ++i)
    builder.add(1'700'000'000'000, std::nullopt, base::Bytes(value));
  const base::Buffer batch = std::move(builder).build();
  protocol::ProduceRequest request;
  request.acks = static_cast<std::int16_t>(options.acks);
  request.timeout_ms = 30'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = target.topic;
  auto& data = topic.partition_data.emplace_back();
  data.records.null = false;
  data.records.bytes = batch;
  return frame(produce_version, request);
}

// Sends what is due each millisecond, whether or not earlier requests were answered.
std::int64_t open_loop(const Target& target, const Options& options) {
  prctl(PR_SET_TIMERSLACK, 1);  // else the kernel adds 50 us of its own to each wait
  const int ticks_a_second = std::min(options.rate, 1000);
  const int records = std::max(1, options.rate / ticks_a_second);
  Link link(target);
  const auto began = Clock::now();
  const auto ticks = static_cast<std::int64_t>(options.seconds * ticks_a_second);
  std::thread answers([&link, ticks] {
    for (std::int64_t i = 0; i < ticks; ++i) (void)link.receive();
  });
  for (std::int64_t i = 0; i < ticks; ++i) {
    const auto due = began + std::chrono::nanoseconds(1'000'000'000 / ticks_a_second * i);
    std::this_thread::sleep_until(due);
    link.send(timed_frame(
        target, options, records,
        std::chrono::duration_cast<std::chrono::nanoseconds>(due.time_since_epoch()).count()));
  }
  answers.join();
  return ticks * records;
}

}  // namespace

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

void latency(const Target& target, const Options& options) {
  std::vector<Position> positions{{0, log_ends(target, 1)[0], INT64_MAX}};
  const std::int64_t first = positions[0].offset;
  std::vector<float> latencies;
  std::atomic<std::int64_t> wanted = INT64_MAX;
  std::thread consumer([&] {
    Link link(target);
    while (positions[0].offset - first < wanted) {
      link.send(fetch_frame(target, positions, 500));
      const auto each = [&](const protocol::BatchInfo& info, base::Bytes batch) {
        // The value of the first record: after length, attributes, two deltas, null key, length.
        std::int64_t intended = 0;
        const std::size_t value = batch.size() - static_cast<std::size_t>(options.record_bytes) - 1;
        std::memcpy(&intended, batch.data() + value, sizeof intended);
        const auto ms = static_cast<float>(static_cast<double>(now_ns() - intended) / 1e6);
        for (int i = 0; i < info.record_count.value_or(0); ++i) latencies.push_back(ms);
      };
      walk_fetched(link.receive(), positions, each);
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  wanted = open_loop(target, options);
  consumer.join();
  if (static_cast<std::int64_t>(latencies.size()) != wanted) die("records are missing");
  fmt::print(R"({{"records": {}, {}}})"
             "\n",
             latencies.size(), percentiles(latencies));
}

}  // namespace kload
