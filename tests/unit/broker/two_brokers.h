// A broker that mirrors, or is mirrored from, in a test with several of them.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mirror/coordinator.h"
#include "protocol/batch.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/produce.gen.h"
#include "tests/unit/broker/client.h"

namespace broker::test {

using namespace std::chrono_literals;

template <class F>
void await(F condition) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(10ms);
  }
}

// Its data outlive stop(); start() brings it back, on another port.
class Side {
 public:
  explicit Side(std::vector<std::string> overrides = {},
                storage::FileSystem& files = storage::posix_file_system())
      : overrides_(std::move(overrides)), files_(files) {
    overrides_.push_back("mirror.metadata.refresh.interval.ms=200");
    start();
  }

  void start() { broker_.emplace(directory_, overrides_, files_); }
  void stop() { broker_.reset(); }
  Running& broker() { return *broker_; }
  std::string address() { return "127.0.0.1:" + std::to_string(broker_->port()); }

  // Kafka's error number. With acks=all.
  std::int16_t produce(const std::string& topic, int records = 1,
                       const std::string& value = "a value of some length") {
    Client client(broker_->port());
    const base::Buffer batch =
        batch_of(std::vector<std::string>(static_cast<std::size_t>(records), value));
    protocol::ProduceRequest request;
    request.transactional_id.reset();
    request.acks = -1;
    auto& to = request.topic_data.emplace_back();
    to.name = topic;
    to.partition_data.emplace_back().records.bytes = batch;
    const auto answer = client.call<protocol::ProduceResponse>(9, request);
    return answer.responses.at(0).partition_responses.at(0).error_code;
  }

  // Everything from offset 0 on. An answer ends where a segment does.
  base::Buffer bytes(const std::string& topic) {
    Client client(broker_->port());
    base::Buffer all;
    base::Offset next = 0;
    for (;;) {
      protocol::FetchRequest request;
      request.max_wait_ms = 0;
      request.max_bytes = 4 << 20;
      auto& from = request.topics.emplace_back();
      from.topic = topic;
      auto& wanted = from.partitions.emplace_back();
      wanted.fetch_offset = next;
      wanted.partition_max_bytes = 4 << 20;
      const auto answer = client.call<protocol::FetchResponse>(12, request);
      const auto& partition = answer.responses.at(0).partitions.at(0);
      CHECK(partition.error_code == 0);
      const base::Bytes batches = partition.records.bytes;
      if (batches.empty()) return all;
      all.insert(all.end(), batches.begin(), batches.end());
      protocol::BatchIterator it(batches, protocol::CrcCheck::yes);
      while (it.next()) next = it.info().next_offset();
    }
  }

  void create_mirror(const std::string& name, Side& source, const std::string& topics) {
    const std::map<std::string, std::string> configs = {{"bootstrap.servers", source.address()},
                                                        {"topics.include", topics},
                                                        {"fetch.wait.max.ms", "50"}};
    const auto made = broker_->run([&] { return mirrors().create(name, configs); });
    INFO(made.message);
    REQUIRE(made.ok());
  }
  void start_mirror(const std::string& name) {
    const mirror::StartTopics all;
    REQUIRE(broker_->run([&] { return mirrors().start_topics(name, all); }).outcome.ok());
  }
  void stop_mirror(const std::string& name) {
    const mirror::TopicSelection all;
    REQUIRE(broker_->run([&] { return mirrors().stop_topics(name, all); }).outcome.ok());
    await([&] { return partition(name).state == "STOPPED"; });
  }

  // Of the mirror's topic, or of the one that is named.
  mirror::TopicDescription topic(const std::string& name, const std::string& wanted = "") {
    mirror::DescribeFilter filter;
    filter.mirrors.emplace();
    filter.mirrors->push_back(name);
    const auto found = broker_->run([&] { return mirrors().describe(filter); });
    for (const auto& mirror : found)
      for (const auto& one : mirror.topics)
        if (wanted.empty() || one.name == wanted) return one;
    return {};
  }
  mirror::PartitionDescription partition(const std::string& name, const std::string& wanted = "") {
    const mirror::TopicDescription all = topic(name, wanted);
    return all.partitions.empty() ? mirror::PartitionDescription() : all.partitions[0];
  }
  void await_copied(const std::string& name, const std::string& wanted = "") {
    await([&] {
      const auto now = partition(name, wanted);
      return now.state == "MIRRORING" && now.lag == 0;
    });
  }

 private:
  mirror::Coordinator& mirrors() { return (*broker_)->mirrors(); }

  std::vector<std::string> overrides_;
  storage::FileSystem& files_;
  Directory directory_;
  std::optional<Running> broker_;
};

}  // namespace broker::test
