// Produce end to end: error codes and what stands beside them, idempotent producers over resends,
// restarts and cuts of the log.
#include <fmt/format.h>

#include <map>
#include <thread>

#include "broker/topic_config.h"
#include "protocol/base/clock.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/messages/init_producer_id.gen.h"
#include "tests/unit/broker/requests.h"

namespace broker::test {
namespace {

void sum(base::Buffer& batch) {
  protocol::store_be(batch.data() + 17, protocol::crc32c(base::Bytes(batch).subspan(21)));
}

protocol::BatchOptions idempotent(std::int32_t sequence, base::ProducerId id = 4711,
                                  base::ProducerEpoch epoch = 0) {
  protocol::BatchOptions options;
  options.producer_id = id;
  options.producer_epoch = epoch;
  options.base_sequence = sequence;
  return options;
}

base::Buffer keyless(std::vector<std::int64_t> timestamps) {
  protocol::BatchBuilder builder({});
  for (const std::int64_t timestamp : timestamps)
    builder.add(timestamp, std::nullopt, base::as_bytes("v"));
  return std::move(builder).build();
}

base::Buffer stored(Client& client, const Topic& topic) {
  return base::to_buffer(fetch(client, fetch_request(topic, 0)).records.bytes);
}

}  // namespace

TEST_CASE("which error a bad batch gets, and whether the log start is told") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2, {{"max.message.bytes", "1000"}});
  Client client(broker.port());
  REQUIRE(produce(client, *topic, batch_of({"first"})).error_code == 0);
  const auto refused = [&](const base::Buffer& batch, ErrorCode error, base::Offset log_start) {
    const ProducedPartition answer = produce(client, *topic, batch);
    CHECK(answer.error_code == number(error));
    CHECK(answer.base_offset == -1);
    CHECK(answer.log_append_time_ms == -1);
    CHECK(answer.log_start_offset == log_start);
    CHECK(answer.record_errors.empty());
    CHECK(!answer.error_message);
  };
  base::Buffer batch = batch_of({"a"});
  batch.back() ^= std::byte{1};
  refused(batch, ErrorCode::corrupt_message, -1);
  refused(batch_of({std::string(2000, 'x')}), ErrorCode::message_too_large, -1);
  refused({}, ErrorCode::invalid_record, -1);
  ProduceRequest null = produce_request(*topic, 0, {});
  null.topic_data[0].partition_data[0].records.null = true;  // Kafka 4.4.0 never answers that
  CHECK(
      client.call<ProduceResponse>(13, null).responses.at(0).partition_responses.at(0).error_code ==
      number(ErrorCode::invalid_record));
  batch = batch_of({"a"});
  batch.insert(batch.end(), batch.begin(), batch.end());
  refused(batch, ErrorCode::invalid_record, -1);
  batch = batch_of({"a"});
  protocol::store_be(batch.data() + 57, std::int32_t{2});  // the record count
  sum(batch);
  refused(batch, ErrorCode::invalid_record, 0);
  batch = batch_of({"a"});
  protocol::store_be(batch.data(), std::int64_t{5});  // the base offset
  refused(batch, ErrorCode::invalid_record, 0);
  batch = batch_of({"a"});
  protocol::store_be(batch.data() + 21, std::int16_t{0x20});  // control
  sum(batch);
  refused(batch, ErrorCode::invalid_record, 0);
  // Nothing of all that left a trace.
  CHECK(produce(client, *topic, batch_of({"second"})).base_offset == 1);
}

TEST_CASE("refused records are named") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1);
  const TopicPtr keyed = broker.create("keyed", 1, {{"cleanup.policy", "compact"}});
  Client client(broker.port());
  const std::int64_t tomorrow = base::wall_clock_ms() + 24 * 3600 * 1000;
  for (std::int16_t version = 8; version <= 13; ++version) {
    ProducedPartition answer =
        produce(client, *topic, keyless({1000, tomorrow, 2000, tomorrow}), 0, version);
    CHECK(answer.error_code == number(ErrorCode::invalid_timestamp));
    CHECK(answer.error_message);
    CHECK(answer.log_start_offset == 0);
    REQUIRE(answer.record_errors.size() == 2);
    CHECK(answer.record_errors[0].batch_index == 1);
    CHECK(answer.record_errors[1].batch_index == 3);
    CHECK(answer.record_errors[1].batch_index_error_message->find(std::to_string(tomorrow)) !=
          std::string::npos);
    answer = produce(client, *keyed, keyless({1000, 2000}), 0, version);
    CHECK(answer.error_code == number(ErrorCode::invalid_record));
    CHECK(answer.record_errors.size() == 2);
    CHECK(answer.error_message);
  }
  CHECK(produce(client, *topic, batch_of({"a"})).base_offset == 0);
}

