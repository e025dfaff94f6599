// A source, a target and a coordinator between them, all on one thread.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "mirror/coordinator.h"
#include "tests/unit/mirror_drivers/fake_source.h"
#include "tests/unit/mirror_drivers/fake_target.h"

namespace mirror_test {

using namespace std::chrono_literals;

struct World {
  explicit World(Release release = kafka_4_4) : source(io, release) {}
  ~World() { shut_down(); }

  boost::asio::io_context io{1};
  FakeSource source;
  FakeTarget target{io, 2};
  std::unique_ptr<mirror::Coordinator> coordinator;
  std::map<std::string, std::string> extra_configs;
  std::string bootstrap;  // empty: the source's own

  // Runs until the coroutine has ended, and gives its result.
  template <class T>
  T run(boost::asio::awaitable<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr failure, T value) {
      if (failure) std::rethrow_exception(failure);
      result.emplace(std::move(value));
    });
    spin([&] { return result.has_value(); }, 20s);
    return std::move(*result);
  }
  void run(boost::asio::awaitable<void> task) {
    bool done = false;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
      done = true;
    });
    spin([&] { return done; }, 20s);
  }
  // Requires that the condition comes true in time.
  template <class F>
  void spin(F condition, std::chrono::steady_clock::duration limit = 20s) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) FAIL("not in time: " << summary());
      io.restart();
      io.run_for(2ms);
    }
  }
  void spin_for(std::chrono::steady_clock::duration time) {
    io.restart();
    io.run_for(time);
  }

  void boot() {
    mirror::CoordinatorOptions options;
    options.metadata_refresh_interval = 300ms;
    options.retry_backoff_initial = 20ms;
    options.retry_backoff_max = 400ms;
    options.retry_attempts_max = 6;
    coordinator = std::make_unique<mirror::Coordinator>(target, options);
    REQUIRE(run(coordinator->start()).has_value());
  }
  void shut_down() {
    if (!coordinator) return;
    run(coordinator->stop());
    coordinator.reset();
  }
  mirror::Outcome create(const std::string& name, const std::string& topics) {
    std::map<std::string, std::string> configs = extra_configs;
    configs["bootstrap.servers"] = bootstrap.empty() ? source.bootstrap() : bootstrap;
    configs["topics.include"] = topics;
    configs.emplace("fetch.wait.max.ms", "50");
    configs.emplace("request.timeout.ms", "1000");
    configs.emplace("fetch.backoff.ms", "50");
    return run(coordinator->create(name, configs));
  }

  // While the coordinator runs. "": not there.
  std::optional<mirror::PartitionDescription> describe(const std::string& topic, int partition) {
    const std::vector<mirror::MirrorDescription> all = run(coordinator->describe({}));
    for (const auto& mirror : all)
      for (const auto& one : mirror.topics)
        if (one.name == topic)
          for (const auto& p : one.partitions)
            if (p.partition == partition) return p;
    return std::nullopt;
  }
  std::string state(const std::string& topic, int partition) {
    const auto found = describe(topic, partition);
    return found ? found->state : "";
  }
  void await_state(const std::string& topic, int partition, const std::string& wanted,
                   std::chrono::steady_clock::duration limit = 20s) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (state(topic, partition) != wanted) {
      if (std::chrono::steady_clock::now() > until) FAIL("no " << wanted << ": " << summary());
      spin_for(5ms);
    }
  }
  void await_lag_zero(const std::string& topic, int partition) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    for (;;) {
      const auto now = describe(topic, partition);
      const base::Offset end = source.log(topic, partition).end;
      if (now && now->lag == 0 && now->destination_offset == end) return;
      if (std::chrono::steady_clock::now() > until) FAIL("lag stays: " << summary());
      spin_for(5ms);
    }
  }
  // All bytes are here. That they are durable takes until the next tick; await_lag_zero sees that.
  void await_copied(const std::string& topic, int partition) {
    spin([&] {
      return target.topic(topic) && source.log(topic, partition).end > 0 &&
             target.log(topic, partition).end == source.log(topic, partition).end;
    });
    await_state(topic, partition, "MIRRORING");
  }
  // The mirror `m` of topic `t`, five records in each partition, all copied.
  void copy_one(int partitions = 1) {
    source.add_topic("t", partitions);
    for (int p = 0; p < partitions; ++p) source.produce("t", p, 5);
    boot();
    REQUIRE(create("m", "t").ok());
    for (int p = 0; p < partitions; ++p) await_copied("t", p);
  }
  std::string summary() {
    if (!coordinator) return "no coordinator";
    std::string out;
    bool done = false;
    boost::asio::co_spawn(
        io, coordinator->describe({}),
        [&](std::exception_ptr, const std::vector<mirror::MirrorDescription>& all) {
          for (const auto& mirror : all) {
            out += mirror.name + " (" + mirror.error_message.value_or("") + ")";
            for (const auto& topic : mirror.topics)
              for (const auto& p : topic.partitions)
                out += " " + topic.name + "-" + std::to_string(p.partition) + " " + p.state + " " +
                       std::to_string(p.destination_offset.value_or(-1)) + "/" +
                       std::to_string(p.source_offset.value_or(-1)) + " " +
                       p.error_message.value_or("");
          }
          done = true;
        });
    for (int i = 0; i < 500 && !done; ++i) spin_for(2ms);
    return out;
  }
  bool same_bytes(const std::string& topic, int partition) {
    return target.log(topic, partition).bytes() == source.bytes(topic, partition);
  }
};

}  // namespace mirror_test
