// Our encoder and decoder against the bytes that Kafka's own classes write.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "protocol/api_table.h"
#include "protocol/error_code.h"
#include "protocol/header.h"
#include "tests/golden/message_vectors.h"

using message_vectors::Vector;

namespace {

std::string hex(const std::optional<base::Buffer>& bytes) {
  return bytes ? base::to_hex(*bytes) : "refused";
}

bool is_header(const Vector& v) {
  return v.type.ends_with("-header");
}

// The bytes that belong to the same message without tagged fields that nobody knows.
const Vector& full_variant(const Vector& of) {
  for (const Vector& v : message_vectors::all().messages) {
    if (std::tie(v.key, v.type, v.version) == std::tie(of.key, of.type, of.version) &&
        v.variant == "full") {
      return v;
    }
  }
  throw std::runtime_error("no full variant of " + of.name());
}

}  // namespace

TEST_CASE("each message of Kafka's is read, and written to the same bytes") {
  for (const Vector& v : message_vectors::all().messages) {
    if (is_header(v)) continue;
    CAPTURE(v.name());
    const auto* codec = message_vectors::find_codec(v.key, v.type);
    REQUIRE(codec != nullptr);
    const Vector& wanted = v.variant == "unknown" ? full_variant(v) : v;
    CHECK(hex(codec->recode(v.bytes, v.version)) == hex(wanted.bytes));
  }
}

TEST_CASE("a message as it is made equals Kafka's") {
  for (const Vector& v : message_vectors::all().messages) {
    if (v.variant != "default") continue;
    CAPTURE(v.name());
    const auto* codec = message_vectors::find_codec(v.key, v.type);
    REQUIRE(codec != nullptr);
    CHECK(hex(codec->encode_default(v.version)) == hex(v.bytes));
  }
}

TEST_CASE("there are vectors of each version of each API that is Kafka's") {
  std::map<std::tuple<std::int16_t, std::string, std::int16_t>, std::set<std::string>> variants;
  for (const Vector& v : message_vectors::all().messages) {
    variants[{v.key, v.type, v.version}].insert(v.variant);
  }
  int apis = 0;
  for (const protocol::ApiInfo& api : protocol::all_apis()) {
    const auto key = static_cast<std::int16_t>(api.key);
    if (key >= protocol::mirror_api_key_offset) continue;
    ++apis;
    for (std::int16_t version = api.min_version; version <= api.max_version; ++version) {
      CAPTURE(api.name, version);
      std::set<std::string> wanted = {"default", "edge", "full", "null"};
      if (api.is_flexible(version)) wanted.insert("unknown");
      CHECK(variants[{key, "request", version}] == wanted);
      CHECK(variants[{key, "response", version}] == wanted);
      CHECK(variants[{key, "request-header", version}].contains("full"));
      CHECK(variants[{key, "response-header", version}].contains("full"));
    }
  }
  CHECK(apis == 50);
}

TEST_CASE("headers are read and written as Kafka does") {
  int seen = 0;
  for (const Vector& v : message_vectors::all().messages) {
    if (!is_header(v)) continue;
    CAPTURE(v.name());
    ++seen;
    base::Buffer in = v.bytes, out;
    in.push_back(std::byte{0x7f});  // the body
    base::Bytes body;
    protocol::Writer writer(out);
    const auto key = static_cast<protocol::ApiKey>(v.key);
    if (v.type == "request-header") {
      protocol::RequestHeader header;
      REQUIRE(decode(in, header, body));
      CHECK(header.api_key == v.key);
      CHECK(header.api_version == v.version);
      CHECK(header.correlation_id == 0x01020304);
      CHECK(header.client_id.value_or("null") == (v.variant == "full" ? "client-ä" : "null"));
      if (v.variant == "unknown") continue;
      encode(writer, header);
    } else {
      protocol::ResponseHeader header;
      REQUIRE(decode(in, key, v.version, header, body));
      CHECK(header.correlation_id == -5);
      if (v.variant == "unknown") continue;
      encode(writer, key, v.version, header);
    }
    CHECK(base::to_hex(body) == "7f");
    CHECK(base::to_hex(out) == base::to_hex(v.bytes));
  }
  CHECK(seen > 300);
}

TEST_CASE("error codes have Kafka's numbers, names and meaning") {
  for (const message_vectors::KafkaError& e : message_vectors::all().errors) {
    CAPTURE(e.code);
    const auto code = static_cast<protocol::ErrorCode>(e.code);
    CHECK(protocol::error_name(code) == e.name);
    CHECK(protocol::is_retriable(code) == e.retriable);
  }
  CHECK(message_vectors::all().errors.size() == 138);
}
