// KIP-1279's messages have no Kafka release to make vectors: the bytes here are put together by
// hand from the KIP's field lists.
#include <catch2/catch.hpp>

#include "protocol/messages/create_cluster_mirror.gen.h"
#include "protocol/messages/describe_cluster_mirrors.gen.h"
#include "protocol/messages/last_mirror_epochs.gen.h"
#include "protocol/messages/list_cluster_mirrors.gen.h"
#include "protocol/messages/mirror_partition_state.gen.h"
#include "protocol/messages/mirror_pid_reset.gen.h"
#include "protocol/messages/start_mirror_topics.gen.h"
#include "protocol/messages/stop_mirror_topics.gen.h"
#include "protocol/record_frame.h"

namespace {

template <class M>
std::string hex(const M& m) {
  base::Buffer out;
  protocol::Writer writer(out);
  encode(writer, M::max_version, m);
  return base::to_hex(out);
}

template <class M>
M back(const M& m) {
  base::Buffer out;
  protocol::Writer writer(out);
  encode(writer, M::max_version, m);
  M found;
  REQUIRE(decode(out, M::max_version, found));
  return found;
}

base::Uuid counting_uuid() {
  base::Uuid id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::byte>(i + 1);
  return id;
}

const std::string uuid_hex = "0102030405060708090a0b0c0d0e0f10";

}  // namespace

TEST_CASE("a record of __mirror_state: key with type, not flexible; value with version, flexible") {
  protocol::MirrorPartitionStateKey key{"dr", counting_uuid(), 5};
  const base::Buffer framed = protocol::frame_key(key);
  CHECK(base::to_hex(framed) ==
        "0001"
        "0002"
        "6472" +
            uuid_hex + "00000005");
  protocol::MirrorPartitionStateKey key_back;
  REQUIRE(protocol::unframe_key(framed, key_back));
  CHECK(key_back == key);
  CHECK(protocol::framed_type(framed) == 1);

  protocol::MirrorPartitionStateValue value;
  value.state = 8;
  value.leader_epoch = 2;
  value.state_epoch = 3;
  value.error_message = "x";
  value.retry_attempt = 1;
  value.previous_state = 3;
  const base::Buffer body = protocol::frame_value(value);
  CHECK(base::to_hex(body) ==
        "0000"
        "08"
        "00000002"
        "00000003"
        "0278"
        "0001"
        "03"
        "00");
  protocol::MirrorPartitionStateValue value_back;
  REQUIRE(protocol::unframe_value(body, value_back));
  CHECK(value_back == value);
  CHECK(hex(protocol::MirrorPartitionStateValue{}) ==
        "00"
        "ffffffff"
        "00000000"
        "00"
        "0000"
        "ff"
        "00");
}

TEST_CASE("a frame of another type or version is refused") {
  const base::Buffer framed = protocol::frame_key(protocol::LastMirrorEpochsKey{"dr", {}, 1});
  CHECK(protocol::framed_type(framed) == 0);
  protocol::MirrorPartitionStateKey key;
  CHECK_FALSE(protocol::unframe_key(framed, key));
  protocol::LastMirrorEpochsKey right;
  CHECK(protocol::unframe_key(framed, right));
  base::Buffer value = protocol::frame_value(protocol::LastMirrorEpochsValue{4, 99});
  CHECK(base::to_hex(value) ==
        "0000"
        "00000004"
        "0000000000000063"
        "00");
  protocol::LastMirrorEpochsValue found;
  CHECK(protocol::unframe_value(value, found));
  value[1] = std::byte{1};
  CHECK_FALSE(protocol::unframe_value(value, found));
  CHECK_FALSE(protocol::unframe_value(base::Bytes(value).first(1), found));
  CHECK_FALSE(protocol::framed_type(base::Bytes(value).first(1)));
}

TEST_CASE("the value of the producer-id reset") {
  CHECK(hex(protocol::MirrorPidResetValue{}) ==
        "0000"
        "00");
  CHECK(protocol::MirrorPidResetValue::record_type == 7);
}

TEST_CASE("requests of the mirror's control") {
  protocol::CreateClusterMirrorRequest create;
  create.mirror_name = "dr";
  create.config = {{"a", "b"}, {"c", std::nullopt}};
  CHECK(hex(create) ==
        "036472"
        "03"
        "0261"
        "0262"
        "00"
        "0263"
        "00"
        "00"
        "00");
  protocol::StopMirrorTopicsRequest stop;
  stop.mirror_name = "dr";
  stop.topics.emplace_back().topic_name = "t";
  CHECK(hex(stop) ==
        "036472"
        "02"
        "0274"
        "00"
        "ffffffffffffffff"
        "00");
  stop.patterns = {".*"};
  CHECK(hex(stop) ==
        "036472"
        "02"
        "0274"
        "00"
        "ffffffffffffffff"
        "01"
        "00"
        "04"
        "02"
        "032e2a");
  protocol::StartMirrorTopicsRequest start;
  start.mirror_name = "dr";
  start.topics = {{counting_uuid(), "t", 3}};
  start.exclude_patterns = {"x"};
  CHECK(hex(start) ==
        "036472"
        "02" +
            uuid_hex +
            "0274"
            "00000003"
            "00"
            "ffffffffffffffff"
            "01"
            "01"
            "03"
            "02"
            "0278");
  CHECK(back(start) == start);
  CHECK(hex(protocol::ListClusterMirrorsRequest{}) ==
        "00"
        "00"
        "00"
        "00"
        "00");
  CHECK(hex(protocol::DescribeClusterMirrorsRequest{}) ==
        "00"
        "00"
        "00"
        "00"
        "00"
        "00");
}

TEST_CASE("progress of mirrors travels in tags that others skip") {
  protocol::DescribeClusterMirrorsResponse m;
  auto& mirror = m.mirrors.emplace_back();
  mirror.mirror_name = "dr";
  mirror.error_message.reset();
  mirror.source_bootstrap = "h:1";
  mirror.source_cluster_id.reset();
  auto& topic = mirror.topics.emplace_back();
  topic.topic_name = "t";
  auto& partition = topic.partitions.emplace_back();
  partition.error_message.reset();
  partition.state_value = "MIRRORING";
  const std::string untagged =
      "00000000"
      "0000"
      "00"
      "02"
      "0000"
      "00"
      "036472"
      "04683a31"
      "00"
      "80000000"
      "02"
      "0274"
      "02"
      "00000000"
      "0a4d4952524f52494e47"
      "00"
      "0000"
      "ffffffffffffffff"
      "ffffffffffffffff"
      "ffffffff"
      "ffffffffffffffff";
  CHECK(hex(m) == untagged +
                      "00"
                      "00"
                      "00"
                      "00");

  partition.lag_bytes = 0;
  partition.writable = true;
  partition.skipped_from = 1;
  partition.skipped_to = 9;
  topic.desired_state = "STOPPED";
  mirror.source_reachable = false;
  mirror.source_error = "refused";
  mirror.lag_bytes = 12;
  CHECK(back(m) == m);
  CHECK(hex(m).starts_with(untagged + "04"
                                      "00"
                                      "08"
                                      "0000000000000000"
                                      "04"
                                      "01"
                                      "01"));
}
