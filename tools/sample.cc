#include "tools/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "protocol/base/clock.h"
#include "protocol/batch_builder.h"
#include "protocol/error_code.h"
#include "protocol/messages/produce.gen.h"
#include "tools/bootstrap.h"
#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/partition_reader.h"
#include "tools/record_text.h"
#include "tools/table.h"
#include "tools/topic_commands.h"

namespace tools {

namespace {

constexpr std::size_t batch_bytes = 256 << 10;
constexpr std::int32_t batch_records_max = 1000;
// Later versions name topics by id alone, which a broker before 2.8 does not have.
constexpr std::int16_t produce_version_max = 12;
constexpr std::int64_t record_bytes_max = 64 << 20;
constexpr std::int64_t records_max = 1'000'000'000'000;

protocol::Codec codec_of(const std::string& name) {
  using protocol::Codec;
  for (const Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd})
    if (name == protocol::name(codec)) return codec;
  throw Failure(ExitCode::usage,
                fmt::format("--codec needs none, gzip, snappy, lz4 or zstd, not '{}'", name));
}

class Producer {
 public:
  Producer(Cluster& cluster, std::string topic) : cluster_(cluster), topic_(std::move(topic)) {}

  // Returns when the broker has it on disk (acks=all).
  void send(std::int32_t partition, base::Bytes batch) {
    constexpr int attempts_max = 20;
    constexpr int pause_ms = 250;
    for (int attempt = 1;; ++attempt) {
      const auto answer = send_once(partition, batch);
      if (answer.error_code == 0) return;
      const auto code = static_cast<protocol::ErrorCode>(answer.error_code);
      if (!protocol::is_retriable(code) || attempt == attempts_max)
        throw Failure(ExitCode::failed,
                      fmt::format("'{}' partition {} took no records: {}", topic_, partition,
                                  error_text(answer.error_code, answer.error_message)));
      sleep_ms(pause_ms);
      cluster_.forget_leaders();
    }
  }

 private:
  protocol::ProduceResponse::Response::PartitionResponse send_once(std::int32_t partition,
                                                                   base::Bytes batch) {
    protocol::ProduceRequest request;
    request.acks = -1;
    request.timeout_ms = 30'000;
    protocol::ProduceRequest::TopicData data;
    data.name = topic_;
    protocol::Records bytes;
    bytes.bytes = batch;
    data.partition_data.push_back({partition, bytes});
    request.topic_data.push_back(std::move(data));
    Client& client = cluster_.leader(topic_, partition);
    auto response = client.call<protocol::ProduceResponse>(request, produce_version_max);
    if (response.responses.size() != 1 || response.responses[0].partition_responses.size() != 1)
      throw Failure(
          ExitCode::failed,
          fmt::format(
              "{} answered Produce without the partition that was sent; look at the broker's log",
              client.address().to_string()));
    return std::move(response.responses[0].partition_responses[0]);
  }

