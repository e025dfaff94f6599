// One connection to one broker of a source: Kafka's framing, version negotiation, deadlines.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "mirror/source_error.h"
#include "mirror/stream.h"
#include "protocol/api_table.h"
#include "protocol/base/bytes.h"
#include "protocol/base/clock.h"
#include "protocol/wire.h"

namespace mirror {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
  std::string to_string() const;
};

struct ConnectionOptions {
  std::string client_id;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds request_timeout{30'000};
};

// Responses are read into one buffer that is used again and again: while it is small enough to stay
// in the processor's cache, reading and writing it on costs the least. A larger response makes it
// grow as its bytes arrive, not as its length claims, and afterwards it shrinks.
constexpr std::size_t receive_buffer_bytes = 1200 * 1024;
constexpr std::size_t response_bytes_max = 128 * 1024 * 1024;

// Used by one coroutine at a time, on its executor's thread. After any error it is closed and stays
// so: make another.
class SourceConnection {
 public:
  SourceConnection(boost::asio::any_io_executor executor, Endpoint endpoint,
                   ConnectionOptions options);
  ~SourceConnection();
  SourceConnection(const SourceConnection&) = delete;
  SourceConnection& operator=(const SourceConnection&) = delete;

  // Connects, asks ApiVersions, then asks for the cluster id and compares it with the expected one:
  // an address may lead to another cluster today. Nothing else is asked of a broker before that.
  boost::asio::awaitable<base::Result<void>> open(std::optional<std::string> expected_cluster_id);

  bool is_open() const { return open_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& cluster_id() const { return cluster_id_; }
  // Ends a call under way with SourceErrc::closed.
  void close();

  // The highest version that both sides have and that is at most `at_most`; absent: none, or not
  // above `at_least`.
  std::optional<std::int16_t> version_of(protocol::ApiKey key, std::int16_t at_least = 0,
                                         std::int16_t at_most = INT16_MAX) const;

  // Sends the request and decodes its response, which borrows from the receive buffer until the
  // next call. `extra_wait`: how long the broker may take on purpose (a long poll).
  template <class Request, class Response>
  boost::asio::awaitable<base::Result<void>> call(const Request& request, Response& response,
                                                  std::int16_t version,
                                                  std::chrono::milliseconds extra_wait = {}) {
    begin(Request::api_key, version);
    protocol::Writer writer(send_);
    start_message(writer, Request::api_key, version);
    encode(writer, version, request);
    CO_TRY(const base::Bytes body, co_await exchange(Request::api_key, version, extra_wait));
    if (decode(body, version, response)) co_return boost::system::in_place_value;
    co_return fail(SourceErrc::malformed);
  }

  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  class Deadline;

  void begin(protocol::ApiKey key, std::int16_t version);
  void start_message(protocol::Writer& writer, protocol::ApiKey key, std::int16_t version);
  base::Error fail(base::Error error);
  boost::asio::awaitable<base::Result<base::Bytes>> exchange(protocol::ApiKey key,
                                                             std::int16_t version,
                                                             std::chrono::milliseconds extra_wait);
  boost::asio::awaitable<base::Result<std::size_t>> receive();
  boost::asio::awaitable<base::Result<void>> negotiate();
  boost::asio::awaitable<base::Result<void>> check_cluster(std::optional<std::string> expected);

  boost::asio::any_io_executor executor_;
  Endpoint endpoint_;
  ConnectionOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Deadline> deadline_;
  bool open_ = false;
  bool closed_here_ = false;
  std::string cluster_id_;
  struct Range {
    std::int16_t low = 0, high = 0;
  };
  std::map<std::int16_t, Range> versions_;
  std::int32_t correlation_id_ = 0;
  base::Buffer send_;
  base::Buffer receive_;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace mirror
