// A connection of the load generator: blocking TCP, requests with their bytes made beforehand.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/api_table.h"
#include "protocol/base/bytes.h"

namespace kload {

using Clock = std::chrono::steady_clock;

constexpr std::size_t prefix_bytes = 4;  // the size before each request and answer

// Says what is wrong and ends the program: a figure without all its answers is void.
[[noreturn]] void die(const std::string& text);

struct Target {
  std::string host;
  std::uint16_t port = 0;
  std::string topic;
};

class Link {
 public:
  explicit Link(const Target& target);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int descriptor() const { return descriptor_; }
  void send(base::Bytes bytes);
  // The next answer, header and all, without its size. Borrowed until the next call.
  base::Bytes receive();
  // The same if it is there already, and nothing until then. Not to be mixed with receive().
  std::optional<base::Bytes> try_receive();

 private:
  int descriptor_ = -1;
  std::size_t have_ = 0;  // of the answer that try_receive() waits for, with its size
  base::Buffer buffer_;
};

constexpr std::int16_t produce_version = 9, fetch_version = 12, list_offsets_version = 6;

// A request with size and header; the correlation id stands at byte 8.
template <class Request>
base::Buffer frame(std::int16_t version, const Request& request);

// The body of an answer to `key`.
base::Bytes body_of(base::Bytes answer, protocol::ApiKey key, std::int16_t version);

// The log end of each partition.
std::vector<std::int64_t> log_ends(const Target& target, int partitions);

// "p50", "p99" and so on of `ms`, which is sorted, as members of a JSON object.
std::string percentiles(std::vector<float>& ms);

struct Options {
  int partitions = 1, producers = 1, in_flight = 5, records = 1, record_bytes = 100, acks = 1;
  std::string codec = "none";
  double seconds = 5, gb_max = 2;
  int rate = 1000;  // records a second
  // Of groups.
  std::string group = "bench", protocol = "classic";
  int members = 4, beat_ms = 3000, commit_ms = 5000;
};

void produce(const Target& target, const Options& options);
void fetch(const Target& target, const Options& options);
void latency(const Target& target, const Options& options);
void echo(const Target& target, const Options& options);
// Prints its port, then serves one link after the other until it is killed.
[[noreturn]] void serve_echo();
void groups(const Target& target, const Options& options);

// Records of a pattern that compresses about as a line of JSON does, or 3 to 1.
base::Buffer make_batch(const Options& options);

}  // namespace kload

#include "protocol/header.h"

namespace kload {

template <class Request>
base::Buffer frame(std::int16_t version, const Request& request) {
  base::Buffer out(4);
  protocol::Writer writer(out);
  encode(writer, protocol::RequestHeader{.api_key = static_cast<std::int16_t>(Request::api_key),
                                         .api_version = version,
                                         .correlation_id = 1,
                                         .client_id = "kload"});
  encode(writer, version, request);
  const auto size = static_cast<std::uint32_t>(out.size() - 4);
  for (int i = 0; i < 4; ++i)
    out[static_cast<std::size_t>(i)] = static_cast<std::byte>(size >> (24 - 8 * i));
  return out;
}

}  // namespace kload
