// The vectors that Kafka's own classes wrote (tests/oracle/MessageVectors.java), and every message
// of ours as functions, so that a test can take each vector to the decoder that it is meant for.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/bytes.h"

namespace message_vectors {

struct Vector {
  std::int16_t key;
  std::string type;  // request, response, request-header, response-header
  std::int16_t version;
  std::string variant;  // default, full, null, edge, unknown
  base::Buffer bytes;
  std::string name() const;  // for messages of a failed test
};
struct KafkaError {
  std::int16_t code;
  std::string name;
  bool retriable;
};
struct Vectors {
  std::vector<Vector> messages;
  std::vector<KafkaError> errors;
};
// Reads the committed file once; ends the process if it cannot be read.
const Vectors& all();

// What a decoder makes of bytes that anybody may have sent.
enum class Verdict {
  refused,
  same,        // taken, and written again to these very bytes
  equivalent,  // taken, and written in another form of the same
  broken,      // taken, but what we wrote from it is refused or means something else
};

struct Codec {
  std::string_view name;  // FetchRequest
  std::int16_t key;       // of a record: its type
  std::string_view type;  // request, response, key, value
  std::int16_t min_version, max_version;
  // The bytes that encode() makes of what decode() found; nothing if decode() refused.
  std::optional<base::Buffer> (*recode)(base::Bytes in, std::int16_t version);
  bool (*accepts)(base::Bytes in, std::int16_t version);  // decode() and nothing else
  Verdict (*judge)(base::Bytes in, std::int16_t version);
  base::Buffer (*encode_default)(std::int16_t version);
};
std::span<const Codec> codecs();
// Null if there is no such message. `type` is request or response.
const Codec* find_codec(std::int16_t api_key, std::string_view type);

}  // namespace message_vectors
