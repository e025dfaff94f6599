#include "broker/coordinator_partitions.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>

#include "broker/broker.h"
#include "broker/error.h"
#include "broker/group_partition.h"
#include "broker/transaction_partition.h"
#include "protocol/base/check.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

namespace broker {

namespace asio = boost::asio;
using protocol::ErrorCode;

namespace {

// Takes the next character from UTF-8 text.
std::uint32_t next_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const std::uint32_t first = byte(0);
  std::size_t length = 1;
  std::uint32_t point = first;
  if (first >= 0xf0) {
    length = 4;
    point = (first & 0x07u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 |
            (byte(3) & 0x3fu);
  } else if (first >= 0xe0) {
    length = 3;
    point = (first & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  } else if (first >= 0xc0) {
    length = 2;
    point = (first & 0x1fu) << 6 | (byte(1) & 0x3fu);
  }
  text.remove_prefix(std::min(length, text.size()));
  return point;
}

}  // namespace

std::int32_t partition_for_group(std::string_view group, std::int32_t partitions) {
  std::uint32_t hash = 0;  // Java's String.hashCode, over UTF-16
  while (!group.empty()) {
    const std::uint32_t point = next_code_point(group);
    if (point < 0x10000) {
      hash = hash * 31 + point;
    } else {
      hash = hash * 31 + (0xd800 + ((point - 0x10000) >> 10));
      hash = hash * 31 + (0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  const auto signed_hash = static_cast<std::int32_t>(hash);
  if (signed_hash == std::numeric_limits<std::int32_t>::min()) return 0;
  return std::abs(signed_hash) % partitions;
}

template <class P>
CoordinatorPartitions<P>::CoordinatorPartitions(Broker& broker, const CoordinatorKind& kind,
                                                Open open)
    : broker_(broker), kind_(kind), open_(std::move(open)), by_shard_(broker.shard_count()) {}

template <class P>
void CoordinatorPartitions<P>::start() {
  for (std::size_t i = 0; i < by_shard_.size(); ++i) {
    Shard& shard = shard_at(i);
    spawn(shard, housekeeping(&shard));
  }
}

template <class P>
void CoordinatorPartitions<P>::spawn(Shard& shard, asio::awaitable<void> loop) {
  ++running_;
  asio::co_spawn(shard.executor(), std::move(loop), [this](std::exception_ptr failure) {
    --running_;
    if (failure)
      base::logger(kind_.keeps).error("a loop of the {} ended by an exception", kind_.keeps);
  });
}

template <class P>
TopicPtr CoordinatorPartitions<P>::topic_of(const Snapshot& catalog) const {
  const TopicPtr topic = catalog.find(kind_.topic);
  return topic && (kind_.serves_mirrored || !is_mirrored(*topic)) ? topic : nullptr;
}

template <class P>
std::optional<base::TopicPartition> CoordinatorPartitions<P>::locate(std::string_view key) const {
  const Shard* here = Shard::current();
  CHECK(here != nullptr);
  const TopicPtr topic = topic_of(*here->catalog());
  if (!topic) return std::nullopt;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  return Place{topic->id, partition_for_group(key, count)};
}

template <class P>
Shard& CoordinatorPartitions<P>::shard_of(const Place& id) const {
  return broker_.shard_of(id);
}

template <class P>
Shard& CoordinatorPartitions<P>::shard_at(std::size_t index) const {
  return broker_.shard(index);
}

template <class P>
std::shared_ptr<P> CoordinatorPartitions<P>::find_or_open(Shard& shard, const Place& id) {
  auto& mine = by_shard_[shard.index()];
  const auto at = mine.find(id.partition);
  if (at != mine.end()) {
    if (!at->second->ended()) return at->second;
    at->second->end(ErrorCode::not_coordinator);
    mine.erase(at);
  }
  if (shard.stopping()) return nullptr;
  auto partition = shard.find(id);
  if (!partition || partition->closed()) return nullptr;
  std::shared_ptr<P> opened = open_(shard, std::move(partition));
  mine.emplace(id.partition, opened);
  spawn(shard, opened->run());
  return opened;
}

template <class P>
std::vector<std::shared_ptr<P>> CoordinatorPartitions<P>::open_all(Shard& shard) {
  std::vector<std::shared_ptr<P>> all;
  const TopicPtr topic = topic_of(*shard.catalog());
  if (!topic) return all;
  const auto count = static_cast<std::int32_t>(topic->partitions.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const Place id = {topic->id, i};
    if (&shard_of(id) != &shard) continue;
    if (auto one = find_or_open(shard, id)) all.push_back(std::move(one));
  }
  return all;
}

template <class P>
asio::awaitable<void> CoordinatorPartitions<P>::housekeeping(Shard* shard) {
  open_all(*shard);
  const std::chrono::milliseconds interval(broker_.config().integer(kind_.clean_interval));
  for (;;) {
    co_await shard->stop_signal().wait(base::Clock::now() + interval);
    if (shard->stopping()) break;
    for (const auto& one : open_all(*shard)) co_await one->clean();
  }
  for (const auto& [index, one] : by_shard_[shard->index()])
    one->end(ErrorCode::coordinator_not_available);
}

template <class P>
asio::awaitable<base::Result<void>> CoordinatorPartitions<P>::ensure_topic(NewTopic topic) {
  const Snapshot& catalog = *Shard::current()->catalog();
  if (topic_of(catalog)) co_return base::Result<void>();
  if (catalog.find(kind_.topic)) co_return BrokerErrc::mirror_not_stopped;
  const auto made = co_await broker_.catalog().create_topic(std::move(topic));
  if (made.has_error() && made.error() != BrokerErrc::topic_exists) co_return made.error();
  co_return base::Result<void>();
}

template <class P>
void CoordinatorPartitions<P>::topic_deleted() {
  for (std::size_t i = 0; i < by_shard_.size(); ++i)
    asio::post(shard_at(i).executor(), [mine = &by_shard_[i]] {
      for (const auto& [index, one] : *mine) one->end(ErrorCode::not_coordinator);
      mine->clear();
    });
}

template class CoordinatorPartitions<GroupPartition>;
template class CoordinatorPartitions<TransactionPartition>;

}  // namespace broker
