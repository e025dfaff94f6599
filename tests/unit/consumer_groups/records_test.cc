// Records against the bytes that Kafka 4.4.0's own GroupCoordinatorRecordSerde reads, and writes
// anew without a difference.
#include <catch2/catch.hpp>

#include "broker/groups/consumer/records.h"
#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;

TEST_CASE("records are the bytes that Kafka's classes read and write") {
  const base::Uuid id = topic_uuid(7);
  Member m;
  m.id = "m";
  m.client_id = "c";
  m.client_host = "/h";
  m.topics = {"t"};
  m.epoch = 3;
  m.previous_epoch = 2;
  m.assigned = {{id, {{0, 2}, {1, 3}}}};
  m.revoking = {{id, {{2, 1}}}};
  m.state = MemberState::unrevoked_partitions;
  Member k = m;
  k.id = "k";
  k.instance_id = "i";
  k.rack_id = "r";
  k.assignor = "range";
  k.regex = "x.*";
  k.classic = ClassicSide{5, {{"range", base::to_buffer(base::as_bytes("zz"))}}};
  const std::vector<broker::groups::Record> records = {
      member_record("g", m),
      member_record("g", k),
      epoch_record("g", 4, 99),
      epoch_record("g", 4, 0),
      target_record("g", "m", {{id, {0, 1}}}),
      assignment_epoch_record("g", 4, 77),
      assignment_epoch_record("g", 4, 0),
      current_record("g", m),
      regex_record("g", "x.*", {{"xa", "xb"}, 5, 6})};
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"000500016700016d", "000000000263032f6802027401ffffffff0001000100"},
      {"000500016700016b",
       "0000026902720263032f6802027404782e2affffffff0672616e67650100110100000005"
       "020672616e6765037a7a0000"},
      {"0003000167", "0000000000040100080000000000000063"},
      {"0003000167", "00000000000400"},
      {"000700016700016d", "000002000000000000000000000000000000070300000000000000010000"},
      {"0006000167", "000000000004010008000000000000004d"},
      {"0006000167", "00000000000400"},
      {"000800016700016d",
       "000000000003000000020102000000000000000000000000000000070300000000000000"
       "010100090300000002000000030200000000000000000000000000000007020000000201"
       "0005020000000100"},
      {"00100001670003782e2a", "0000030378610378620000000000000005000000000000000600"},
  };
  REQUIRE(records.size() == expected.size());
  ConsumerGroup group("g");
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(base::to_hex(records[i].key) == expected[i].first);
    CHECK(base::to_hex(*records[i].value) == expected[i].second);
    CHECK(group_of(records[i].key) == "g");
    CHECK(apply(group, records[i]) == Applied::done);
  }
  CHECK(*group.find("m") == m);
  CHECK_FALSE(group.find("m")->classic);
  CHECK(group.find("k")->classic == k.classic);
}
