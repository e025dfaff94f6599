#include "broker/compactor.h"

#include <utility>

#include "broker/bounds.h"
#include "broker/partition.h"
#include "broker/shard.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

boost::asio::awaitable<void> Compactor::run() {
  for (;;) {
    co_await shard_.stop_signal().wait(base::Clock::now() + interval_);
    if (shard_.stopping()) co_return;
    if (auto partition = dirtiest()) co_await compact(std::move(partition));
  }
}

std::shared_ptr<Partition> Compactor::dirtiest() const {
  std::shared_ptr<Partition> found;
  double most = compaction_dirty_ratio_min;
  for (const auto& [id, partition] : shard_.partitions()) {
    if (!partition->topic().internal || failed_.contains(id)) continue;
    const double ratio = partition->log().dirty_ratio();
    if (ratio < most || (found && ratio == most)) continue;
    most = ratio;
    found = partition;
  }
  return found;
}

boost::asio::awaitable<void> Compactor::compact(std::shared_ptr<Partition> partition) {
  auto& log = base::logger("broker");
  const auto done = co_await partition->compact(base::wall_clock_ms());
  const std::string& topic = partition->topic().name;
  if (done.has_value()) {
    if (done->segments > 0)
      log.info("{}-{}: compacted {} segments, {} bytes became {}", topic, partition->index(),
               done->segments, done->bytes_before, done->bytes_after);
    co_return;
  }
  // A log that is offline says so itself, and comes back by itself or with a restart.
  if (partition->log().offline() || shard_.stopping()) co_return;
  failed_.insert(partition->id());
  log.error("{}-{}: cannot be compacted, and is left as it is until a restart: {}", topic,
            partition->index(), done.error().message());
}

}  // namespace broker
