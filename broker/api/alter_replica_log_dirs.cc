// AlterReplicaLogDirs, versions 1 and 2. There is one directory: a replica can only be moved to
// where it is, which is done at once.
#include <filesystem>
#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/alter_replica_log_dirs.gen.h"

namespace broker::api {

namespace {

using protocol::ErrorCode;

bool is_here(const std::string& path, const Broker& broker) {
  namespace fs = std::filesystem;
  const fs::path ours = fs::absolute(broker.config().log_directory()).lexically_normal();
  return fs::path(path).is_absolute() && fs::path(path).lexically_normal() == ours;
}

}  // namespace

Task<Response> alter_replica_log_dirs(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<protocol::AlterReplicaLogDirsRequest>(request);
  if (!asked) co_return malformed();
  std::map<std::string, std::map<std::int32_t, ErrorCode>> outcomes;
  for (const auto& directory : asked->dirs) {
    const bool here = is_here(directory.path, broker);
    for (const auto& from : directory.topics) {
      const TopicPtr topic = shard.catalog()->find(from.name);
      for (const std::int32_t partition : from.partitions)
        outcomes[from.name][partition] = !here ? ErrorCode::log_dir_not_found
                                         : has_partition(topic, partition)
                                             ? ErrorCode::none
                                             : ErrorCode::unknown_topic_or_partition;
    }
  }
  protocol::AlterReplicaLogDirsResponse message;
  for (const auto& [name, partitions] : outcomes) {
    auto& topic = message.results.emplace_back();
    topic.topic_name = name;
    for (const auto& [index, code] : partitions) {
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = index;
      partition.error_code = number(code);
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
