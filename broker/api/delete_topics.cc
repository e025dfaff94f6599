// DeleteTopics, versions 1 to 6: by name, from v6 on by name or id. Nothing of it is served any
// more when the answer is sent; its files go after log.segment.delete.delay.ms. A topic that is
// being mirrored, or that holds state which nothing can replace, is refused with POLICY_VIOLATION,
// which released clients know and treat as final; KIP-1279's own code would be read as something
// else.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "broker/api/handlers.h"
#include "broker/broker.h"
#include "broker/error_map.h"
#include "broker/transaction_coordinator.h"
#include "protocol/error_code.h"
#include "protocol/messages/delete_topics.gen.h"

namespace broker::api {

namespace {

using protocol::DeleteTopicsRequest;
using protocol::DeleteTopicsResponse;
using protocol::ErrorCode;
using Doomed = DeleteTopicsRequest::Topic;

DeleteTopicsResponse::Response answer(const Doomed& wanted, ErrorCode code, std::string message) {
  DeleteTopicsResponse::Response response;
  response.name = wanted.name;
  response.topic_id = wanted.topic_id;
  response.error_code = static_cast<std::int16_t>(code);
  if (code != ErrorCode::none) response.error_message = std::move(message);
  return response;
}

std::optional<DeleteTopicsResponse::Response> refusal(const Doomed& wanted, const Topic& topic) {
  if (topic.name == mirror_state_topic)
    return answer(
        wanted, ErrorCode::policy_violation,
        fmt::format("'{}' holds the state of all mirrors and cannot be deleted", topic.name));
  if (topic.name == transaction_state_topic)
    return answer(
        wanted, ErrorCode::policy_violation,
        fmt::format("'{}' holds transactions that are decided and cannot be deleted", topic.name));
  if (is_mirrored(topic))
    return answer(wanted, ErrorCode::policy_violation,
                  fmt::format("'{0}' is a copy that the mirror '{1}' keeps: stop it first (calque "
                              "mirror stop {1} --topics {0})",
                              topic.name, topic.mirror));
  return std::nullopt;
}

Task<DeleteTopicsResponse::Response> remove(Broker& broker, Shard& shard, const Doomed wanted) {
  const bool by_id = !wanted.topic_id.is_zero();
  if (!by_id && !wanted.name)
    co_return answer(wanted, ErrorCode::invalid_request, "give a topic's name or its id");
  if (by_id && wanted.name)
    co_return answer(wanted, ErrorCode::invalid_request, "give a topic's name or its id, not both");
  const TopicPtr topic =
      by_id ? shard.catalog()->find(wanted.topic_id) : shard.catalog()->find(*wanted.name);
  if (!topic && by_id)
    co_return answer(wanted, ErrorCode::unknown_topic_id, "no topic here has this id");
  if (!topic)
    co_return answer(wanted, ErrorCode::unknown_topic_or_partition, "there is no such topic here");
  if (auto refused = refusal(wanted, *topic)) co_return *refused;
  const auto removed = co_await broker.catalog().delete_topic(topic->id);
  Doomed known = wanted;
  known.name = topic->name;
  known.topic_id = topic->id;
  if (removed.has_error())
    co_return answer(known, kafka_error(removed.error()), removed.error().message());
  co_return answer(known, ErrorCode::none, {});
}

// With delete.topic.enable=false. Before v3 there was no code of its own for that.
Response refuse_all(const Request& request, const std::vector<Doomed>& all) {
  DeleteTopicsResponse response;
  const ErrorCode code =
      request.version() < 3 ? ErrorCode::invalid_request : ErrorCode::topic_deletion_disabled;
  for (const Doomed& wanted : all)
    response.responses.push_back(
        answer(wanted, code, "deleting topics is switched off: delete.topic.enable=false"));
  return respond(request, response);
}

using Meaning = std::pair<std::string, base::Uuid>;

// What a request means: the id of the topic, else the name or id as it was given.
Meaning meaning(const Doomed& wanted, const Snapshot& catalog) {
  if (wanted.name && wanted.topic_id.is_zero())
    if (const TopicPtr topic = catalog.find(*wanted.name)) return {"", topic->id};
  return {wanted.name.value_or(""), wanted.topic_id};
}

// How often a topic stands in the request, and as what.
struct Mentions {
  int count = 0;
  std::optional<std::string> name;
  bool by_id = false;
};

// Kafka tells both of a topic that is named and meant by its id as well.
DeleteTopicsResponse::Response refuse_repeated(const Doomed& wanted, const Meaning& meant,
                                               const Mentions& mentions) {
  Doomed known = wanted;
  if (mentions.name && mentions.by_id) {
    known.name = mentions.name;
    known.topic_id = meant.second;
  }
  return answer(known, ErrorCode::invalid_request,
                "the topic stands in the request more than once");
}

}  // namespace

Task<Response> delete_topics(Broker& broker, Shard& shard, Request request) {
  const auto message = decode_request<DeleteTopicsRequest>(request);
  if (!message) co_return malformed();
  std::vector<Doomed> all = message->topics;
  for (const std::string& name : message->topic_names)
    all.push_back({.name = name, .topic_id = {}});
  const SnapshotPtr catalog = shard.catalog();
  if (!catalog->config().flag("delete.topic.enable")) co_return refuse_all(request, all);
  std::map<Meaning, Mentions> mentions;
  for (const Doomed& wanted : all) {
    Mentions& of_topic = mentions[meaning(wanted, *catalog)];
    ++of_topic.count;
    if (wanted.name)
      of_topic.name = wanted.name;
    else
      of_topic.by_id = true;
  }
  DeleteTopicsResponse response;
  for (const Doomed& wanted : all) {
    const Meaning meant = meaning(wanted, *catalog);
    Mentions& of_topic = mentions[meant];
    if (of_topic.count > 1)
      response.responses.push_back(refuse_repeated(wanted, meant, of_topic));
    else if (of_topic.count == 1)
      response.responses.push_back(co_await remove(broker, shard, wanted));
    of_topic.count = 0;  // answered
  }
  co_return respond(request, response);
}

}  // namespace broker::api