  Cluster& cluster_;
  std::string topic_;
};

std::vector<std::int32_t> partitions_of(Cluster& cluster, const std::string& topic) {
  std::vector<std::int32_t> partitions;
  if (const auto found = cluster.topic(topic))
    for (const auto& partition : found->partitions) partitions.push_back(partition.index);
  return partitions;
}

bool is_ready(Cluster& cluster, const std::string& topic, std::int64_t partitions) {
  const auto found = cluster.topic(topic);
  return found && std::ranges::count_if(found->partitions, [](const auto& partition) {
                    return partition.leader.has_value();
                  }) >= partitions;
}

[[noreturn]] void no_topic(const std::string& topic, const std::string& advice) {
  throw Failure(ExitCode::failed, fmt::format("there is no topic '{}'; {}", topic, advice));
}

ExitCode produce(const Arguments& arguments, Output& output) {
  const std::string topic = *arguments.text("topic");
  const auto records = arguments.number("records", 1000, 1, records_max);
  const auto value_bytes =
      static_cast<std::size_t>(arguments.number("record-size", 100, 1, record_bytes_max));
  const protocol::Codec codec = codec_of(arguments.text("codec", "none"));
  const auto wanted = arguments.number("create-partitions", 0, 1, 10'000);
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  auto partitions = partitions_of(cluster, topic);
  if (partitions.empty()) {
    if (wanted == 0) no_topic(topic, "--create-partitions N makes it");
    create_topic(cluster, topic, static_cast<std::int32_t>(wanted), {});
    // A Kafka answers before all that it says of a topic can be asked.
    constexpr int looks_max = 100, look_pause_ms = 100;
    for (int look = 0; look < looks_max && !is_ready(cluster, topic, wanted); ++look)
      sleep_ms(look_pause_ms);
    partitions = partitions_of(cluster, topic);
    if (partitions.empty()) no_topic(topic, "it was created and is not there; try again");
  }
  Producer producer(cluster, topic);
  const auto begun = std::chrono::steady_clock::now();
  std::size_t turn = 0;
  for (std::int64_t number = 0; number < records;) {
    protocol::BatchOptions options;
    options.codec = codec;
    protocol::BatchBuilder builder(options);
    do {
      const std::string key = sample_key(number), value = sample_value(number, value_bytes);
      builder.add(base::wall_clock_ms(), base::as_bytes(key), base::as_bytes(value));
      ++number;
    } while (number < records && builder.size_bytes() + value_bytes < batch_bytes &&
             builder.count() < batch_records_max);
    const base::Buffer batch = std::move(builder).build();
    producer.send(partitions[turn++ % partitions.size()], batch);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const double bytes = static_cast<double>(records) * static_cast<double>(value_bytes);
  if (arguments.flag("json")) {
    Json line;
    line.begin_object().field("topic", topic).field("records", records);
    line.field("bytes", static_cast<std::int64_t>(bytes)).field("seconds", took.count());
    output.out << line.end_object().text() << '\n';
  } else {
    output.out << fmt::format("Produced {} records ({}) to {} in {:.1f} s, {:.1f} MB/s\n", records,
                              human_bytes(bytes), topic, took.count(), bytes / 1e6 / took.count());
  }
  return ExitCode::ok;
}

void print(const std::string& topic, std::int32_t partition, const protocol::Record& record,
           bool json, std::ostream& out) {
  if (json) {
    Json line;
    line.begin_object()
        .field("topic", topic)
        .field("partition", partition)
        .field("offset", record.offset)
        .field("timestamp", record.timestamp)
        .field("key", record.key ? std::optional(base::as_text(*record.key)) : std::nullopt)
        .field("value", record.value ? std::optional(base::as_text(*record.value)) : std::nullopt)
        .end_object();
    out << line.text() << '\n';
  } else {
    out << fmt::format("{} {} {} {}\n", partition, record.offset, bytes_text(record.key),
                       bytes_text(record.value));
  }
}

// Records of the reader's batch from `from` on, at most `left` of them. Returns how many.
std::int64_t print_batch(const PartitionReader& reader, const std::string& topic,
                         std::int32_t partition, base::Offset from, std::int64_t left, bool json,
                         std::ostream& out) {
  if (reader.info().control()) return 0;
  auto records = protocol::RecordReader::open(reader.batch());
  std::int64_t printed = 0;
  protocol::Record record;
  while (records.has_value() && printed < left && records->next(record)) {
    if (record.offset < from) continue;
    print(topic, partition, record, json, out);
    ++printed;
  }
  const base::Error error = records.has_error() ? records.error() : records->error();
  if (error)
    throw Failure(ExitCode::failed,
                  fmt::format("the batch at offset {} of '{}' partition {} cannot be read: {}; "
                              "look at it with calque dump-log",
                              reader.info().base_offset, topic, partition, error.message()));
  return printed;
}

ExitCode consume(const Arguments& arguments, Output& output) {
  const std::string topic = *arguments.text("topic");
  const bool json = arguments.flag("json");
  constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();
  std::int64_t left = arguments.number("max", no_limit, 1, no_limit);
  const auto only = arguments.number("partition", -1, 0, 100'000);
  const auto asked = arguments.number("offset", -1, 0, no_limit);
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  const auto partitions = partitions_of(cluster, topic);
  if (partitions.empty()) no_topic(topic, "'calque topic list' shows those that there are");
  std::int64_t printed = 0;
  bool found = false;
  for (const std::int32_t partition : partitions) {
    if ((only >= 0 && partition != only) || left == 0) continue;
    found = true;
    const auto start = cluster.offset_at(topic, partition, earliest_timestamp)->offset;
    const auto end = cluster.offset_at(topic, partition, latest_timestamp)->offset;
    const base::Offset from = std::max(start, asked);
    PartitionReader reader(cluster, topic, partition, from, end);
    while (left > 0 && reader.next()) {
      const auto count = print_batch(reader, topic, partition, from, left, json, output.out);
      printed += count;
      left -= count;
    }
  }
  if (!found && only >= 0)
    throw Failure(ExitCode::failed, fmt::format("'{}' has no partition {}; it has {}", topic, only,
                                                partitions.size()));
  output.err << fmt::format("{} records\n", printed);
  return ExitCode::ok;
}

}  // namespace

std::string sample_key(std::int64_t number) {
  constexpr std::int64_t keys = 1000;
  return fmt::format("key-{:04}", number % keys);
}

std::string sample_value(std::int64_t number, std::size_t value_bytes) {
  std::string value = fmt::format("record {:010} ", number);
  // Letters from a small generator: neither constant, which a codec would make vanish, nor random.
  auto state = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15u + 1;
  while (value.size() < value_bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value += static_cast<char>('a' + state % 16);
  }
  value.resize(value_bytes);
  return value;
}

std::vector<Command> sample_commands() {
  const Option topic{"topic", "TOPIC", "The topic.", true};
  return {
      {"sample produce",
       "",
       "Writes records that are the same on every run.",
       {topic,
        {"records", "N", "How many. Default 1000."},
        {"record-size", "BYTES", "Size of each value. Default 100."},
        {"codec", "CODEC", "none, gzip, snappy, lz4 or zstd. Default none."},
        {"create-partitions", "P", "Creates the topic with P partitions if it is not there."},
        bootstrap_option(),
        json_option()},
       "calque sample produce --topic orders --records 100000 --create-partitions 3",
       produce},
      {"sample consume",
       "",
       "Prints records up to the present end of the topic.",
       {topic,
        {"partition", "P", "Only this partition. Default: all, one after the other."},
        {"offset", "O", "From this offset on. Default: the earliest."},
        {"max", "N", "At most N records."},
        bootstrap_option(),
        {"json", "", "One object a line."}},
       "calque sample consume --topic orders --max 10",
       consume},
  };
}

}  // namespace tools
