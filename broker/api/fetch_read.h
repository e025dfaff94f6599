// The reading half of Fetch: resolves what is asked for, reads it on the shards where it lives,
// keeps to the limits, and waits when there is too little. Sessions and the wire are fetch.cc's.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "broker/fetch_sessions.h"
#include "broker/handler.h"
#include "broker/partition.h"
#include "protocol/base/clock.h"
#include "protocol/error_code.h"

namespace broker::api {

struct FetchItem {
  FetchTarget target;
  base::TopicPartition id;
  std::size_t shard = 0;
  // Known without reading: there is no such topic or partition.
  protocol::ErrorCode unknown = protocol::ErrorCode::none;
  ReadRequest read;
  ReadAnswer answer;

  protocol::ErrorCode error() const;
};

// What holds for all partitions of one request.
struct FetchRules {
  std::int64_t wait_ms = 0;
  std::int32_t bytes_min = 0;
  std::int32_t bytes_max = 0;
  Isolation isolation = Isolation::read_uncommitted;
  bool by_id = false;
  bool as_replica = false;
};

// What a partition's entry may say: a consumer takes every other number for a bug of its own and
// throws (A10), so what cannot be told becomes UNKNOWN_SERVER_ERROR.
bool may_stand_in_fetch(protocol::ErrorCode error);
protocol::ErrorCode fetch_error(const base::Error& error);

// Looks every target up in the catalog of `shard`. Those that are unknown come last, as in Kafka.
std::vector<FetchItem> resolve(Broker& broker, Shard& shard, std::vector<FetchTarget> targets,
                               const FetchRules& rules);
// Reads all; waits for more if there is too little and nothing that has to be told at once.
Task<void> read(Broker& broker, Shard& shard, std::vector<FetchItem>& items, FetchRules rules);

}  // namespace broker::api
