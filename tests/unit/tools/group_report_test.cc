#include "tools/group_report.h"

#include <catch2/catch.hpp>

#include "tools/failure.h"
#include "tools/group_client.h"
#include "tools/mirror_report.h"

namespace {

using tools::ResetTo;

tools::GroupPartitionRow partition_row(std::optional<base::Offset> committed,
                                       std::optional<base::Offset> start,
                                       std::optional<base::Offset> end) {
  tools::GroupPartitionRow row;
  row.topic = "t";
  row.partition = 3;
  if (committed) row.committed = tools::CommittedRow{"t", 3, *committed, 4, "meta"};
  row.log_start = start;
  row.log_end = end;
  return row;
}

tools::GroupDetails group_details() {
  tools::GroupDetails group;
  group.group = "g";
  group.coordinator = "h:1";
  group.state = "Stable";
  group.type = "classic";
  group.protocol = "range";
  group.members.push_back({"m-1", std::nullopt, "client", "/10.0.0.1", {{"t", 3}}});
  return group;
}

}  // namespace

TEST_CASE("a group's lag counts only records that are there", "[tools]") {
  CHECK(partition_row(5, 0, 9).lag() == 4);
  CHECK(partition_row(5, 7, 9).lag() == 2);  // C18
  CHECK(partition_row(12, 0, 9).lag() == 0);
  CHECK_FALSE(partition_row(std::nullopt, 0, 9).lag());
  CHECK_FALSE(partition_row(5, std::nullopt, std::nullopt).lag());
}

TEST_CASE("a group as text and as JSON", "[tools]") {
  auto row = partition_row(5, 0, 9);
  row.member = "m-1";
  const std::string text = tools::group_text(group_details(), {row});
  CHECK(text.starts_with("Group g, Stable, 1 member(s), coordinator h:1\nMEMBER "));
  CHECK(text.find("t                                        3          5               9"
                  "               4          m-1\n") != std::string::npos);
  CHECK(tools::group_json(group_details(), {row, partition_row({}, {}, {})}) ==
        R"({"group":"g","state":"Stable","type":"classic","assignor":"range","coordinator":"h:1",)"
        R"("epoch":null,"assignmentEpoch":null,)"
        R"("members":[{"member":"m-1","instance":null,"clientId":"client","host":"/10.0.0.1",)"
        R"("type":null,"epoch":null,"partitions":[{"topic":"t","partition":3}],"target":null}],)"
        R"("offsets":[)"
        R"({"topic":"t","partition":3,"committedOffset":5,"leaderEpoch":4,"metadata":"meta",)"
        R"("logStartOffset":0,"logEndOffset":9,"lag":4,"member":"m-1"},)"
        R"({"topic":"t","partition":3,"committedOffset":null,"leaderEpoch":null,"metadata":null,)"
        R"("logStartOffset":null,"logEndOffset":null,"lag":null,"member":null}]})"
        "\n");
  CHECK(tools::group_list_text({}) == "No groups found\n");
  CHECK(tools::group_list_json({{"g", "consumer", "", ""}}) ==
        R"([{"group":"g","state":null,"type":null,"protocolType":"consumer"}])"
        "\n");
}

TEST_CASE("a group of the consumer protocol as text and as JSON", "[tools]") {
  protocol::ConsumerGroupDescribeResponse::Group told;
  told.group_state = "Reconciling";
  told.group_epoch = 7;
  told.assignment_epoch = 6;
  told.assignor_name = "uniform";
  auto& modern = told.members.emplace_back();
  modern.member_id = "m-1";
  modern.instance_id = "i";
  modern.client_id = "client";
  modern.client_host = "/10.0.0.1";
  modern.member_epoch = 5;
  modern.member_type = 1;
  modern.assignment.topic_partitions.push_back({{}, "u", {0}});
  modern.assignment.topic_partitions.push_back({{}, "t", {3, 1}});
  modern.target_assignment.topic_partitions.push_back({{}, "t", {3}});
  auto& classic = told.members.emplace_back();
  classic.member_id = "m-2";
  classic.member_epoch = 6;
  classic.member_type = 0;
  tools::GroupDetails group;
  group.group = "g";
  group.coordinator = "h:1";
  group.type = "consumer";
  tools::take_details(told, group);
  using Places = std::vector<tools::GroupPlace>;
  CHECK(group.members.at(0).partitions == Places{{"t", 1}, {"t", 3}, {"u", 0}});

  const std::string text = tools::group_text(group, {});
  CHECK(
      text.starts_with("Group g, Reconciling, 2 member(s), coordinator h:1, epoch 7, assignment "
                       "of epoch 6\nMEMBER "));
  CHECK(text.find("/10.0.0.1          consumer   5          3 to 1\n") != std::string::npos);
  CHECK(text.find("classic    6          0\n") != std::string::npos);
  CHECK(tools::group_json(group, {}) ==
        R"({"group":"g","state":"Reconciling","type":"consumer","assignor":"uniform",)"
        R"("coordinator":"h:1","epoch":7,"assignmentEpoch":6,"members":[)"
        R"({"member":"m-1","instance":"i","clientId":"client","host":"/10.0.0.1",)"
        R"("type":"consumer","epoch":5,"partitions":[{"topic":"t","partition":1},)"
        R"({"topic":"t","partition":3},{"topic":"u","partition":0}],)"
        R"("target":[{"topic":"t","partition":3}]},)"
        R"({"member":"m-2","instance":null,"clientId":"","host":"","type":"classic","epoch":6,)"
        R"("partitions":[],"target":[]}],"offsets":[]})"
        "\n");

  // Version 0 does not say which protocol a member speaks.
  told.members[0].member_type = -1;
  tools::GroupDetails older;
  tools::take_details(told, older);
  CHECK(older.members.at(0).type.empty());
}

