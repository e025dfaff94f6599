// A small Kafka client for one command at a time: one connection, one request in flight, versions
// negotiated with the broker. Every failure is a Failure with a sentence that says what to do.
#pragma once
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/api_table.h"
#include "protocol/wire.h"
#include "tools/address.h"
#include "tools/failure.h"
#include "tools/socket.h"

namespace tools {

class Client {
 public:
  // The first of the addresses that answers. `option` is what gives another address, for the
  // sentence of the Failure(unreachable).
  Client(const std::vector<Address>& addresses, std::string option);

  const Address& address() const { return address_; }

  // The highest version that both sides speak, at most `version_max`. Failure(failed) if none.
  template <class Request>
  std::int16_t version(std::int16_t version_max = Request::max_version) const {
    return negotiate(Request::api_key, Request::min_version,
                     std::min(version_max, Request::max_version));
  }
  bool serves(protocol::ApiKey key, std::int16_t version) const;

  // Sends and waits for the answer. What the answer borrows lives until the next call.
  template <class Response, class Request>
  Response call(const Request& request, std::int16_t version_max = Request::max_version) {
    const std::int16_t v = version<Request>(version_max);
    return call_version<Response>(request, v);
  }
  // Without asking whether the broker serves that version: for what ApiVersions does not list.
  template <class Response, class Request>
  Response call_version(const Request& request, std::int16_t v) {
    base::Buffer body;
    protocol::Writer writer(body);
    begin(writer, Request::api_key, v);
    encode(writer, v, request);
    const base::Bytes answer = transact(body, Request::api_key, v);
    Response response;
    if (!decode(answer, v, response)) undecodable(Request::api_key, v);
    return response;
  }

  static constexpr std::chrono::seconds connect_timeout{10};
  static constexpr std::chrono::seconds request_timeout{30};
  static constexpr std::uint32_t answer_bytes_max = 256u << 20;

 private:
  struct Range {
    std::int16_t min = 0, max = -1;
  };

  void connect(const std::vector<Address>& addresses);
  void ask_versions();
  std::int16_t negotiate(protocol::ApiKey key, std::int16_t min, std::int16_t max) const;
  // Size and header; the body follows.
  void begin(protocol::Writer& writer, protocol::ApiKey key, std::int16_t version);
  // Sends the request and gives the answer's body.
  base::Bytes transact(base::Buffer& request, protocol::ApiKey key, std::int16_t version);
  [[noreturn]] void lost(const std::string& reason) const;
  [[noreturn]] void undecodable(protocol::ApiKey key, std::int16_t version) const;

  std::string option_;
  Address address_;
  std::optional<Socket> socket_;
  std::map<std::int16_t, Range> versions_;
  std::int32_t correlation_ = 0;
  base::Buffer answer_;
};

// "UNKNOWN_TOPIC_OR_PARTITION", and the message that came with it if there is one.
std::string error_text(std::int16_t code, const std::optional<std::string>& message = {});

}  // namespace tools
