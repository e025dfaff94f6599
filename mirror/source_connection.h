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
    send_.clear();
    append(request, version);
    CO_TRY_VOID(co_await send(extra_wait));
    CO_TRY(const base::Bytes body, co_await receive(Request::api_key, version, correlation_id_));
    if (decode(body, version, response)) co_return boost::system::in_place_value;
    co_return fail(SourceErrc::malformed);
  }

  // Sends the requests one behind the other, so that all of them take one round trip, and gives
  // their responses to `take(index, response)` in order. For some hundred small requests: the peer
  // reads the next one when it has answered the last.
  template <class Response, class Request, class Take>
  boost::asio::awaitable<base::Result<void>> call_all(const std::vector<Request>& requests,
                                                      std::int16_t version, Take take) {
    std::vector<std::int32_t> correlations;
    send_.clear();
    for (const Request& request : requests) {
      append(request, version);
      correlations.push_back(correlation_id_);
    }
    if (requests.empty()) co_return boost::system::in_place_value;
    CO_TRY_VOID(co_await send(std::chrono::milliseconds::zero()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const bool last = i + 1 == requests.size();
      CO_TRY(const base::Bytes body,
             co_await receive(Request::api_key, version, correlations[i], !last));
      Response response;
      if (!decode(body, version, response)) co_return fail(SourceErrc::malformed);
      take(i, std::move(response));
    }
    co_return boost::system::in_place_value;
  }

  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  class Deadline;

  // Puts a message behind what is in send_.
  template <class Request>
  void append(const Request& request, std::int16_t version) {
    const std::size_t at = send_.size();
    begin(Request::api_key, version);
    protocol::Writer writer(send_);
    encode(writer, version, request);
    end(at);
  }
  void begin(protocol::ApiKey key, std::int16_t version);
  void end(std::size_t at);
  base::Error fail(base::Error error);
  boost::asio::awaitable<base::Result<void>> send(std::chrono::milliseconds extra_wait);
  // The body of the next response; `more`: others may follow it at once.
  boost::asio::awaitable<base::Result<base::Bytes>> receive(protocol::ApiKey key,
                                                            std::int16_t version,
                                                            std::int32_t correlation,
                                                            bool more = false);
  boost::asio::awaitable<base::Result<std::size_t>> receive_frame(bool more);
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
