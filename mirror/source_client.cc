#include "mirror/source_client.h"

#include <algorithm>
#include <utility>

#include "mirror/states.h"
#include "protocol/messages/describe_cluster_mirrors.gen.h"
#include "protocol/messages/list_groups.gen.h"
#include "protocol/messages/list_offsets.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_fetch.gen.h"
#include "protocol/messages/offset_for_leader_epoch.gen.h"

namespace mirror {
namespace {

constexpr std::int16_t trusted_epochs_since = 9;

template <class T>
std::optional<T> absent_if_negative(T value) {
  if (value < 0) return std::nullopt;
  return value;
}

SourceMetadata::Topic topic_of(std::int16_t version, protocol::MetadataResponse::Topic&& from) {
  SourceMetadata::Topic topic{.name = std::move(from.name).value_or(""),
                              .id = from.topic_id,
                              .error = from.error_code,
                              .internal = from.is_internal,
                              .partitions = {}};
  // Partition numbers come from outside: only a dense range is taken.
  topic.partitions.resize(from.partitions.size());
  for (const auto& partition : from.partitions) {
    const auto index = static_cast<std::size_t>(partition.partition_index);
    if (partition.partition_index < 0 || index >= topic.partitions.size()) {
      topic.error = static_cast<std::int16_t>(protocol::ErrorCode::invalid_partitions);
      break;
    }
    SourceMetadata::Partition& to = topic.partitions[index];
    to.error = partition.error_code;
    to.leader = absent_if_negative(partition.leader_id);
    if (version >= trusted_epochs_since)
      to.leader_epoch = absent_if_negative(partition.leader_epoch);
  }
  return topic;
}

// Groups questions by topic, as the requests want them. Answers come in any order.
template <class Request, class Fill>
void group_by_topic(const std::vector<PartitionQuestion>& questions, Request& request, Fill fill) {
  std::map<std::string, std::size_t> places;
  for (const PartitionQuestion& question : questions) {
    const auto [place, is_new] = places.try_emplace(question.topic, request.topics.size());
    if (is_new) request.topics.emplace_back();
    fill(request.topics[place->second], question);
  }
}

using AnswerPlaces = std::map<std::pair<std::string, std::int32_t>, std::size_t>;
AnswerPlaces places_of(const std::vector<PartitionQuestion>& questions) {
  AnswerPlaces places;
  for (std::size_t i = 0; i < questions.size(); ++i)
    places[{questions[i].topic, questions[i].partition}] = i;
  return places;
}

// What the source left out counts as an error that may pass.
std::vector<PartitionAnswer> unanswered(std::size_t n) {
  constexpr auto left_out = static_cast<std::int16_t>(protocol::ErrorCode::unknown_server_error);
  return std::vector<PartitionAnswer>(n, PartitionAnswer{left_out, std::nullopt, std::nullopt});
}

int rank(Reverse r) {
  switch (r) {
    case Reverse::loop:
      return 3;
    case Reverse::not_stopped:
      return 2;
    case Reverse::stopped:
      return 1;
    default:
      return 0;
  }
}

ReverseAnswer worse(const ReverseAnswer& a, const ReverseAnswer& b) {
  ReverseAnswer out = rank(a.reverse) >= rank(b.reverse) ? a : b;
  const auto order = [](const Position& p) { return std::pair(p.epoch.value_or(-1), p.offset); };
  if (a.position && (!b.position || order(*a.position) > order(*b.position)))
    out.position = a.position;
  else
    out.position = b.position;
  return out;
}

ReverseAnswer reverse_of(
    const protocol::DescribeClusterMirrorsResponse::Mirror::Topic& topic,
    const protocol::DescribeClusterMirrorsResponse::Mirror::Topic::Partition& partition) {
  const auto copies = [](const std::string& state) {
    return state == name(MirrorState::mirroring) || state == name(MirrorState::paused);
  };
  ReverseAnswer answer;
  if (copies(topic.desired_state) || copies(partition.state_value))
    answer.reverse = Reverse::loop;
  else if (partition.state_value == name(MirrorState::stopped))
    answer.reverse = Reverse::stopped;
  else
    answer.reverse = Reverse::not_stopped;
  if (partition.last_mirror_offset >= 0)
    answer.position =
        Position{absent_if_negative(partition.last_mirror_epoch), partition.last_mirror_offset};
  return answer;
}

}  // namespace

Reverse ReverseMirrors::worst_of(const std::string& topic) const {
  Reverse worst = supported ? Reverse::none : Reverse::unsupported;
  for (auto it = partitions.lower_bound({topic, 0}); it != partitions.end(); ++it) {
    if (it->first.first != topic) break;
    if (rank(it->second.reverse) > rank(worst)) worst = it->second.reverse;
  }
  return worst;
}

SourceClient::SourceClient(boost::asio::any_io_executor executor, SourceClientOptions options)
    : executor_(std::move(executor)), options_(std::move(options)) {}

SourceClient::~SourceClient() = default;

void SourceClient::close() {
  closed_ = true;
  if (any_) any_->close();
  for (auto& [node, connection] : connections_)
    if (connection) connection->close();
}

std::string SourceClient::describe(const base::Error& error) const {
  return describe_error(error, options_.cluster_id.value_or(""), seen_cluster_id_);
}

void SourceClient::ask_another() {
  if (any_ && candidates().size() > 1) any_->close();
}

std::optional<Endpoint> SourceClient::endpoint_of(base::NodeId node) const {
  const auto found = brokers_.find(node);
  if (found == brokers_.end()) return std::nullopt;
  return found->second;
}

std::vector<Endpoint> SourceClient::candidates() const {
  std::vector<Endpoint> all;
  for (const auto& [node, endpoint] : brokers_) all.push_back(endpoint);
  for (const Endpoint& endpoint : options_.bootstrap)
    if (std::ranges::find(all, endpoint) == all.end()) all.push_back(endpoint);
  return all;
}

boost::asio::awaitable<base::Result<void>> SourceClient::open(Connection& slot, Endpoint endpoint) {
  if (closed_) co_return SourceErrc::closed;
  slot = std::make_unique<SourceConnection>(executor_, std::move(endpoint), options_.connection);
  auto opened = co_await slot->open(options_.cluster_id);
  if (!slot->cluster_id().empty()) seen_cluster_id_ = slot->cluster_id();
  if (closed_) co_return SourceErrc::closed;
  co_return opened;
}

Task<SourceConnection*> SourceClient::any_broker() {
  if (any_ && any_->is_open()) co_return any_.get();
  const std::vector<Endpoint> all = candidates();
  base::Error last = SourceErrc::no_broker;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Endpoint endpoint = all[next_candidate_++ % all.size()];
    auto opened = co_await open(any_, endpoint);
    if (opened) co_return any_.get();
    last = opened.error();
    // Never go on to the next address as if nothing had been seen.
    if (closed_ || last == SourceErrc::cluster_changed) break;
  }
  co_return last;
}

