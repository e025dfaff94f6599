#include "broker/api/fetch_read.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "broker/api/locate.h"
#include "broker/bounds.h"
#include "broker/fetch_wait.h"
#include "protocol/base/log.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using Items = std::vector<FetchItem>;

void look_up(FetchItem& item, const Snapshot& catalog, const FetchRules& rules) {
  FetchTarget& target = item.target;
  TopicPtr topic;
  if (!rules.by_id) {
    topic = catalog.find(target.topic);
  } else if (topic = catalog.find(target.topic_id); topic) {
    target.topic = topic->name;
  } else if (target.topic.empty()) {
    item.unknown = ErrorCode::unknown_topic_id;
    return;
  } else if (has_partition(catalog.find(target.topic), target.partition)) {
    // A session's topic was deleted and another one has its name (A26). Nothing is read of it, but
    // the client is told at once.
    item.answer.error = BrokerErrc::inconsistent_topic_id;
    return;
  }
  if (!has_partition(topic, target.partition)) {
    item.unknown = ErrorCode::unknown_topic_or_partition;
    return;
  }
  item.id = {topic->id, target.partition};
}

// Whether there is something to read.
bool is_known(const FetchItem& item) {
  return item.unknown == ErrorCode::none && !item.id.topic_id.is_zero();
}

// Does `work` for the items of each shard, on that shard.
template <class F>
Task<void> on_shards(Broker& broker, Items& items, F work) {
  Shard& here = *Shard::current();
  const auto elsewhere = [&here](const FetchItem& item) {
    return is_known(item) && item.shard != here.index();
  };
  if (std::ranges::none_of(items, elsewhere)) {
    for (FetchItem& item : items)
      if (is_known(item)) work(item, here);
    co_return;
  }
  std::vector<std::vector<FetchItem*>> by_shard(broker.shard_count());
  for (FetchItem& item : items)
    if (is_known(item)) by_shard[item.shard].push_back(&item);
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, work, mine = std::move(by_shard[i])]() -> Task<bool> {
      for (FetchItem* item : mine) work(*item, *target);
      co_return true;
    };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
}

// Deleted in the meantime, or its log cannot be opened.
base::Error missing(const FetchItem& item, const Shard& shard) {
  const Snapshot& catalog = *shard.catalog();
  if (catalog.find(item.id.topic_id)) return BrokerErrc::not_here;
  if (!catalog.find(item.target.topic)) return BrokerErrc::unknown_topic;
  if (!item.target.topic_id.is_zero()) return BrokerErrc::inconsistent_topic_id;
  return BrokerErrc::busy;  // another one by this name: the client asks again
}

void read_one(FetchItem& item, const Shard& shard) {
  item.answer = ReadAnswer();
  if (const auto partition = shard.find(item.id)) item.answer = partition->read(item.read);
  if (item.answer.error == BrokerErrc::not_here || !shard.find(item.id))
    item.answer.error = missing(item, shard);
}

// Cuts the whole to the limits: the first partition with records keeps at least one batch (A12),
// of others the last batch may be cut short, but not the first.
std::int64_t apply_limits(Items& items, const FetchRules& rules) {
  std::int64_t left = std::max(rules.bytes_max, 0);
  std::int64_t total = 0;
  for (FetchItem& item : items) {
    storage::FileSlice& slice = item.answer.slice;
    if (slice.size == 0) continue;
    if (total > 0) {
      const std::int64_t allowed = std::min<std::int64_t>(item.target.bytes_max, left);
      if (item.answer.first_batch_bytes > allowed)
        slice = storage::FileSlice();
      else
        slice.size = std::min(slice.size, static_cast<std::uint32_t>(allowed));
    }
    total += slice.size;
    left = std::max<std::int64_t>(left - slice.size, 0);
  }
  return total;
}

// Whether the client is told at once: an error, a diverged log, enough records, or records that end
// with a segment while there are more in the next.
bool is_ready(const Items& items, std::int64_t bytes, const FetchRules& rules) {
  if (bytes >= rules.bytes_min) return true;
  bool nothing_known = true;
  for (const FetchItem& item : items) {
    if (item.unknown != ErrorCode::none) continue;
    nothing_known = false;
    if (item.answer.error || item.answer.diverging || item.answer.sealed) return true;
  }
  return nothing_known;
}