TEST_CASE("what is no batch at all spoils the whole request, as in Kafka") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 2);
  Client client(broker.port());
  const base::Buffer good = batch_of({"a"});
  base::Buffer alien = good;
  alien[16] = std::byte{9};
  ProduceRequest request = produce_request(*topic, 0, good);
  request.topic_data[0].partition_data.emplace_back().index = 1;
  request.topic_data[0].partition_data[1].records.bytes = alien;
  const auto answer = client.call<ProduceResponse>(13, request);
  for (const ProducedPartition& one : answer.responses.at(0).partition_responses) {
    CHECK(one.error_code == number(ErrorCode::corrupt_message));
    CHECK(one.error_message);
  }
  CHECK(produce(client, *topic, good).base_offset == 0);
}

TEST_CASE("a partition that is named twice counts once, as it is named last") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1);
  Client client(broker.port());
  const base::Buffer one = batch_of({"a"}), two = batch_of({"b", "c"});
  ProduceRequest request = produce_request(*topic, 0, one);
  request.topic_data.push_back(produce_request(*topic, 0, two).topic_data[0]);
  for (std::int16_t version : {std::int16_t{9}, std::int16_t{13}}) {
    const auto answer = client.call<ProduceResponse>(version, request);
    REQUIRE(answer.responses.size() == 1);
    REQUIRE(answer.responses[0].partition_responses.size() == 1);
    CHECK(answer.responses[0].partition_responses[0].error_code == 0);
  }
  CHECK(values_in(stored(client, *topic)) == std::vector<std::string>{"b", "c", "b", "c"});
}

TEST_CASE("unknown acks are refused, after what is worse") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1);
  Client client(broker.port());
  for (const std::int16_t acks : {std::int16_t{2}, std::int16_t{-2}, std::int16_t{100}}) {
    CHECK(produce(client, *topic, batch_of({"a"}), 0, 9, acks).error_code ==
          number(ErrorCode::invalid_required_acks));
    CHECK(produce(client, *topic, batch_of({"a"}), 7, 9, acks).error_code ==
          number(ErrorCode::unknown_topic_or_partition));
    CHECK(produce(client, *topic, {}, 0, 9, acks).error_code == number(ErrorCode::invalid_record));
  }
  CHECK(produce(client, *topic, batch_of({"a"}), 0, 9, 1).base_offset == 0);
}

TEST_CASE("topics are named by id from version 13 on") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events", 1);
  Client client(broker.port());
  Topic other = *topic;
  other.id.bytes[0] ^= std::byte{0xff};
  CHECK(produce(client, other, batch_of({"a"})).error_code == number(ErrorCode::unknown_topic_id));
  CHECK(produce(client, other, batch_of({"a"}), 0, 12).error_code == 0);
  CHECK(produce(client, *topic, batch_of({"a"}), 1).error_code ==
        number(ErrorCode::unknown_topic_or_partition));
  NewTopic internal;
  internal.name = "__internal";
  internal.internal = true;
  const auto made = broker.run([&] { return broker->catalog().create_topic(internal); });
  REQUIRE(made.has_value());
  CHECK(produce(client, **made, batch_of({"a"})).error_code ==
        number(ErrorCode::invalid_topic_exception));
}

TEST_CASE("the codec that a producer chose is on disk (A02)") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  for (const auto codec : {protocol::Codec::gzip, protocol::Codec::snappy, protocol::Codec::lz4,
                           protocol::Codec::zstd}) {
    const TopicPtr topic = broker.create(fmt::format("codec-{}", protocol::name(codec)));
    protocol::BatchOptions options;
    options.codec = codec;
    const base::Buffer batch = batch_of({std::string(1024, 'x')}, options);
    REQUIRE(produce(client, *topic, batch).error_code == 0);
    const base::Buffer found = stored(client, *topic);
    CHECK(protocol::parse_batch(found)->codec() == codec);
    CHECK(found.size() == batch.size());
  }
  const TopicPtr topic = broker.create("events");
  protocol::BatchOptions options;
  options.codec = protocol::Codec::zstd;
  CHECK(produce(client, *topic, batch_of({"a"}, options), 0, 6).error_code ==
        number(ErrorCode::unsupported_compression_type));
  CHECK(produce(client, *topic, batch_of({"a"}, options), 0, 7).error_code == 0);
}

