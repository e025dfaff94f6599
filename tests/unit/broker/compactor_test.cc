// __mirror_state is compacted while the broker runs, and says the same afterwards.
#include <chrono>
#include <map>
#include <thread>

#include "broker/mirror_target.h"
#include "tests/unit/broker/client.h"

namespace broker::test {
namespace {

using namespace std::chrono_literals;
using Record = mirror::Target::StateRecord;
using States = std::map<std::string, std::string>;

constexpr int keys = 20;
constexpr std::size_t value_bytes = 20'000;

std::string key_of(int n) {
  return "key " + std::to_string(n);
}

// One state of every key; of the key that is named a tombstone.
std::vector<Record> round(int number, int dead_key) {
  std::vector<Record> records;
  for (int k = 0; k < keys; ++k) {
    Record& one = records.emplace_back();
    one.key = base::to_buffer(base::as_bytes(key_of(k)));
    std::string value = std::to_string(number) + " of " + std::to_string(k) + " ";
    value.resize(value_bytes, '.');
    if (k != dead_key) one.value = base::to_buffer(base::as_bytes(value));
  }
  return records;
}

States replay(Running& broker) {
  States states;
  const auto apply = [&states](base::Bytes key, std::optional<base::Bytes> value) {
    const std::string name(base::as_text(key));
    if (value)
      states[name] = base::as_text(*value);
    else
      states.erase(name);
  };
  auto& target = broker->mirror_target();
  REQUIRE(broker.run([&] { return target.replay_state(apply); }).has_value());
  return states;
}

std::uint64_t log_bytes(Running& broker) {
  const TopicPtr topic = broker->catalog().snapshot()->find(mirror_state_topic);
  const base::TopicPartition id{topic->id, 0};
  auto ask = [&]() -> boost::asio::awaitable<std::uint64_t> {
    auto there = [&]() -> boost::asio::awaitable<std::uint64_t> {
      co_return broker->shard_of(id).find(id)->log().size_bytes();
    };
    co_return co_await on(broker->shard_of(id), std::move(there));
  };
  return broker.run(std::move(ask));
}

}  // namespace

TEST_CASE("the log of the mirrors' states shrinks and replays to the same states") {
  Directory directory;
  constexpr int rounds = 16;
  States before;
  {
    // Compaction waits, so that there is something to see.
    Running broker(directory, {"log.cleaner.backoff.ms=3600000"});
    auto& target = broker->mirror_target();
    for (int n = 0; n < rounds; ++n)
      REQUIRE(broker.run([&] { return target.append_state(0, round(n, n == 15 ? 7 : -1)); })
                  .has_value());
    before = replay(broker);
    CHECK(before.size() == keys - 1);
    CHECK(before.at(key_of(0)).starts_with("15 of 0"));
    CHECK_FALSE(before.contains(key_of(7)));
    CHECK(log_bytes(broker) > rounds * (keys - 1) * value_bytes);
  }
  // What was there at the start counts as not compacted yet.
  const std::uint64_t bound = (3ull << 20);
  {
    Running broker(directory, {"log.cleaner.backoff.ms=20"});
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (log_bytes(broker) > bound && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(20ms);
    CHECK(log_bytes(broker) < bound);
    CHECK(replay(broker) == before);
    // The state goes on: written after a compaction, and compacted again.
    auto& target = broker->mirror_target();
    for (int n = rounds; n < 2 * rounds; ++n)
      REQUIRE(broker.run([&] { return target.append_state(0, round(n, -1)); }).has_value());
    before = replay(broker);
    CHECK(before.size() == keys);
    while (log_bytes(broker) > bound && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(20ms);
    CHECK(log_bytes(broker) < bound);
    CHECK(replay(broker) == before);
  }
  Running broker(directory, {"log.cleaner.backoff.ms=3600000"});
  CHECK(log_bytes(broker) < bound);
  CHECK(replay(broker) == before);
}

}  // namespace broker::test
