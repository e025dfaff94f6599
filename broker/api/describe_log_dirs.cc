// DescribeLogDirs, versions 1 to 5: the one directory of this broker and the logs in it. v3 adds an
// error for the whole answer, v4 the size of the file system, v5 whether the directory is cordoned:
// it never is. Topics that are not here are passed over, as by Kafka.
#include <filesystem>
#include <map>
#include <set>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/log_store.h"
#include "broker/partition.h"
#include "protocol/messages/describe_log_dirs.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeLogDirsRequest;
using protocol::DescribeLogDirsResponse;
using DirectoryResult = DescribeLogDirsResponse::Result;
// By topic name.
using Sizes = std::map<std::string, std::map<std::int32_t, std::uint64_t>>;

// Absent: all.
using WantedPartitions = std::optional<std::map<std::string, std::set<std::int32_t>>>;

bool is_wanted(const WantedPartitions& wanted, const Partition& partition) {
  if (!wanted) return true;
  const auto topic = wanted->find(partition.topic().name);
  return topic != wanted->end() && topic->second.contains(partition.index());
}

Task<Sizes> sizes_on_shard(Shard& shard, const std::shared_ptr<const WantedPartitions> wanted) {
  Sizes sizes;
  for (const auto& [id, partition] : shard.partitions())
    if (is_wanted(*wanted, *partition))
      sizes[partition->topic().name][partition->index()] = partition->log().size_bytes();
  co_return sizes;
}

WantedPartitions wanted_in(const DescribeLogDirsRequest& asked) {
  if (!asked.topics) return std::nullopt;
  WantedPartitions wanted(std::in_place);
  for (const auto& topic : *asked.topics)
    (*wanted)[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
  return wanted;
}

}  // namespace

Task<Response> describe_log_dirs(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<DescribeLogDirsRequest>(request);
  if (!asked) co_return malformed();
  const auto wanted = std::make_shared<const WantedPartitions>(wanted_in(*asked));
  std::vector<Job<Sizes>> jobs;
  for (std::size_t i = 0; i < broker.shard_count(); ++i) {
    Shard* const target = &broker.shard(i);
    auto run = [target, wanted] { return sizes_on_shard(*target, wanted); };
    jobs.push_back({target, std::move(run)});
  }
  Sizes sizes;
  for (const Sizes& some : co_await on_each(std::move(jobs)))
    for (const auto& [topic, partitions] : some)
      sizes[topic].insert(partitions.begin(), partitions.end());

  DescribeLogDirsResponse message;
  DirectoryResult& result = message.results.emplace_back();
  result.log_dir = std::filesystem::absolute(broker.config().log_directory()).lexically_normal();
  for (const auto& [name, partitions] : sizes) {
    auto& topic = result.topics.emplace_back();
    topic.name = name;
    for (const auto& [index, bytes] : partitions) {
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = index;
      partition.partition_size = static_cast<std::int64_t>(bytes);
    }
  }
  auto ask = [&broker] { return broker.logs().space(); };
  const auto space = co_await shard.on_disk(std::move(ask));
  if (space.has_value()) {
    result.total_bytes = static_cast<std::int64_t>(space->total_bytes);
    result.usable_bytes = static_cast<std::int64_t>(space->free_bytes);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
