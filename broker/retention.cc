#include "broker/retention.h"

#include <boost/asio/post.hpp>
#include <limits>
#include <vector>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/log_store.h"
#include "broker/partition.h"
#include "broker/shard.h"
#include "broker/topic_config.h"
#include "protocol/base/log.h"

namespace broker {

namespace asio = boost::asio;

asio::awaitable<base::Result<void>> advance_log_start(std::shared_ptr<Partition> partition,
                                                      base::Offset offset) {
  CO_TRY_VOID(partition->log().advance_log_start(offset));
  co_return co_await partition->sync();
}

asio::awaitable<void> Retention::run() {
  using std::chrono::milliseconds;
  const Config& config = broker_.config();
  const milliseconds interval(config.integer("log.retention.check.interval.ms"));
  auto next = base::Clock::now() + milliseconds(config.integer("log.initial.task.delay.ms"));
  while (!shard_.stopping()) {
    co_await shard_.stop_signal().wait(base::Clock::now() + tick_interval);
    if (shard_.stopping()) co_return;
    co_await remove_expired();
    if (base::Clock::now() < next) continue;
    co_await check_all();
    next = base::Clock::now() + interval;
  }
}

asio::awaitable<void> Retention::check_all() {
  std::vector<std::shared_ptr<Partition>> partitions;
  for (const auto& [id, partition] : shard_.partitions()) partitions.push_back(partition);
  for (const auto& partition : partitions) {
    if (shard_.stopping()) co_return;
    co_await check(partition);
    co_await asio::post(asio::use_awaitable);
  }
}

asio::awaitable<void> Retention::check(std::shared_ptr<Partition> partition) {
  // Also false while a stopped mirror has not yet handed the partition over, and when the topic was
  // deleted meanwhile.
  if (is_mirrored(partition->topic()) || partition->check_writable().has_error()) co_return;
  const RetentionRules rules =
      retention_rules(partition->topic().configs, shard_.catalog()->config());
  storage::RetentionLimits limits;
  limits.now_ms = base::wall_clock_ms();
  limits.high_watermark = partition->high_watermark();
  if (rules.deletes) {
    limits.retention_ms = rules.retention_ms;
    if (rules.retention_bytes)
      limits.retention_bytes = static_cast<std::uint64_t>(*rules.retention_bytes);
  }
  const auto dropped = partition->log().apply_retention(limits);
  base::Result<void> done =
      dropped.has_error() ? base::Result<void>(dropped.error()) : base::Result<void>();
  if (dropped.has_value() && *dropped > 0) done = co_await partition->sync();
  if (done.has_error())
    base::logger("broker").error("{}-{}: dropping old segments failed: {}", partition->topic().name,
                                 partition->index(), done.error().message());
}

asio::awaitable<void> Retention::remove_expired() {
  auto ask = [this] { return broker_.logs().is_short_of_space(); };
  // On a full disk (G06) nothing stays for a while: removing is what makes the room to go on.
  const std::int64_t until_ms = co_await shard_.on_disk(std::move(ask))
                                    ? std::numeric_limits<std::int64_t>::max()
                                    : base::wall_clock_ms();
  std::vector<std::string> paths;
  for (const auto& [id, partition] : shard_.partitions())
    for (std::string& path : partition->log().take_deleted(until_ms))
      paths.push_back(std::move(path));
  if (shard_.index() == 0)
    for (std::string& path : broker_.logs().take_deleted(until_ms))
      paths.push_back(std::move(path));
  for (const std::string& path : paths) {
    if (shard_.stopping()) co_return;  // what is left goes at the next start
    auto work = [this, &path] { return broker_.logs().remove(path); };
    const auto removed = co_await shard_.on_disk(std::move(work));
    if (removed.has_error())
      base::logger("broker").error("{} was not removed: {}", path, removed.error().message());
  }
}

}  // namespace broker