Task<void> wait_for_more(Broker& broker, Shard& shard, Items& items, std::int64_t missing_bytes,
                         base::Clock::time_point deadline) {
  const auto waiter = std::make_shared<FetchWaiter>(shard, missing_bytes);
  const auto enlist = [waiter](FetchItem& item, const Shard& home) {
    const auto partition = home.find(item.id);
    if (!partition) return waiter->wake();
    // What happened between the first look and now is found by comparing.
    const Isolation isolation = item.read.isolation;
    const base::Offset seen = isolation == Isolation::read_committed
                                  ? item.answer.last_stable_offset
                                  : item.answer.high_watermark;
    const bool changed =
        partition->readable_end(isolation) != seen || partition->changes() != item.answer.changes;
    partition->add_waiter(waiter, isolation);
    if (changed) waiter->wake();
  };
  co_await on_shards(broker, items, enlist);
  co_await waiter->wait_until(deadline);
}

}  // namespace

bool may_stand_in_fetch(ErrorCode error) {
  constexpr std::array known = {
      ErrorCode::none,
      ErrorCode::unknown_server_error,
      ErrorCode::offset_out_of_range,
      ErrorCode::corrupt_message,
      ErrorCode::unknown_topic_or_partition,
      ErrorCode::not_leader_or_follower,
      ErrorCode::topic_authorization_failed,
      ErrorCode::kafka_storage_error,
      ErrorCode::fenced_leader_epoch,
      ErrorCode::unknown_leader_epoch,
      ErrorCode::unknown_topic_id,
      ErrorCode::inconsistent_topic_id,
  };
  return std::ranges::find(known, error) != known.end();
}

ErrorCode fetch_error(const base::Error& error) {
  if (error == BrokerErrc::not_here) return missing_partition;
  const ErrorCode code = kafka_error(error);
  if (may_stand_in_fetch(code)) return code;
  base::logger("broker").error("a fetch failed with an error that consumers do not know: {}",
                               error.message());
  return ErrorCode::unknown_server_error;
}

ErrorCode FetchItem::error() const {
  if (unknown != ErrorCode::none) return unknown;
  return answer.error ? fetch_error(answer.error) : ErrorCode::none;
}

std::vector<FetchItem> resolve(Broker& broker, Shard& shard, std::vector<FetchTarget> targets,
                               const FetchRules& rules) {
  Items items(targets.size());
  const Snapshot& catalog = *shard.catalog();
  std::int32_t limit = rules.bytes_max;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    FetchItem& item = items[i];
    item.target = std::move(targets[i]);
    look_up(item, catalog, rules);
    if (!is_known(item)) continue;
    item.shard = broker.shard_index_of(item.id);
    item.read.offset = item.target.offset;
    item.read.bytes_max = std::min(item.target.bytes_max, limit);
    limit = std::max(limit, 0);  // a negative limit is an error where it is met first, as in Kafka
    item.read.isolation = rules.isolation;
    item.read.current_leader_epoch = item.target.current_leader_epoch;
    item.read.last_fetched_epoch = item.target.last_fetched_epoch;
    item.read.as_replica = rules.as_replica;
  }
  return items;
}

Task<void> read(Broker& broker, Shard& shard, Items& items, FetchRules rules) {
  const auto wait = std::chrono::milliseconds(std::max<std::int64_t>(rules.wait_ms, 0));
  const auto deadline = base::Clock::now() + std::min<base::Clock::duration>(wait, fetch_wait_max);
  co_await on_shards(broker, items, read_one);
  const std::int64_t bytes = apply_limits(items, rules);
  if (wait.count() == 0 || shard.stopping() || is_ready(items, bytes, rules)) co_return;
  co_await wait_for_more(broker, shard, items, rules.bytes_min - bytes, deadline);
  co_await on_shards(broker, items, read_one);
  apply_limits(items, rules);
}

}  // namespace broker::api
