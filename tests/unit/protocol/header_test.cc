#include "protocol/header.h"

#include <catch2/catch.hpp>
#include <limits>

#include "protocol/error_code.h"

using protocol::ApiKey;
using protocol::Writer;

namespace {

base::Buffer request(std::int16_t key, std::int16_t version, std::string_view tail) {
  base::Buffer out;
  Writer writer(out);
  writer.num(key);
  writer.num(version);
  writer.num(std::int32_t{7});
  writer.text(std::string("me"));
  for (char c : tail) out.push_back(static_cast<std::byte>(c));
  return out;
}

}  // namespace

TEST_CASE("the form of a request's header follows from its API and version") {
  protocol::RequestHeader header;
  base::Bytes body;
  SECTION("not flexible: no tags") {
    const base::Buffer in = request(1, 11, "body");
    REQUIRE(decode(in, header, body));
    CHECK(base::as_text(body) == "body");
  }
  SECTION("flexible: tags, which are skipped") {
    const base::Buffer in = request(1, 12, std::string_view("\x01\x05\x02xybody", 9));
    REQUIRE(decode(in, header, body));
    CHECK(base::as_text(body) == "body");
    CHECK(header.client_id == "me");
  }
  SECTION("a version of ApiVersions that is yet to come is flexible") {
    const base::Buffer in = request(18, 99, std::string_view("\0body", 5));
    REQUIRE(decode(in, header, body));
    CHECK(header.api_version == 99);
    CHECK(base::as_text(body) == "body");
  }
  SECTION("an unknown API's tags cannot be told from its body") {
    const base::Buffer in = request(999, 5, "body");
    REQUIRE(decode(in, header, body));
    CHECK(header.api_key == 999);
    CHECK(base::as_text(body) == "body");
  }
  SECTION("negative versions and keys do no harm") {
    CHECK(decode(request(-1, -1, ""), header, body));
    CHECK(decode(request(1, -5, ""), header, body));
  }
}

TEST_CASE("each shorter header is refused") {
  protocol::RequestHeader header;
  base::Bytes body;
  const base::Buffer whole = request(1, 12, std::string_view("\0", 1));
  REQUIRE(decode(whole, header, body));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK_FALSE(decode(base::Bytes(whole).first(n), header, body));
  }
}

TEST_CASE("the answer to ApiVersions has no tags in its header") {
  for (int v : {0, 3, 5}) {
    const auto version = static_cast<std::int16_t>(v);
    base::Buffer out;
    Writer writer(out);
    encode(writer, ApiKey::api_versions, version, protocol::ResponseHeader{1});
    CHECK(out.size() == 4);
  }
  base::Buffer out;
  Writer writer(out);
  encode(writer, ApiKey::metadata, 9, protocol::ResponseHeader{1});
  CHECK(out.size() == 5);
}

TEST_CASE("the table of APIs") {
  for (const protocol::ApiInfo& api : protocol::all_apis()) {
    CHECK(protocol::find_api(api.key) == &api);
    CHECK(api.advertised_min <= api.min_version);
    CHECK(api.advertised_max == api.max_version);
  }
  CHECK(protocol::find_api(ApiKey::produce)->advertised_min == 0);
  CHECK(protocol::find_api(ApiKey::produce)->min_version == 3);
  CHECK(protocol::find_api(ApiKey::init_producer_id)->max_version == 5);
  CHECK(protocol::find_api(std::int16_t{1094})->name == "CreateClusterMirror");
  // What the number means in a released Kafka is not what KIP-1279 means by it.
  CHECK(protocol::find_api(std::int16_t{94}) == nullptr);
  CHECK(protocol::find_api(std::int16_t{-1}) == nullptr);
  CHECK(protocol::find_api(std::numeric_limits<std::int16_t>::max()) == nullptr);
  CHECK_FALSE(protocol::find_api(ApiKey::sasl_handshake)->is_flexible(1));
}

TEST_CASE("error codes that Kafka does not have") {
  using protocol::ErrorCode;
  CHECK(protocol::error_name(ErrorCode::read_only_topic) == "READ_ONLY_TOPIC");
  CHECK(static_cast<int>(ErrorCode::read_only_topic) == 1134);
  CHECK_FALSE(protocol::is_retriable(ErrorCode::read_only_topic));
  CHECK(protocol::error_name(static_cast<ErrorCode>(4711)).empty());
  CHECK(protocol::describe_error(static_cast<ErrorCode>(4711)) == "error 4711");
  CHECK(protocol::describe_error(ErrorCode::none) == "NONE");
  CHECK_FALSE(protocol::is_retriable(static_cast<ErrorCode>(-2)));
}
