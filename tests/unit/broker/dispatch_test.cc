#include "broker/dispatch.h"

#include <catch2/catch.hpp>

#include "protocol/api_table.h"

namespace broker {
namespace {

// What Apache Kafka 4.4.0 says of these in ApiVersions, asked of the running broker.
struct Range {
  std::int16_t key, min, max;
};
constexpr Range kafka_4_4[] = {
    {0, 0, 13}, {1, 4, 18}, {2, 1, 11}, {3, 0, 13}, {18, 0, 5}, {19, 2, 7}, {20, 1, 6},
    {21, 0, 2}, {22, 0, 5}, {23, 2, 4}, {32, 1, 4}, {33, 0, 2}, {34, 1, 2}, {35, 1, 5},
    {37, 0, 3}, {43, 0, 2}, {44, 0, 1}, {45, 0, 1}, {46, 0, 0}, {48, 0, 1}, {49, 0, 1},
    {55, 0, 2}, {57, 0, 2}, {60, 0, 2}, {61, 0, 0}, {74, 0, 1}, {75, 0, 0}};

}  // namespace

TEST_CASE("what is served is advertised in exactly Kafka 4.4's versions") {
  std::size_t advertised = 0;
  for (const Served& one : served_apis()) {
    if (!one.advertised) {
      CHECK(static_cast<std::int16_t>(one.key) >= protocol::mirror_api_key_offset);
      continue;
    }
    REQUIRE(advertised < std::size(kafka_4_4));
    const Range& expected = kafka_4_4[advertised++];
    const protocol::ApiInfo& api = *protocol::find_api(one.key);
    CHECK(static_cast<std::int16_t>(one.key) == expected.key);
    CHECK(api.advertised_min == expected.min);
    CHECK(api.advertised_max == expected.max);
  }
  CHECK(advertised == std::size(kafka_4_4));
}

TEST_CASE("handlers are found for served versions only, and always for ApiVersions") {
  CHECK(find_handler(0, 3) != nullptr);
  CHECK(find_handler(0, 13) != nullptr);
  CHECK(find_handler(0, 2) == nullptr);  // advertised, refused (A02)
  CHECK(find_handler(0, 14) == nullptr);
  CHECK(find_handler(1, 3) == nullptr);
  CHECK(find_handler(8, 5) == nullptr);  // a schema is there, a handler is not
  CHECK(find_handler(18, 0) != nullptr);
  CHECK(find_handler(18, 127) != nullptr);
  CHECK(find_handler(-1, 0) == nullptr);
  CHECK(find_handler(94, 0) == nullptr);
  CHECK(find_handler(1094, 0) != nullptr);
}

}  // namespace broker