TEST_CASE("compression.type of the topic") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  protocol::BatchOptions gzip;
  gzip.codec = protocol::Codec::gzip;
  for (const auto& [word, codec] :
       std::map<std::string, protocol::Codec>{{"gzip", protocol::Codec::gzip},
                                              {"snappy", protocol::Codec::snappy},
                                              {"lz4", protocol::Codec::lz4},
                                              {"zstd", protocol::Codec::zstd},
                                              {"uncompressed", protocol::Codec::none}}) {
    const TopicPtr topic = broker.create("to-" + word, 1, {{"compression.type", word}});
    REQUIRE(produce(client, *topic, batch_of({"plain", "one"})).base_offset == 0);
    REQUIRE(produce(client, *topic, batch_of({"gzip", "two"}, gzip)).base_offset == 2);
    const base::Buffer found = stored(client, *topic);
    protocol::BatchIterator it(found, protocol::CrcCheck::yes);
    while (it.next()) CHECK(it.info().codec() == codec);
    CHECK(values_in(found) == std::vector<std::string>{"plain", "one", "gzip", "two"});
  }
}

TEST_CASE("LogAppendTime is the broker's, a wrong largest timestamp is put right") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  const TopicPtr stamped =
      broker.create("stamped", 1, {{"message.timestamp.type", "LogAppendTime"}});
  const std::int64_t before = base::wall_clock_ms();
  const ProducedPartition answer = produce(client, *stamped, batch_of({"a", "b"}));
  CHECK(answer.log_append_time_ms >= before);
  auto info = protocol::parse_batch(stored(client, *stamped));
  CHECK(info->log_append_time());
  CHECK(info->max_timestamp == answer.log_append_time_ms);
  base::Buffer batch = batch_of({"a"});
  protocol::set_log_append_time(batch, 5);
  CHECK(produce(client, *stamped, batch).error_code == number(ErrorCode::invalid_timestamp));

  const TopicPtr topic = broker.create("events");
  batch = batch_of({"a", "b"}, {}, 1000);
  protocol::set_max_timestamp(batch, 5);
  CHECK(produce(client, *topic, batch).log_append_time_ms == -1);
  info = protocol::parse_batch(stored(client, *topic));
  CHECK(info->max_timestamp == 1001);
  CHECK(protocol::verify_crc(stored(client, *topic)).has_value());
}

TEST_CASE("bounds of timestamps (B26)") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  const std::int64_t now = base::wall_clock_ms(), hour = 3'600'000;
  const TopicPtr topic = broker.create("bounded", 1,
                                       {{"message.timestamp.before.max.ms", "7200000"},
                                        {"message.timestamp.after.max.ms", "7200000"}});
  CHECK(produce(client, *topic, keyless({now - hour, now + hour})).error_code == 0);
  for (const std::int64_t bad : {now - 3 * hour, now + 3 * hour, now + 10 * 365 * 24 * hour})
    CHECK(produce(client, *topic, keyless({now, bad})).error_code ==
          number(ErrorCode::invalid_timestamp));
}

