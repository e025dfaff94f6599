// What stands before each request and response. Which form it has follows from the API and its
// version: flexible versions add tagged fields. Two exceptions: the client id keeps its old prefix
// (so that any broker can read it), and the answer to ApiVersions never has tagged fields (its
// reader does not know yet what the broker speaks).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/api_table.h"
#include "protocol/wire.h"

namespace protocol {

struct RequestHeader {
  std::int16_t api_key = 0;  // as it came: it may be unknown
  std::int16_t api_version = 0;
  std::int32_t correlation_id = 0;
  std::optional<std::string> client_id;
  bool operator==(const RequestHeader&) const = default;
};

// Splits a request (without its size prefix) into header and body; false: malformed. Of an unknown
// API, whose header form cannot be known, only the fields above are read and the rest is the body.
bool decode(base::Bytes in, RequestHeader& out, base::Bytes& body);
// Requires an API that find_api() knows, in a version that it has.
void encode(Writer& out, const RequestHeader& m);

struct ResponseHeader {
  std::int32_t correlation_id = 0;
  bool operator==(const ResponseHeader&) const = default;
};

// `key` and `version` are those of the request. The version may be beyond what we know: an answer
// to ApiVersions is readable all the same.
bool decode(base::Bytes in, ApiKey key, std::int16_t version, ResponseHeader& out,
            base::Bytes& body);
void encode(Writer& out, ApiKey key, std::int16_t version, const ResponseHeader& m);

}  // namespace protocol