TEST_CASE("a classic group as a broker tells it", "[tools]") {
  protocol::DescribeGroupsResponse::Group told;
  told.group_state = "Stable";
  told.protocol_type = "connect";
  told.protocol_data = "sessioned";
  told.members.emplace_back().member_id = "m-1";
  tools::GroupDetails group;
  tools::take_details(told, group);
  CHECK(group.protocol == "sessioned");
  CHECK_FALSE(group.epoch);
  CHECK_FALSE(group.members.at(0).target);
  CHECK(group.members.at(0).partitions.empty());
}

TEST_CASE("which partitions a reset means", "[tools]") {
  CHECK(tools::parse_scope("orders").partitions.empty());
  const auto scope = tools::parse_scope("orders:0,12");
  CHECK(scope.topic == "orders");
  CHECK(scope.partitions == std::vector<std::int32_t>{0, 12});
  for (const char* bad : {"", ":1", "t:", "t:1,", "t:x", "t:-1", "t:1x"})
    CHECK_THROWS_AS(tools::parse_scope(bad), tools::Failure);
}

TEST_CASE("times", "[tools]") {
  CHECK(tools::parse_datetime("1700000000123") == 1700000000123);
  CHECK(tools::parse_datetime("1970-01-01T00:00:01") == 1000);
  CHECK(tools::parse_datetime("2023-11-14T22:13:20Z") == 1700000000000);
  CHECK(tools::parse_datetime("2023-11-14T23:13:20.5+01:00") == 1700000000500);
  CHECK(tools::parse_datetime("2023-11-14T16:43:20.123456-0530") == 1700000000123);
  for (const char* bad : {"", "today", "2023-11-14", "2023-02-30T00:00:00", "2023-11-14T25:00:00",
                          "2023-11-14T22:13:20x", "2023-11-14T22:13:20.", "-5"})
    CHECK_THROWS_AS(tools::parse_datetime(bad), tools::Failure);
}

TEST_CASE("where a reset puts a partition", "[tools]") {
  const auto to = [](ResetTo how, std::int64_t value, std::optional<base::Offset> before = 50) {
    return tools::plan_reset("t", 0, how, value, before, 10, 100);
  };
  CHECK(to(ResetTo::earliest, 0)->after == 10);
  CHECK(to(ResetTo::latest, 0)->after == 100);
  CHECK(to(ResetTo::offset, 60)->after == 60);
  CHECK_FALSE(to(ResetTo::offset, 60)->moved_into_log);
  CHECK(to(ResetTo::offset, 5)->after == 10);
  CHECK(to(ResetTo::offset, 5)->moved_into_log);
  CHECK(to(ResetTo::offset, 500)->after == 100);
  CHECK(to(ResetTo::datetime, 70)->after == 70);
  CHECK(to(ResetTo::shift, -20)->after == 30);
  CHECK(to(ResetTo::shift, 20)->before == 50);
  CHECK(to(ResetTo::shift, -200)->after == 10);
  CHECK(to(ResetTo::shift, INT64_MAX)->after == 100);
  CHECK(to(ResetTo::shift, INT64_MIN, 0)->after == 10);
  CHECK_FALSE(to(ResetTo::shift, 1, std::nullopt));
  CHECK(to(ResetTo::latest, 0, std::nullopt)->after == 100);
  CHECK(tools::reset_json("g", {*to(ResetTo::offset, 60)}, true) ==
        R"({"group":"g","executed":true,"offsets":[)"
        R"({"topic":"t","partition":0,"before":50,"after":60}]})"
        "\n");
  CHECK(tools::reset_text({}) == "Nothing to reset\n");
}

TEST_CASE("assignments of classic members, whole and damaged", "[tools]") {
  base::Buffer bytes;
  for (const int byte :
       {0, 1, 0, 0, 0, 1, 0, 1, int{'t'}, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 2, 255, 255, 255, 255})
    bytes.push_back(static_cast<std::byte>(byte));
  using Places = std::vector<std::pair<std::string, std::int32_t>>;
  CHECK(tools::assigned_partitions(bytes) == Places{{"t", 2}, {"t", 7}});
  for (std::size_t n = 0; n + 4 < bytes.size(); ++n)
    CHECK(tools::assigned_partitions(base::Bytes(bytes).first(n)).empty());
}

TEST_CASE("the groups of a mirror", "[tools]") {
  protocol::DescribeClusterMirrorsResponse response;
  response.mirrors.resize(1);
  response.mirrors[0].mirror_name = "m";
  auto& group = response.mirrors[0].groups.emplace_back();
  group.group_id = "g";
  group.offset_count = 3;
  group.clamped_count = 1;
  group.behind = 20;
  group.synced_ms = 1700000000000;
  const auto rows = tools::groups_of(response);
  CHECK(tools::mirror_groups_text(rows).find("3          1          20         "
                                             "2023-11-14T22:13:20Z -\n") != std::string::npos);
  CHECK(tools::mirror_groups_json(rows) ==
        R"([{"mirror":"m","group":"g","offsets":3,"clamped":1,"behind":20,)"
        R"("syncedMs":1700000000000,"errorMessage":null}])"
        "\n");
  CHECK(tools::mirror_groups_text({}) == "No consumer groups found\n");
}