Task<SourceConnection*> SourceClient::broker(base::NodeId node) {
  const auto endpoint = endpoint_of(node);
  if (!endpoint) co_return SourceErrc::unknown_broker;
  Connection& slot = connections_[node];  // a map's nodes stay where they are
  if (slot && slot->is_open() && slot->endpoint() == *endpoint) co_return slot.get();
  CO_TRY_VOID(co_await open(slot, *endpoint));
  co_return slot.get();
}

// Answers the version that was spoken. A connection that was idle may have been closed by the
// broker meanwhile, so a failure on one that was used before is tried once more on a new one.
template <class Request, class Response>
Task<std::int16_t> SourceClient::ask(std::optional<base::NodeId> node, std::int16_t at_least,
                                     const Request& request, Response& response,
                                     std::int16_t at_most) {
  for (bool again = false;; again = true) {
    const bool reused =
        node ? connections_.contains(*node) && connections_[*node] && connections_[*node]->is_open()
             : any_ && any_->is_open();
    auto connection = node ? co_await broker(*node) : co_await any_broker();
    if (!connection) co_return connection.error();
    const auto version = (*connection)->version_of(Request::api_key, at_least, at_most);
    if (!version) co_return SourceErrc::unsupported;
    auto done = co_await (*connection)->call(request, response, *version);
    if (done) co_return *version;
    if (closed_) co_return SourceErrc::closed;
    if (!reused || again || done.error() == SourceErrc::timed_out) co_return done.error();
  }
}

