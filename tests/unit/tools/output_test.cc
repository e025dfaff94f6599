#include <catch2/catch.hpp>
#include <sstream>

#include "tools/json.h"
#include "tools/progress.h"
#include "tools/record_text.h"
#include "tools/sample.h"
#include "tools/table.h"
#include "tools/topic_commands.h"
#include "tools/verify.h"

using namespace std::chrono_literals;

TEST_CASE("JSON is escaped and nested right", "[tools]") {
  tools::Json json;
  json.begin_array()
      .begin_object()
      .field("a", 1)
      .field("b", std::string("x\"y\\\n\x01"))
      .field("c", true)
      .field("d", std::optional<std::string>())
      .key("e")
      .begin_array()
      .value(1)
      .value(2)
      .end_array()
      .key("f")
      .begin_object()
      .end_object()
      .end_object()
      .begin_object()
      .end_object()
      .end_array();
  CHECK(json.text() == R"([{"a":1,"b":"x\"y\\\n\u0001","c":true,"d":null,"e":[1,2],"f":{}},{}])");
}

TEST_CASE("bytes that are no UTF-8 are replaced", "[tools]") {
  CHECK(tools::json_string("gr\xc3\xbc\xc3\x9f") == "\"gr\xc3\xbc\xc3\x9f\"");
  CHECK(tools::json_string("\xff") == "\"\\ufffd\"");
  CHECK(tools::json_string("a\xc3") == "\"a\\ufffd\"");
  for (const char* bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"})
    CHECK_FALSE(tools::is_utf8(bad));
  CHECK(tools::is_utf8("\xf0\x9f\x90\x8e"));
}

TEST_CASE("bytes are shown as text where they are text", "[tools]") {
  CHECK(tools::bytes_text(std::nullopt) == "null");
  CHECK(tools::bytes_text(base::as_bytes("")) == "\"\"");
  CHECK(tools::bytes_text(base::as_bytes("a\nb")) == "\"a\\nb\"");
  CHECK(tools::bytes_text(base::as_bytes(std::string_view("\0\x01", 2))) == "hex:0001");
  CHECK(tools::bytes_text(base::as_bytes("\xff\xfe")) == "hex:fffe");
}

TEST_CASE("tables cut on the left and never run columns together", "[tools]") {
  const tools::Table table({{"NAME", 8}, {"N", 3}, {"REST", 0}});
  CHECK(table.header() == "NAME     N   REST\n");
  CHECK(table.row({"a-long-name", "12", "x"}) == "...-name 12  x\n");
  CHECK(table.row({"12345678", "123", ""}) == "12345678 123 -\n");
  CHECK(tools::cut_left("abcdef", 3) == "def");
  CHECK(tools::cut_right("abcdef", 5) == "ab...");
  CHECK(tools::cut_right("abcde", 5) == "abcde");
}

TEST_CASE("sizes and times for people", "[tools]") {
  CHECK(tools::human_bytes(0) == "0 B");
  CHECK(tools::human_bytes(1023) == "1023 B");
  CHECK(tools::human_bytes(1536) == "1.5 KiB");
  CHECK(tools::human_bytes(5.0 * (1ull << 40) * 1024) == "5120.0 TiB");
  CHECK(tools::human_seconds(0.2) == "1 s");
  CHECK(tools::human_seconds(245) == "4 m 05 s");
  CHECK(tools::human_seconds(7800) == "2 h 10 m");
}

TEST_CASE("progress tells rate and time left", "[tools]") {
  std::ostringstream out, err;
  tools::Output output{out, err, false};
  tools::Progress progress(output, "mirroring with lag 0");
  const std::chrono::steady_clock::time_point t0{};
  progress.show({t0, 4, 0, 0, 0, 3000});
  progress.show({t0 + 1s, 4, 1, 1, 2'000'000, 2000});
  CHECK(progress.line() ==
        "1 of 4 partitions mirroring with lag 0, 1 FAILED, 1.9 MiB copied, 2.0 MB/s, lag 2000 "
        "records, about 2 s left");
  // Not on a terminal: one line in five seconds at most.
  CHECK(err.str() == "0 of 4 partitions mirroring with lag 0, 0 B copied, lag 3000 records\n");
  progress.show({t0 + 6s, 4, 4, 0, 6'000'000, 0});
  CHECK(std::ranges::count(err.str(), '\n') == 2);
  CHECK(
      err.str().ends_with("4 of 4 partitions mirroring with lag 0, 5.7 MiB copied, 1.0 MB/s, lag "
                          "0 records\n"));
  CHECK(out.str().empty());
}

TEST_CASE("unknown lag and bytes are not shown as 0", "[tools]") {
  std::ostringstream out, err;
  tools::Output output{out, err, true};
  tools::Progress progress(output, "writable");
  progress.show({{}, 1234, 1000, 0, {}, {}});
  progress.show({std::chrono::steady_clock::time_point{} + 1s, 3, 3, 0, {}, {}});
  progress.finish();
  // The shorter line wipes what the longer one left.
  CHECK(err.str() == "\r1000 of 1234 partitions writable\r3 of 3 partitions writable      \n");
}

TEST_CASE("sample records depend on their number and size alone", "[tools]") {
  CHECK(tools::sample_key(1003) == "key-0003");
  CHECK(tools::sample_value(7, 40) == tools::sample_value(7, 40));
  CHECK(tools::sample_value(7, 40) != tools::sample_value(8, 40));
  CHECK(tools::sample_value(7, 40).size() == 40);
  CHECK(tools::sample_value(7, 3).size() == 3);
  CHECK(tools::sample_value(7, 60).starts_with(tools::sample_value(7, 40)));
  CHECK(tools::sample_value(7, 40).starts_with("record 0000000007 "));
}

TEST_CASE("verdicts of verify", "[tools]") {
  tools::PartitionVerdict same;
  same.topic = "t";
  same.start_offset = 0;
  same.end_offset = 10;
  same.batches = 2;
  same.bytes = 2048;
  same.hash = 0xabc;
  tools::PartitionVerdict other = same;
  other.partition = 1;
  other.difference = "log end is 10 at the source and 9 in the copy";
  other.difference_offset = 9;
  const std::string text = tools::verdict_text({same, other});
  CHECK(text.find("0000000000000abc identical\n") != std::string::npos);
  CHECK(text.find("DIFFERENT: log end is 10") != std::string::npos);
  CHECK(text.ends_with("1 of 2 partitions identical, 4.0 KiB compared\n"));
  CHECK(tools::verdict_json({same}) ==
        R"([{"topic":"t","partition":0,"startOffset":0,"endOffset":10,"batches":2,"bytes":2048,)"
        R"("epochs":0,"hash":"0000000000000abc","identical":true,"difference":null,)"
        R"("differenceOffset":null}])"
        "\n");
}

TEST_CASE("a topic's description", "[tools]") {
  tools::TopicPartitionRow row;
  row.leader = 1;
  row.leader_epoch = 3;
  row.start_offset = 0;
  tools::TopicPartitionRow mirrored = row;
  mirrored.partition = 1;
  mirrored.end_offset = 7;
  mirrored.mirror = "m";
  mirrored.mirror_state = "MIRRORING";
  const std::string text = tools::topic_text("t", "id", {row, mirrored});
  CHECK(text.starts_with("Topic t, id id, 2 partition(s)\nPARTITION  LEADER"));
  CHECK(text.find("0          1        3             0               -               -") !=
        std::string::npos);
  CHECK(tools::topic_json("t", "", {mirrored}) ==
        R"({"topic":"t","topicId":null,"partitions":[{"partition":1,"leader":1,"leaderEpoch":3,)"
        R"("startOffset":0,"endOffset":7,"mirror":"m","mirrorState":"MIRRORING"}]})"
        "\n");
}
