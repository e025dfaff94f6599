// What a request handler gets and gives. A handler is one function in broker/api/<name>.cc,
// declared in broker/api/handlers.h and listed with the version range that it serves in
// dispatch.cc.
//
// It runs on the shard of the connection. The connection waits for it before it begins with the
// next request; the request's bytes stay where they are until it has given its response. An API
// whose requests come in numbers may have a second one, which takes several at once.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/api_table.h"
#include "protocol/base/bytes.h"
#include "protocol/header.h"
#include "protocol/wire.h"
#include "storage/log.h"

namespace broker {

class Broker;
class Shard;

struct ConnectionInfo {
  std::string listener;  // name, e.g. PLAINTEXT
  std::string peer;      // address:port
  // Who it is for quotas: nobody proves it on a plain connection.
  std::string user = "ANONYMOUS";
  // As told by ApiVersions v3 and above; empty until then.
  std::string software_name;
  std::string software_version;
};

struct Request {
  protocol::RequestHeader header;
  // Borrowed from the connection's own buffer, which nobody else reads: Produce patches record
  // batches in it.
  base::MutableBytes body;
  ConnectionInfo& connection;
  // The most that a quota allows an answer to Fetch to hold.
  std::int32_t fetch_bytes_max = std::numeric_limits<std::int32_t>::max();

  std::int16_t version() const { return header.api_version; }
};

template <class T>
using Task = boost::asio::awaitable<T>;

struct Response {
  // Set: what the request asked for is done but for waiting, and this waits and gives the response,
  // and those to all requests that were handled with it; all else is then unset. Produce requests
  // that follow on the connection may be begun meanwhile, answers keep their order. It may not
  // refer to the requests' bytes.
  std::function<Task<std::vector<Response>>()> later = {};
  base::Buffer bytes;  // header and body, without the four bytes of the size
  // File regions that belong into `bytes`, in the order of `splices`.
  std::vector<storage::FileSlice> slices;
  std::vector<protocol::Writer::Splice> splices;
  // Where in `bytes` throttle_time_ms stands, for whom it concerns (quotas.h).
  std::optional<std::size_t> throttle_time_at = {};
  bool none = false;   // nothing is sent (Produce with acks=0)
  bool close = false;  // the connection ends, after the bytes (if any) were sent

  std::uint64_t size_bytes() const {
    std::uint64_t total = bytes.size();
    for (const storage::FileSlice& slice : slices) total += slice.size;
    return total;
  }
};

using Handler = Task<Response> (*)(Broker&, Shard&, Request);
// Handles requests of one API that a connection sent one behind the other. Gives their responses,
// in order, up to the first that ends the connection; or a single one with `later`.
using TogetherHandler = Task<std::vector<Response>> (*)(Broker&, Shard&, std::vector<Request>);

// The answer that closes the connection: the body did not decode. Logged by the connection.
inline Response malformed() {
  Response response;
  response.none = true;
  response.close = true;
  return response;
}

// Response header and body in the request's version. The response type knows its API.
template <class Message>
Response respond(const protocol::RequestHeader& to, const Message& message) {
  Response response;
  protocol::Writer writer(response.bytes);
  protocol::encode(writer, Message::api_key, to.api_version,
                   protocol::ResponseHeader{to.correlation_id});
  encode(writer, to.api_version, message);  // by the message's own namespace
  response.splices = writer.splices();
  response.throttle_time_at = writer.throttle_time_at();
  return response;
}

template <class Message>
Response respond(const Request& request, const Message& message) {
  return respond(request.header, message);
}

// decode_request<protocol::FetchRequest>(request): nothing if the body is malformed.
template <class Message>
std::optional<Message> decode_request(const Request& request) {
  std::optional<Message> message(std::in_place);
  if (!decode(request.body, request.version(), *message)) message.reset();
  return message;
}

}  // namespace broker
