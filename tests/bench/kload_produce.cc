// Closed loop: each producer keeps so many requests under way, all of the same bytes.
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <deque>
#include <memory>
#include <numeric>

#include "protocol/batch_builder.h"
#include "protocol/messages/produce.gen.h"
#include "tests/bench/kload_link.h"

namespace kload {
namespace {

using protocol::ProduceRequest;
using protocol::ProduceResponse;

base::Buffer produce_frame(const Target& target, const Options& options, int partition,
                           base::Bytes batch) {
  ProduceRequest request;
  request.acks = static_cast<std::int16_t>(options.acks);
  request.timeout_ms = 30'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = target.topic;
  auto& data = topic.partition_data.emplace_back();
  data.index = partition;
  data.records.null = false;
  data.records.bytes = batch;
  return frame(produce_version, request);
}

void check_produced(base::Bytes answer) {
  ProduceResponse response;
  if (!decode(body_of(answer, protocol::ApiKey::produce, produce_version), produce_version,
              response) ||
      response.responses.size() != 1 || response.responses[0].partition_responses.size() != 1)
    die("an answer to Produce that cannot be read");
  const auto& one = response.responses[0].partition_responses[0];
  if (one.error_code != 0) die(fmt::format("Produce: error {}", one.error_code));
}

struct Producer {
  std::unique_ptr<Link> link;
  std::deque<Clock::time_point> sent;
  std::size_t next = 0;  // partition
};

double ms_since(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

protocol::Codec codec_named(const std::string& name) {
  for (const auto codec : {protocol::Codec::none, protocol::Codec::gzip, protocol::Codec::snappy,
                           protocol::Codec::lz4, protocol::Codec::zstd})
    if (protocol::name(codec) == name) return codec;
  die("no codec " + name);
}

}  // namespace

base::Buffer make_batch(const Options& options) {
  protocol::BatchOptions batch;
  batch.codec = codec_named(options.codec);
  protocol::BatchBuilder builder(batch);
  constexpr std::int64_t since_1970_ms = 1'700'000'000'000;
  std::uint32_t state = 1;
  for (int i = 0; i < options.records; ++i) {
    base::Buffer value(static_cast<std::size_t>(options.record_bytes));
    for (std::size_t at = 0; at < value.size(); ++at) {
      // One byte in three is new.
      if (at % 3 == 0) state = state * 1664525u + 1013904223u;
      value[at] = at % 3 == 0 ? static_cast<std::byte>(state >> 24) : std::byte{'a'};
    }
    builder.add(since_1970_ms + i, std::nullopt, base::Bytes(value));
  }
  return std::move(builder).build();
}

void produce(const Target& target, const Options& options) {
  const base::Buffer batch = make_batch(options);
  std::vector<base::Buffer> frames;
  for (int p = 0; p < options.partitions; ++p)
    frames.push_back(produce_frame(target, options, p, batch));
  const auto before = log_ends(target, options.partitions);
  std::vector<Producer> producers(static_cast<std::size_t>(options.producers));
  std::vector<pollfd> polled;
  for (std::size_t i = 0; i < producers.size(); ++i) {
    producers[i].link = std::make_unique<Link>(target);
    producers[i].next = i % frames.size();
    polled.push_back({producers[i].link->descriptor(), POLLIN, 0});
  }
  const auto bytes_max = static_cast<std::uint64_t>(options.gb_max * 1e9);
  std::vector<float> latencies;
  std::uint64_t batches = 0, under_way = 0;
  const auto began = Clock::now();
  const auto end = began + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options.seconds));
  const auto send_one = [&](Producer& producer) {
    producer.sent.push_back(Clock::now());
    producer.link->send(frames[producer.next]);
    producer.next = (producer.next + 1) % frames.size();
    ++under_way;
  };
  for (Producer& producer : producers)
    for (int i = 0; i < options.in_flight; ++i) send_one(producer);
  while (under_way > 0) {
    if (poll(polled.data(), polled.size(), 30'000) <= 0) die("no answer in 30 s");
    for (std::size_t i = 0; i < producers.size(); ++i) {
      if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      Producer& producer = producers[i];
      check_produced(producer.link->receive());
      latencies.push_back(static_cast<float>(ms_since(producer.sent.front())));
      producer.sent.pop_front();
      --under_way;
      ++batches;
      if (Clock::now() < end && (batches + under_way) * batch.size() < bytes_max)
        send_one(producer);
    }
  }
  const double seconds = ms_since(began) / 1000;
  const auto after = log_ends(target, options.partitions);
  const std::int64_t stored = std::accumulate(after.begin(), after.end(), std::int64_t{0}) -
                              std::accumulate(before.begin(), before.end(), std::int64_t{0});
  if (stored != static_cast<std::int64_t>(batches) * options.records)
    die(fmt::format("{} records were acknowledged and {} are stored", batches * 1, stored));
  const double gb = static_cast<double>(batches) * static_cast<double>(batch.size()) / 1e9;
  fmt::print(R"({{"seconds": {:.3f}, "gb": {:.6f}, "batches": {}, "records": {}, {}}})"
             "\n",
             seconds, gb, batches, stored, percentiles(latencies));
}

}  // namespace kload
