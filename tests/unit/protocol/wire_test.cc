// Reader and Writer by themselves, where a vector of Kafka's does not reach.
#include "protocol/wire.h"

#include <catch2/catch.hpp>
#include <initializer_list>

#include "protocol/messages/describe_topic_partitions.gen.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/list_groups.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/sasl_authenticate.gen.h"

using protocol::Reader;
using protocol::Writer;

namespace {

base::Buffer bytes(std::initializer_list<int> values) {
  base::Buffer out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

template <class M>
base::Buffer encoded(const M& m, std::int16_t version) {
  base::Buffer out;
  Writer writer(out);
  encode(writer, version, m);
  return out;
}

std::optional<std::uint32_t> read_uvarint(const base::Buffer& in) {
  Reader reader(in, true);
  const std::uint32_t v = reader.uvarint();
  return reader.finished() ? std::optional(v) : std::nullopt;
}

}  // namespace

TEST_CASE("uvarints have at most 32 bits in five bytes") {
  CHECK(read_uvarint(bytes({0x00})) == 0);
  CHECK(read_uvarint(bytes({0x7f})) == 127);
  CHECK(read_uvarint(bytes({0x80, 0x01})) == 128);
  CHECK(read_uvarint(bytes({0xff, 0xff, 0xff, 0xff, 0x0f})) == 0xffffffffu);
  CHECK(!read_uvarint(bytes({0xff, 0xff, 0xff, 0xff, 0x10})));
  CHECK(!read_uvarint(bytes({0x80, 0x80, 0x80, 0x80, 0x80, 0x00})));
  CHECK(!read_uvarint(bytes({0x80})));
  CHECK(!read_uvarint({}));
  for (std::uint32_t v : {0u, 1u, 127u, 128u, 16383u, 16384u, 0x7fffffffu, 0xffffffffu}) {
    base::Buffer out;
    Writer(out).uvarint(v);
    CHECK(read_uvarint(out) == v);
  }
}

TEST_CASE("a failure sticks and later reads yield zero") {
  const base::Buffer in = bytes({0, 1, 2});
  Reader reader(in, false);
  std::int32_t first = 7;
  std::int16_t second = 7;
  reader.num(first);
  reader.num(second);
  CHECK_FALSE(reader.ok());
  CHECK(first == 0);
  CHECK(second == 0);
  CHECK_FALSE(reader.finished());
}

TEST_CASE("any byte but zero is true") {
  for (int b : {1, 2, 0x80, 0xff}) {
    const base::Buffer in = bytes({b});
    bool v = false;
    Reader reader(in, false);
    reader.num(v);
    CHECK(v);
  }
}

TEST_CASE("null is refused where a version knows no null") {
  protocol::MetadataRequest m;
  CHECK_FALSE(decode(bytes({0xff, 0xff, 0xff, 0xff}), 0, m));  // all topics: null from v1 on
  CHECK(decode(bytes({0xff, 0xff, 0xff, 0xff}), 1, m));
  CHECK_FALSE(m.topics.has_value());
  // One topic with a null name: from v10 on, where its id may stand for it.
  CHECK_FALSE(decode(bytes({2, 0, 0, 1, 0, 0, 0}), 9, m));
  base::Buffer v12 = bytes({2});
  v12.resize(17, std::byte{1});
  for (int b : {0, 0, 1, 0, 0}) v12.push_back(static_cast<std::byte>(b));
  REQUIRE(decode(v12, 12, m));
  CHECK_FALSE(m.topics->at(0).name.has_value());
}

TEST_CASE("null is written as empty where a version knows no null") {
  protocol::MetadataRequest m;
  m.topics.reset();
  CHECK(base::to_hex(encoded(m, 0)) == "00000000");
  CHECK(base::to_hex(encoded(m, 1)) == "ffffffff");
  protocol::SaslAuthenticateResponse sasl;
  sasl.error_message.reset();
  CHECK(base::to_hex(encoded(sasl, 0)) == "0000ffff00000000");
}

TEST_CASE("a nullable struct has a byte before it") {
  protocol::DescribeTopicPartitionsRequest m, back;
  m.response_partition_limit = 5;
  CHECK(base::to_hex(encoded(m, 0)) == "0100000005ff00");
  m.cursor.emplace().topic_name = "t";
  m.cursor->partition_index = 3;
  const base::Buffer out = encoded(m, 0);
  CHECK(base::to_hex(out) ==
        "01000000050102740000000300"
        "00");
  REQUIRE(decode(out, 0, back));
  CHECK(back == m);
}

TEST_CASE("a string above Kafka's limit is refused, and cut at a character when written") {
  protocol::ListGroupsRequest m, back;
  m.states_filter.push_back(std::string(32765, 'a') + "äb");
  base::Buffer out = encoded(m, 4);
  REQUIRE(decode(out, 4, back));
  CHECK(back.states_filter.at(0) == std::string(32765, 'a') + "ä");
  m.states_filter[0] = std::string(32766, 'a') + "äb";
  out = encoded(m, 4);
  REQUIRE(decode(out, 4, back));
  CHECK(back.states_filter.at(0) == std::string(32766, 'a'));

  base::Buffer longer;
  Writer writer(longer);
  writer.set_flexible(true);
  writer.uvarint(2);          // one element
  writer.uvarint(32768 + 1);  // of 32768 bytes
  longer.resize(longer.size() + 32768, std::byte{'a'});
  writer.tags();
  CHECK_FALSE(decode(longer, 4, back));
}

TEST_CASE("tags must ascend and must be as long as they say") {
  protocol::FetchRequest plain, m;
  base::Buffer base_bytes = encoded(plain, 12);
  base_bytes.pop_back();  // the count of tags
  auto with = [&](std::initializer_list<int> tail) {
    base::Buffer all = base_bytes;
    for (int b : tail) all.push_back(static_cast<std::byte>(b));
    return decode(all, 12, m);
  };
  CHECK(with({0}));
  CHECK(with({1, 0, 2, 2, 'c'}));  // cluster_id "c"
  CHECK(m.cluster_id == "c");
  CHECK(with({2, 0, 2, 2, 'c', 9, 1, 0}));        // and an unknown one
  CHECK_FALSE(with({2, 9, 1, 0, 0, 2, 2, 'c'}));  // descending
  CHECK_FALSE(with({2, 0, 2, 2, 'c', 0, 2, 2, 'd'}));
  CHECK_FALSE(with({1, 0, 3, 2, 'c', 0}));  // more than the field
  CHECK_FALSE(with({1, 0, 1, 2, 'c'}));     // less than the field
  CHECK_FALSE(with({1, 0, 9, 2, 'c'}));     // more than there is
  CHECK_FALSE(with({2, 0, 2, 2, 'c'}));     // fewer than announced
  CHECK(with({0, 0}));                      // left over, which is no fault of a request
  CHECK(with({1, 1, 0}));                   // replica_state is of v15: unknown in v12
}

TEST_CASE("records that are elsewhere leave a splice") {
  protocol::FetchResponse whole, deferred, back;
  const base::Buffer first(300, std::byte{1}), second(5, std::byte{2});
  auto& partitions = whole.responses.emplace_back().partitions;
  partitions.resize(3);
  partitions[0].records.bytes = first;
  partitions[1].records.null = true;
  partitions[2].records.bytes = second;
  deferred = whole;
  deferred.responses[0].partitions[0].records = {{}, false, 300};
  deferred.responses[0].partitions[2].records = {{}, false, 5};
  for (int v : {4, 11, 12, 17}) {
    const auto version = static_cast<std::int16_t>(v);
    base::Buffer out;
    Writer writer(out);
    encode(writer, version, deferred);
    REQUIRE(writer.splices().size() == 2);
    CHECK(writer.splices()[0].size == 300);
    CHECK(writer.size() == out.size() + 305);
    base::Buffer sent = out;
    const auto at = [&](std::size_t i) {
      return sent.begin() + static_cast<std::ptrdiff_t>(writer.splices()[i].offset);
    };
    sent.insert(at(1), second.begin(), second.end());
    sent.insert(at(0), first.begin(), first.end());
    CHECK(base::to_hex(sent) == base::to_hex(encoded(whole, version)));
    REQUIRE(decode(sent, version, back));
    CHECK(back == whole);
  }
}

TEST_CASE("versions that a message does not have are refused") {
  protocol::FetchRequest m;
  const base::Buffer out = encoded(m, 4);
  CHECK(decode(out, 4, m));
  CHECK_FALSE(decode(out, 3, m));
  CHECK_FALSE(decode(out, 19, m));
  CHECK_FALSE(decode(out, -1, m));
}

TEST_CASE("bytes after a response are refused, after a request they are ignored as by Kafka") {
  protocol::MetadataRequest all;
  // What librdkafka 2.16 sends for all topics in version 13: it fills the place that it kept for
  // the count of topics with one byte of four.
  base::Buffer sent(7, std::byte{0});
  sent[4] = std::byte{1};
  REQUIRE(decode(sent, 13, all));
  CHECK_FALSE(all.topics.has_value());
  CHECK_FALSE(all.allow_auto_topic_creation);

  protocol::MetadataResponse response;
  base::Buffer longer = encoded(response, 13);
  REQUIRE(decode(longer, 13, response));
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode(longer, 13, response));
}
