// The mirror coordinator: everything that this broker mirrors. It holds the mirrors' definitions,
// the actual state of each partition (replayed from __mirror_state), compares them with the desired
// states and the source's metadata, and runs the drivers that make them equal.
//
// It lives on shard 0: construct, call and destroy it there. Commands answer once the wish is
// durable; that it came true is seen in describe(). No call waits for a source longer than the
// mirror's request.timeout.ms, and stop_topics() never waits for one.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mirror/control_types.h"
#include "mirror/target.h"

namespace mirror {

struct CoordinatorOptions {
  // mirror.metadata.refresh.interval.ms
  std::chrono::milliseconds metadata_refresh_interval{60'000};
  // mirror.failed.retry.{initial.backoff.ms, max.backoff.ms, max.attempts}
  std::chrono::milliseconds retry_backoff_initial{100};
  std::chrono::milliseconds retry_backoff_max{300'000};
  std::int16_t retry_attempts_max = 20;
  base::NodeId node_id = 0;  // for the client id that the source sees
};

struct CoordinatorTotals {
  std::map<std::string, std::size_t> partitions_by_state;  // KIP-1279's state names
  std::uint64_t bytes_copied = 0;
  std::uint64_t sync_failures = 0;
};

class Coordinator {
 public:
  // `target` outlives the coordinator.
  Coordinator(Target& target, CoordinatorOptions options);
  ~Coordinator();  // stop() must have finished, or start() never have been called
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Loads definitions and states and sets everything going. Partitions that are STOPPED are opened
  // for writes by this, all others of a mirror stay read-only.
  boost::asio::awaitable<base::Result<void>> start();
  // Ends every coroutine of the mirrors on every shard; nothing touches the target afterwards.
  boost::asio::awaitable<void> stop();

  // `configs`: KIP-1279 k.3, short names or with the prefix `mirror.`. bootstrap.servers must be
  // there. Topics that match topics.include and not topics.exclude start by themselves, those that
  // the source has now and those that it gets later. Answers without waiting for the source.
  boost::asio::awaitable<Outcome> create(std::string mirror,
                                         std::map<std::string, std::string> configs);
  // Starts topics that are STOPPED or unknown here; names that the source does not have (yet) start
  // when it has them.
  boost::asio::awaitable<TopicsOutcome> start_topics(std::string mirror, StartTopics what);
  // Failover: from every state, with or without a source.
  boost::asio::awaitable<TopicsOutcome> stop_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<TopicsOutcome> pause_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<TopicsOutcome> resume_topics(std::string mirror, TopicSelection what);
  // Retries FAILED partitions now, with the count of attempts at 0.
  boost::asio::awaitable<TopicsOutcome> recover_topics(std::string mirror, TopicSelection what);
  // Only when every topic is STOPPED.
  boost::asio::awaitable<Outcome> remove(std::string mirror);

  boost::asio::awaitable<std::vector<MirrorListing>> list(ListFilter filter);
  boost::asio::awaitable<std::vector<MirrorDescription>> describe(DescribeFilter filter);
  boost::asio::awaitable<CoordinatorTotals> totals();

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace mirror
