#include "broker/dispatch.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <string>

#include "protocol/api_table.h"

namespace broker {
namespace {

struct Range {
  std::int16_t min, max;
};

// What Kafka 4.4.0 says of each API in ApiVersions, by key (tests/oracle/check_api_versions.py).
std::map<std::int16_t, Range> kafka_ranges() {
  std::map<std::int16_t, Range> ranges;
  std::ifstream table(KAFKA_API_VERSIONS);
  std::int16_t key = 0;
  std::string name;
  for (Range range{}; table >> key >> name >> range.min >> range.max;) ranges[key] = range;
  return ranges;
}

}  // namespace

TEST_CASE("what is served is advertised in exactly Kafka 4.4's versions") {
  const auto kafka = kafka_ranges();
  REQUIRE(kafka.size() > 70);
  std::size_t advertised = 0;
  for (const Served& one : served_apis()) {
    const auto key = static_cast<std::int16_t>(one.key);
    INFO("key " << key);
    if (!one.advertised) {
      CHECK(key >= protocol::mirror_api_key_offset);
      continue;
    }
    ++advertised;
    REQUIRE(kafka.contains(key));
    const protocol::ApiInfo& api = *protocol::find_api(one.key);
    CHECK(api.advertised_min == kafka.at(key).min);
    CHECK(api.advertised_max == kafka.at(key).max);
  }
  CHECK(advertised > 25);
}

TEST_CASE("nothing is advertised that is not served") {
  for (const Served& one : served_apis()) {
    const auto key = static_cast<std::int16_t>(one.key);
    const protocol::ApiInfo& api = *protocol::find_api(one.key);
    for (std::int16_t version = api.advertised_min; version <= api.advertised_max; ++version) {
      INFO("key " << key << " version " << version);
      // Kafka lists Produce from 0 and refuses what is below 3 (A02).
      const bool for_show = one.key == protocol::ApiKey::produce && version < 3;
      CHECK((find_handler(key, version) == one.handle) == !for_show);
    }
  }
}

TEST_CASE("handlers are found for served versions only, and always for ApiVersions") {
  CHECK(find_handler(0, 3) != nullptr);
  CHECK(find_handler(0, 13) != nullptr);
  CHECK(find_handler(0, 2) == nullptr);  // advertised, refused (A02)
  CHECK(find_handler(0, 14) == nullptr);
  CHECK(find_handler(1, 3) == nullptr);
  CHECK(find_handler(17, 0) == nullptr);  // a schema is there, a handler is not
  CHECK(find_handler(18, 0) != nullptr);
  CHECK(find_handler(18, 127) != nullptr);
  CHECK(find_handler(-1, 0) == nullptr);
  CHECK(find_handler(94, 0) == nullptr);
  CHECK(find_handler(1094, 0) != nullptr);
}

}  // namespace broker
