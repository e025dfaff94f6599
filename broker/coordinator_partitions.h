// The partitions of a coordinator, each with the shard that it belongs to: finds the one that keeps
// a key, opens it, and keeps the loops of all.
//
// The functions that are awaited may be awaited on any shard; they hop there and back by
// themselves.
#pragma once
#include <algorithm>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "broker/catalog.h"
#include "broker/coordinator_partition.h"
#include "broker/shard.h"
#include "protocol/error_code.h"

namespace broker {

class Broker;

// Kafka's choice: which of the partitions of a coordinator's topic keeps a key.
std::int32_t partition_for_group(std::string_view group, std::int32_t partitions);

// `P` is a CoordinatorPartition.
template <class P>
class CoordinatorPartitions {
 public:
  using Place = base::TopicPartition;
  using Open = std::function<std::shared_ptr<P>(Shard&, std::shared_ptr<Partition>)>;

  CoordinatorPartitions(Broker& broker, const CoordinatorKind& kind, Open open);

  // Begins to load what is there. After the logs were opened, before clients are let in.
  void start();
  void spawn(Shard& shard, boost::asio::awaitable<void> loop);
  // Loops that still run: none some moments after the shards began to stop.
  int running() const { return running_.load(); }

  // Makes the topic unless it is there. Errors are the catalog's; mirror_not_stopped when a mirror
  // brought it and its copy is not served.
  boost::asio::awaitable<base::Result<void>> ensure_topic(NewTopic topic);
  // On any shard; done later.
  void topic_deleted();

  // All partitions that belong to the shard. On it.
  std::vector<std::shared_ptr<P>> open_all(Shard& shard);

  // Runs `f`, which takes (P&) and gives an awaitable, at the place; answers `none` if there is no
  // partition (any more).
  template <class F>
  auto at(std::optional<Place> place, F f, typename std::invoke_result_t<F, P&>::value_type none)
      -> std::invoke_result_t<F, P&> {
    if (!place) co_return none;
    Shard& target = shard_of(*place);
    auto job = [this, &target, &none, id = *place,
                run = std::move(f)]() -> std::invoke_result_t<F, P&> {
      const auto partition = find_or_open(target, id);
      if (!partition) co_return none;
      co_return co_await run(*partition);
    };
    co_return co_await on(target, std::move(job));
  }
  // The same where the key is kept; the error is not_coordinator if that is nowhere.
  template <class F>
  auto at_home(std::string_view key, F f) {
    typename std::invoke_result_t<F, P&>::value_type none;
    none.error = protocol::ErrorCode::not_coordinator;
    return at(locate(key), std::move(f), std::move(none));
  }
  // What `f`, which takes (P&) and gives an awaitable of an outcome with a vector, finds in all
  // partitions. What is not ours to tell is left out, as from a broker that does not coordinate it.
  template <class F>
  auto collect(F f) -> std::invoke_result_t<F, P&> {
    using Outcome = typename std::invoke_result_t<F, P&>::value_type;
    std::vector<Job<Outcome>> jobs;
    for (std::size_t i = 0; i < by_shard_.size(); ++i) {
      Shard& shard = shard_at(i);
      auto job = [this, &shard, &f]() -> boost::asio::awaitable<Outcome> {
        Outcome all;
        for (const auto& one : open_all(shard)) {
          Outcome some = co_await f(*one);
          if (some.error == protocol::ErrorCode::coordinator_load_in_progress) co_return some;
          std::ranges::move(some.value, std::back_inserter(all.value));
        }
        co_return all;
      };
      jobs.push_back({&shard, std::move(job)});
    }
    Outcome all;
    for (Outcome& some : co_await on_each(std::move(jobs))) {
      if (some.error != protocol::ErrorCode::none) all.error = some.error;
      std::ranges::move(some.value, std::back_inserter(all.value));
    }
    if (all.error != protocol::ErrorCode::none) all.value.clear();
    co_return all;
  }

 private:
  // Absent: it is not there, or not ours.
  TopicPtr topic_of(const Snapshot& catalog) const;
  // Where a key is kept; nothing before the topic is there. On any shard.
  std::optional<Place> locate(std::string_view key) const;
  Shard& shard_of(const Place& id) const;
  Shard& shard_at(std::size_t index) const;
  // On the partition's shard. Null: it is not there, or not any more.
  std::shared_ptr<P> find_or_open(Shard& shard, const Place& id);
  boost::asio::awaitable<void> housekeeping(Shard* shard);

  Broker& broker_;
  const CoordinatorKind& kind_;
  Open open_;
  // Each touched by its shard alone.
  std::vector<std::map<std::int32_t, std::shared_ptr<P>>> by_shard_;
  std::atomic<int> running_{0};
};

}  // namespace broker
