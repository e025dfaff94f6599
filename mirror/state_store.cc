#include "mirror/state_store.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iterator>
#include <utility>

#include "mirror/task_group.h"
#include "protocol/base/log.h"

namespace mirror {

Task<void> StateStore::replay() {
  states_.clear();
  const auto apply_one = [this](base::Bytes key, std::optional<base::Bytes> value) {
    apply(key, value);
  };
  co_return co_await target_.replay_state(apply_one);
}

StoredState& StateStore::entry(const PartitionKey& key) {
  const auto [place, is_new] = states_.try_emplace(key);
  if (is_new) place->second.record.position.reset();
  return place->second;
}

void StateStore::apply(base::Bytes key, std::optional<base::Bytes> value) {
  apply(decode_state(key, value));
}

void StateStore::apply(const StateRecordChange& change) {
  if (const auto* state = std::get_if<StateChange>(&change)) {
    if (!state->state) {
      states_.erase(state->key);
      return;
    }
    StoredState& stored = entry(state->key);
    const std::optional<Position> position = stored.record.position;
    stored = *state->state;
    stored.record.position = position;
  } else if (const auto* moved = std::get_if<PositionChange>(&change)) {
    if (moved->position)
      entry(moved->key).record.position = moved->position;
    else if (const auto found = states_.find(moved->key); found != states_.end())
      found->second.record.position.reset();
  } else if (!std::get<Unreadable>(change).foreign_type) {
    base::logger("mirror").error("a record of __mirror_state cannot be read and is left out");
  }
}

std::optional<Record> StateStore::find(const PartitionKey& key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return std::nullopt;
  return found->second.record;
}

std::vector<PartitionKey> StateStore::keys() const {
  std::vector<PartitionKey> all;
  for (const auto& [key, state] : states_) all.push_back(key);
  return all;
}

std::vector<PartitionKey> StateStore::keys_of(const std::string& mirror) const {
  std::vector<PartitionKey> all;
  for (const auto& [key, state] : states_)
    if (key.mirror == mirror) all.push_back(key);
  return all;
}

Task<void> StateStore::write(PartitionKey key, Record record, LeaderEpoch leader_epoch) {
  StoredState next{.record = std::move(record), .leader_epoch = leader_epoch, .state_epoch = 0};
  bool had_position = false;
  if (const auto found = states_.find(key); found != states_.end()) {
    next.state_epoch = found->second.state_epoch + 1;
    had_position = found->second.record.position.has_value();
  }
  const std::int32_t partition = state_partition_of(key, target_.state_partition_count());
  std::vector<Target::StateRecord> records = encode_state(key, next, had_position);
  co_return co_await append(partition, std::move(records));
}

Task<void> StateStore::forget(PartitionKey key) {
  const std::int32_t partition = state_partition_of(key, target_.state_partition_count());
  std::vector<Target::StateRecord> records = encode_forgotten(key);
  co_return co_await append(partition, std::move(records));
}

// While one batch of a partition is being written, later ones gather in the next, which one of
// those who wait for it writes. What was written is applied in the log's order.
Task<void> StateStore::append(std::int32_t partition, std::vector<Target::StateRecord> records) {
  Queue& queue = queues_[partition];  // a map's nodes stay where they are
  if (!queue.next) queue.next = std::make_shared<Batch>(target_.executor(0));
  const std::shared_ptr<Batch> mine = queue.next;
  std::ranges::move(records, std::back_inserter(mine->records));
  while (!mine->result && queue.writing)
    co_await mine->done.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (mine->result) co_return *mine->result;
  queue.next.reset();
  queue.writing = true;
  const base::Result<void> written = co_await target_.append_state(partition, mine->records);
  queue.writing = false;
  if (written)
    for (const Target::StateRecord& one : mine->records)
      apply(one.key, one.value ? std::optional<base::Bytes>(*one.value) : std::nullopt);
  mine->result = written;
  mine->done.cancel();
  if (queue.next) queue.next->done.cancel();
  co_return written;
}

Task<void> PartitionStates::write(PartitionKey key, Record record, LeaderEpoch leader_epoch) {
  auto work = [&store = store_, key = std::move(key), record = std::move(record),
               leader_epoch]() mutable {
    return store.write(std::move(key), std::move(record), leader_epoch);
  };
  co_return co_await run_on(home_, std::move(work));
}

Task<void> PartitionStates::forget(PartitionKey key) {
  auto work = [&store = store_, key = std::move(key)]() mutable {
    return store.forget(std::move(key));
  };
  co_return co_await run_on(home_, std::move(work));
}

}  // namespace mirror