Task<SourceMetadata> SourceClient::metadata(std::optional<std::vector<std::string>> topics) {
  protocol::MetadataRequest request;
  request.allow_auto_topic_creation = false;
  if (!topics) {
    request.topics.reset();
  } else {
    for (std::string& topic : *topics) {
      auto& entry = request.topics->emplace_back();
      entry.name = std::move(topic);
    }
  }
  protocol::MetadataResponse response;
  constexpr std::int16_t knows_no_auto_creation = 4;
  CO_TRY(const std::int16_t version,
         co_await ask(std::nullopt, knows_no_auto_creation, request, response));
  if (response.error_code != 0) co_return kafka_error(response.error_code);
  SourceMetadata out;
  out.cluster_id = response.cluster_id.value_or("");
  seen_cluster_id_ = out.cluster_id;
  if (out.cluster_id.empty()) co_return SourceErrc::no_cluster_id;
  if (options_.cluster_id && *options_.cluster_id != out.cluster_id)
    co_return SourceErrc::cluster_changed;
  for (const auto& entry : response.brokers)
    if (entry.port > 0 && entry.port <= UINT16_MAX && !entry.host.empty())
      out.brokers[entry.node_id] = {entry.host, static_cast<std::uint16_t>(entry.port)};
  for (auto& topic : response.topics) out.topics.push_back(topic_of(version, std::move(topic)));
  brokers_ = out.brokers;
  std::erase_if(connections_, [this](auto& entry) { return !brokers_.contains(entry.first); });
  co_return out;
}

Task<std::vector<PartitionAnswer>> SourceClient::epoch_ends(
    base::NodeId node, std::vector<PartitionQuestion> questions) {
  protocol::OffsetForLeaderEpochRequest request;
  request.replica_id = -1;
  group_by_topic(questions, request, [](auto& topic, const PartitionQuestion& question) {
    topic.topic = question.topic;
    auto& entry = topic.partitions.emplace_back();
    entry.partition = question.partition;
    entry.current_leader_epoch = question.current_epoch.value_or(-1);
    entry.leader_epoch = question.asked_epoch.value_or(-1);
  });
  protocol::OffsetForLeaderEpochResponse response;
  CO_TRY_VOID(co_await ask(node, 2, request, response));
  std::vector<PartitionAnswer> answers = unanswered(questions.size());
  const AnswerPlaces places = places_of(questions);
  for (const auto& topic : response.topics)
    for (const auto& partition : topic.partitions)
      if (const auto place = places.find({topic.topic, partition.partition}); place != places.end())
        answers[place->second] = {partition.error_code, absent_if_negative(partition.leader_epoch),
                                  absent_if_negative(partition.end_offset)};
  co_return answers;
}

Task<std::vector<PartitionAnswer>> SourceClient::offsets(base::NodeId node, OffsetSpec spec,
                                                         std::vector<PartitionQuestion> questions) {
  protocol::ListOffsetsRequest request;
  request.replica_id = -1;  // a consumer: "latest" is then the high watermark
  group_by_topic(questions, request, [spec](auto& topic, const PartitionQuestion& question) {
    topic.name = question.topic;
    auto& entry = topic.partitions.emplace_back();
    entry.partition_index = question.partition;
    entry.current_leader_epoch = question.current_epoch.value_or(-1);
    entry.timestamp = static_cast<std::int64_t>(spec);
  });
  protocol::ListOffsetsResponse response;
  CO_TRY_VOID(co_await ask(node, 1, request, response));
  std::vector<PartitionAnswer> answers = unanswered(questions.size());
  const AnswerPlaces places = places_of(questions);
  for (const auto& topic : response.topics)
    for (const auto& partition : topic.partitions)
      if (const auto place = places.find({topic.name, partition.partition_index});
          place != places.end())
        answers[place->second] = {partition.error_code, absent_if_negative(partition.leader_epoch),
                                  absent_if_negative(partition.offset)};
  co_return answers;
}

// ---- Consumer groups.

namespace {

constexpr std::int16_t offset_fetch_of_all_topics = 2;
constexpr std::int16_t offset_fetch_of_many_groups = 8;
// From version 10 on topics are named by their ids, which say nothing new here.
constexpr std::int16_t offset_fetch_by_name = 9;

template <class Topics>
void take_offsets(Topics&& topics, GroupAnswer& answer) {
  for (auto& topic : topics)
    for (auto& partition : topic.partitions) {
      if (partition.error_code != 0) {
        if (answer.error == 0) answer.error = partition.error_code;
        continue;
      }
      if (partition.committed_offset < 0) continue;  // 0 is an offset, -1 is none
      answer.group.offsets.push_back(
          {.topic = topic.name,
           .partition = partition.partition_index,
           .committed = {.offset = partition.committed_offset,
                         .leader_epoch = absent_if_negative(partition.committed_leader_epoch),
                         .metadata = std::move(partition.metadata).value_or("")}});
    }
}

}  // namespace

Task<std::int16_t> SourceClient::version_at(base::NodeId node, protocol::ApiKey key,
                                            std::int16_t at_least, std::int16_t at_most) {
  CO_TRY(const SourceConnection* connection, co_await broker(node));
  const auto version = connection->version_of(key, at_least, at_most);
  if (!version) co_return SourceErrc::unsupported;
  co_return *version;
}