TEST_CASE("a batch is no larger than a segment") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  const TopicPtr topic =
      broker.create("small", 1, {{"segment.bytes", "1048576"}, {"max.message.bytes", "4000000"}});
  CHECK(produce(client, *topic, batch_of({std::string(1'100'000, 'x')})).error_code ==
        number(ErrorCode::record_list_too_large));
  CHECK(produce(client, *topic, batch_of({std::string(900'000, 'x')})).error_code == 0);
}

TEST_CASE("a lowered max.message.bytes is for producers only (B21)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  const base::Buffer large = batch_of({std::string(900'000, 'x')});
  REQUIRE(produce(client, *topic, large).error_code == 0);
  const auto lowered = [](const auto&) -> std::optional<TopicConfigs> {
    return TopicConfigs{{"max.message.bytes", "1000"}};
  };
  REQUIRE(broker.run([&] { return broker->catalog().alter_topic("events", lowered); }).has_value());
  CHECK(produce(client, *topic, large).error_code == number(ErrorCode::message_too_large));
  CHECK(produce(client, *topic, batch_of({"small"})).base_offset == 1);
  FetchRequest request = fetch_request(*topic, 0);
  request.topics[0].partitions[0].partition_max_bytes = 10;
  CHECK(values_in(fetch(client, request).records.bytes).at(0).size() == 900'000);
}

TEST_CASE("a batch that is sent again after a lost answer is stored once (D01)") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  const base::Buffer batch = batch_of({"a", "b"}, idempotent(0));
  {
    Client lost(broker.port());
    REQUIRE(lost.socket().send(encode_request(9, produce_request(*topic, 0, batch))));
    lost.receive();  // written, and then the connection goes before the producer has read this
  }
  Client client(broker.port());
  const ProducedPartition again = produce(client, *topic, batch);
  CHECK(again.error_code == 0);
  CHECK(again.base_offset == 0);
  CHECK(again.log_append_time_ms == 1001);  // a duplicate tells its largest timestamp
  // The sequence is what counts, not the bytes.
  CHECK(produce(client, *topic, batch_of({"x", "y"}, idempotent(0))).base_offset == 0);
  CHECK(produce(client, *topic, batch_of({"c"}, idempotent(2))).base_offset == 2);
  CHECK(values_in(stored(client, *topic)) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("the last five batches of a producer are known, and no more") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  for (std::int32_t i = 0; i < 7; ++i)
    REQUIRE(produce(client, *topic, batch_of({"v"}, idempotent(i))).base_offset == i);
  for (std::int32_t i = 0; i < 7; ++i) {
    const ProducedPartition again = produce(client, *topic, batch_of({"v"}, idempotent(i)));
    if (i < 2)
      CHECK(again.error_code == number(ErrorCode::out_of_order_sequence_number));
    else
      CHECK(again.base_offset == i);
  }
  // Half of a batch, one and a half, a gap.
  CHECK(produce(client, *topic, batch_of({"v", "w"}, idempotent(6))).error_code ==
        number(ErrorCode::out_of_order_sequence_number));
  CHECK(produce(client, *topic, batch_of({"v"}, idempotent(8))).error_code ==
        number(ErrorCode::out_of_order_sequence_number));
  CHECK(produce(client, *topic, batch_of({"v"}, idempotent(7))).base_offset == 7);
}

TEST_CASE("producer epochs fence the older ones") {
  Directory directory;
  Running broker(directory);
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  const auto send = [&](std::int32_t sequence, base::ProducerEpoch epoch) {
    return produce(client, *topic, batch_of({"v"}, idempotent(sequence, 1, epoch)));
  };
  REQUIRE(send(0, 3).error_code == 0);
  CHECK(send(1, 2).error_code == number(ErrorCode::invalid_producer_epoch));
  CHECK(send(0, 2).error_code == number(ErrorCode::invalid_producer_epoch));
  CHECK(send(1, 4).error_code == number(ErrorCode::out_of_order_sequence_number));
  CHECK(send(0, 4).base_offset == 1);
  CHECK(send(0, 4).base_offset == 1);
  CHECK(send(0, 3).error_code == number(ErrorCode::invalid_producer_epoch));
  CHECK(send(1, 4).log_start_offset == 0);
}

TEST_CASE("a producer is remembered over a restart") {
  Directory directory;
  {
    Running broker(directory);
    const TopicPtr topic = broker.create("events");
    Client client(broker.port());
    for (std::int32_t i = 0; i < 4; ++i)
      REQUIRE(produce(client, *topic, batch_of({"v"}, idempotent(i), base::wall_clock_ms() - i))
                  .base_offset == i);
  }
  Running broker(directory);
  const TopicPtr topic = broker->catalog().snapshot()->find("events");
  Client client(broker.port());
  CHECK(produce(client, *topic, batch_of({"v"}, idempotent(3))).base_offset == 3);
  CHECK(produce(client, *topic, batch_of({"v"}, idempotent(5))).error_code ==
        number(ErrorCode::out_of_order_sequence_number));
  CHECK(produce(client, *topic, batch_of({"v"}, idempotent(4))).base_offset == 4);
}

TEST_CASE("producers that were quiet for long are forgotten") {
  Directory directory;
  Running broker(directory,
                 {"producer.id.expiration.ms=1", "producer.id.expiration.check.interval.ms=1"});
  const TopicPtr topic = broker.create("events");
  Client client(broker.port());
  REQUIRE(produce(client, *topic, batch_of({"v"}, idempotent(0))).base_offset == 0);
  // Until then the sequence would be out of order.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ProducedPartition answer;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    answer = produce(client, *topic, batch_of({"v"}, idempotent(9)));
  } while (answer.error_code != 0 && std::chrono::steady_clock::now() < deadline);
  CHECK(answer.base_offset == 1);
}

TEST_CASE("InitProducerId wants both id and epoch or neither") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  protocol::InitProducerIdRequest init;
  init.transactional_id.reset();
  for (std::int16_t version = 3; version <= 5; ++version) {
    init.producer_id = 7;
    init.producer_epoch = -1;
    CHECK(client.call<protocol::InitProducerIdResponse>(version, init).error_code ==
          number(ErrorCode::invalid_request));
    init.producer_epoch = 3;
    const auto fresh = client.call<protocol::InitProducerIdResponse>(version, init);
    CHECK(fresh.error_code == 0);
    CHECK(fresh.producer_epoch == 0);
  }
}

}  // namespace broker::test
