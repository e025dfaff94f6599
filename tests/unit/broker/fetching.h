// What tests of Fetch share: long polls, and work on a partition of the running broker.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/mirror_target.h"
#include "broker/partition.h"
#include "tests/unit/broker/requests.h"

namespace broker::test {

using std::chrono::milliseconds;

template <class T>
using Task = boost::asio::awaitable<T>;

// Long polls that wait in partitions of the broker.
inline std::size_t waiters_of(Running& broker) {
  std::size_t all = 0;
  for (std::size_t i = 0; i < broker->shard_count(); ++i) {
    auto go = [&broker, i]() -> Task<std::size_t> {
      auto there = [&broker, i]() -> Task<std::size_t> {
        std::size_t count = 0;
        for (const auto& [id, partition] : broker->shard(i).partitions())
          count += partition->waiting();
        co_return count;
      };
      co_return co_await on(broker->shard(i), std::move(there));
    };
    all += broker.run(std::move(go));
  }
  return all;
}

// Begins a long poll, does something, and answers what came and after how long.
struct Poll {
  FetchResponse answer;
  milliseconds took{0};
  base::Buffer bytes;
};
inline Poll poll(Running& broker, const FetchRequest& request, std::int16_t version,
                 const std::function<void()>& act) {
  Client waiting(broker.port());
  REQUIRE(waiting.socket().send(encode_request(version, request)));
  const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (waiters_of(broker) == 0 && std::chrono::steady_clock::now() < given_up)
    std::this_thread::sleep_for(milliseconds(5));
  const auto began = std::chrono::steady_clock::now();
  act();
  Poll result;
  result.bytes = waiting.receive();
  result.took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  REQUIRE(!result.bytes.empty());
  protocol::ResponseHeader header;
  base::Bytes body;
  REQUIRE(protocol::decode(result.bytes, protocol::ApiKey::fetch, version, header, body));
  REQUIRE(decode(body, version, result.answer));
  return result;
}

inline FetchRequest waiting_request(const Topic& topic, base::Offset offset) {
  FetchRequest request = fetch_request(topic, offset);
  request.max_wait_ms = 15'000;
  return request;
}
inline constexpr milliseconds soon{8'000};

inline base::Uuid id_of(unsigned char last) {
  base::Uuid id;
  id.bytes[15] = std::byte{last};
  return id;
}

template <class F>
auto on_partition(Running& broker, const base::TopicPartition& id, F f) {
  using Outcome = typename std::invoke_result_t<F, Partition&>::value_type;
  auto go = [&broker, id, f]() -> Task<Outcome> {
    auto there = [&broker, id, f]() -> Task<Outcome> {
      const auto partition = broker->shard_of(id).find(id);
      REQUIRE(partition);
      co_return co_await f(*partition);
    };
    co_return co_await on(broker->shard_of(id), std::move(there));
  };
  return broker.run(std::move(go));
}

// A mirrored topic with these batches, each of two records, at these offsets.
inline TopicPtr mirrored(Running& broker,
                         const std::vector<std::pair<base::Offset, base::LeaderEpoch>>& batches) {
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.attach_topic("dr", "events", id_of(1), 1); }).has_value());
  const base::TopicPartition id = {id_of(1), 0};
  REQUIRE(broker.run([&] { return broker->catalog().bump_epoch(id, 9); }).has_value());
  REQUIRE(on_partition(broker, id, [&](Partition& partition) -> Task<base::Result<void>> {
            for (const auto& [offset, epoch] : batches) {
              protocol::BatchOptions options;
              options.base_offset = offset;
              options.partition_leader_epoch = epoch;
              const base::Buffer batch = batch_of({"a", "b"}, options);
              CO_TRY_VOID(partition.append_verbatim(batch, 1000));
            }
            co_return base::Result<void>();
          }).has_value());
  return broker->catalog().snapshot()->find("events");
}

}  // namespace broker::test