Task<std::vector<ListedGroup>> SourceClient::groups(base::NodeId node) {
  protocol::ListGroupsRequest request;
  request.types_filter = {"classic", "consumer"};
  protocol::ListGroupsResponse response;
  CO_TRY_VOID(co_await ask(node, 0, request, response));
  if (response.error_code != 0) co_return kafka_error(response.error_code);
  std::vector<ListedGroup> out;
  for (auto& group : response.groups)
    out.push_back(
        {std::move(group.group_id), std::move(group.protocol_type), std::move(group.group_type)});
  co_return out;
}

// Before Kafka 3.0 each group is a request of its own; they are sent together.
Task<std::vector<GroupAnswer>> SourceClient::offsets_one_by_one(base::NodeId node,
                                                                std::vector<std::string> groups) {
  std::vector<protocol::OffsetFetchRequest> requests(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    requests[i].group_id = groups[i];
    requests[i].topics.reset();
  }
  std::vector<GroupAnswer> answers;
  const auto take = [&](std::size_t i, protocol::OffsetFetchResponse response) {
    GroupAnswer answer{.error = response.error_code,
                       .group = {.name = std::move(groups[i]), .offsets = {}}};
    if (response.error_code == 0) take_offsets(response.topics, answer);
    answers.push_back(std::move(answer));
  };
  CO_TRY(SourceConnection* const connection, co_await broker(node));
  const auto version = connection->version_of(
      protocol::ApiKey::offset_fetch, offset_fetch_of_all_topics, offset_fetch_of_many_groups - 1);
  if (!version) co_return SourceErrc::unsupported;
  CO_TRY_VOID(
      co_await connection->call_all<protocol::OffsetFetchResponse>(requests, *version, take));
  co_return answers;
}

Task<std::vector<GroupAnswer>> SourceClient::group_offsets(base::NodeId node,
                                                           std::vector<std::string> groups) {
  CO_TRY(const std::int16_t version,
         co_await version_at(node, protocol::ApiKey::offset_fetch, offset_fetch_of_all_topics,
                             offset_fetch_by_name));
  if (version < offset_fetch_of_many_groups)
    co_return co_await offsets_one_by_one(node, std::move(groups));
  std::vector<GroupAnswer> answers;
  protocol::OffsetFetchRequest request;
  for (const std::string& group : groups) {
    auto& entry = request.groups.emplace_back();
    entry.group_id = group;
    entry.topics.reset();
  }
  protocol::OffsetFetchResponse response;
  CO_TRY_VOID(
      co_await ask(node, offset_fetch_of_many_groups, request, response, offset_fetch_by_name));
  std::map<std::string_view, std::size_t> places;
  for (std::string& group : groups) {
    constexpr auto left_out = static_cast<std::int16_t>(protocol::ErrorCode::unknown_server_error);
    answers.push_back({.error = left_out, .group = {.name = std::move(group), .offsets = {}}});
  }
  for (std::size_t i = 0; i < answers.size(); ++i) places[answers[i].group.name] = i;
  for (auto& group : response.groups) {
    const auto place = places.find(group.group_id);
    if (place == places.end()) continue;
    answers[place->second].error = group.error_code;
    if (group.error_code == 0) take_offsets(group.topics, answers[place->second]);
  }
  co_return answers;
}

// Only two-cluster loops are seen, as in the KIP. A source that does not advertise the API has no
// cluster mirrors.
Task<ReverseMirrors> SourceClient::reverse_mirrors(std::string our_cluster_id,
                                                   std::vector<std::string> topics) {
  ReverseMirrors out;
  protocol::DescribeClusterMirrorsRequest request;
  request.include_mirror_state = true;
  request.cluster_id = std::move(our_cluster_id);
  request.topics.emplace();
  for (std::string& topic : topics) {
    auto& entry = request.topics->emplace_back();
    entry.topic_name = std::move(topic);
  }
  protocol::DescribeClusterMirrorsResponse response;
  const auto asked = co_await ask(std::nullopt, 0, request, response);
  if (!asked && asked.error() == SourceErrc::unsupported) co_return out;
  if (!asked) co_return asked.error();
  if (response.error_code != 0) co_return kafka_error(response.error_code);
  out.supported = true;
  for (const auto& mirror : response.mirrors) {
    if (mirror.error_code != 0) co_return kafka_error(mirror.error_code);
    for (const auto& topic : mirror.topics)
      for (const auto& partition : topic.partitions) {
        ReverseAnswer& slot = out.partitions[{topic.topic_name, partition.partition_index}];
        slot = worse(slot, reverse_of(topic, partition));
      }
  }
  co_return out;
}

}  // namespace mirror
