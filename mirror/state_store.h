// The actual state of every mirrored partition: `__mirror_state` and, in memory, what it says. The
// same apply() serves replay and live writes.
//
// Lives on shard 0. Writes of many partitions that come together share one append and one sync per
// partition of the topic.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mirror/state_codec.h"
#include "mirror/target.h"
#include "protocol/base/clock.h"

namespace mirror {

class StateStore {
 public:
  explicit StateStore(Target& target) : target_(target) {}

  Task<void> replay();
  std::optional<Record> find(const PartitionKey& key) const;
  std::vector<PartitionKey> keys_of(const std::string& mirror) const;
  std::vector<PartitionKey> keys() const;

  // Durable on return. From any executor's coroutine: see PartitionStates.
  Task<void> write(PartitionKey key, Record record, LeaderEpoch leader_epoch);
  Task<void> forget(PartitionKey key);

 private:
  struct Batch {
    explicit Batch(boost::asio::any_io_executor executor)
        : done(std::move(executor), base::Clock::time_point::max()) {}
    std::vector<Target::StateRecord> records;
    std::optional<base::Result<void>> result;
    base::Timer done;  // never expires; cancelled to wake who waits
  };
  struct Queue {
    std::shared_ptr<Batch> next;  // takes records until it is written
    bool writing = false;
  };

  Task<void> append(std::int32_t partition, std::vector<Target::StateRecord> records);
  void apply(base::Bytes key, std::optional<base::Bytes> value);
  void apply(const StateRecordChange& change);
  StoredState& entry(const PartitionKey& key);

  Target& target_;
  std::map<PartitionKey, StoredState> states_;
  std::map<std::int32_t, Queue> queues_;
};

// The store, for partitions on any shard: goes to shard 0 and comes back.
class PartitionStates {
 public:
  PartitionStates(StateStore& store, boost::asio::any_io_executor home)
      : store_(store), home_(std::move(home)) {}
  Task<void> write(PartitionKey key, Record record, LeaderEpoch leader_epoch);
  Task<void> forget(PartitionKey key);

 private:
  StateStore& store_;
  boost::asio::any_io_executor home_;
};

}  // namespace mirror
