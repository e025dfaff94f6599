// ElectLeaders, versions 0 to 2. Each partition has one replica, which leads as long as the broker
// runs: an election is never needed. v1 adds the kind of election and an error for the whole
// answer.
#include <fmt/format.h>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/elect_leaders.gen.h"

namespace broker::api {

namespace {

using protocol::ElectLeadersRequest;
using protocol::ElectLeadersResponse;
using protocol::ErrorCode;
using ElectionResult = ElectLeadersResponse::ReplicaElectionResult;

constexpr std::int8_t preferred_replica = 0;
constexpr std::int8_t unclean = 1;

void refuse(ElectionResult& result, std::int32_t partition, ErrorCode code, std::string message) {
  auto& one = result.partition_result.emplace_back();
  one.partition_id = partition;
  one.error_code = number(code);
  one.error_message = std::move(message);
}

// Of all topics only those partitions are listed that were elected: none.
Response answer_for_all(const Request& request, const Snapshot& catalog) {
  ElectLeadersResponse message;
  for (const auto& [name, topic] : catalog.topics())
    message.replica_election_results.emplace_back().topic = name;
  return respond(request, message);
}

}  // namespace

Task<Response> elect_leaders(Broker&, Shard& shard, Request request) {
  const auto asked = decode_request<ElectLeadersRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  const bool known = asked->election_type == preferred_replica || asked->election_type == unclean;
  ElectLeadersResponse message;
  // Kafka looks at the kind when it has something to elect.
  const bool nothing = asked->topic_partitions && asked->topic_partitions->empty();
  if (!known && !nothing) message.error_code = number(ErrorCode::invalid_request);
  if (known && !asked->topic_partitions) co_return answer_for_all(request, *catalog);
  if (asked->topic_partitions) {
    for (const auto& from : *asked->topic_partitions) {
      ElectionResult& result = message.replica_election_results.emplace_back();
      result.topic = from.topic;
      const TopicPtr topic = catalog->find(from.topic);
      for (const std::int32_t partition : from.partitions) {
        if (!known)
          refuse(result, partition, ErrorCode::invalid_request,
                 fmt::format("there is no election of type {}", asked->election_type));
        else if (!has_partition(topic, partition))
          refuse(result, partition, ErrorCode::unknown_topic_or_partition,
                 fmt::format("there is no partition {}-{} here", from.topic, partition));
        else
          refuse(result, partition, ErrorCode::election_not_needed,
                 "the only replica leads the partition already");
      }
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
