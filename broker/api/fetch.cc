// Fetch v4-18, for consumers and mirrors.
//   v4 isolation level; v5 log start; v7 incremental sessions (fetch_sessions.h); v9 leader epoch
//   check; v11 rack (one broker, ignored); v12 diverging epoch; v13 topic ids; v16 the current
//   leader beside NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.
//   Records are never null (A03). The first partition with records gets at least one whole batch,
//   whatever the limits (A12). A long poll waits until min_bytes have come in, then reads once
//   more. Partitions that do not exist do not end it; with nothing else in the request there is no
//   wait. A replica is told that it is none: this broker has no followers.
#include <algorithm>
#include <unordered_map>

#include "broker/api/fetch_read.h"
#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/fetch.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using PartitionAnswer = FetchResponse::Response::Partition;
using Items = std::vector<FetchItem>;

// What a broker says that copies a log from one of its own disks to another.
constexpr std::int32_t future_replica_id = -3;
constexpr std::int32_t epoch_final = -1;
constexpr std::int32_t epoch_initial = 0;
constexpr std::int16_t ids_since = 13;
constexpr std::int16_t leader_since = 16;
constexpr std::int16_t storage_error_since = 6;

std::int32_t replica_of(const FetchRequest& asked, std::int16_t version) {
  return version >= 15 ? asked.replica_state.replica_id : asked.replica_id;
}

FetchRules rules_of(const Broker& broker, const FetchRequest& asked, const Request& request) {
  const std::int16_t version = request.version();
  FetchRules rules;
  const auto limit = static_cast<std::int32_t>(broker.config().fetch_bytes_max());
  rules.wait_ms = asked.max_wait_ms;
  rules.bytes_max = std::min({asked.max_bytes, limit, request.fetch_bytes_max});
  rules.bytes_min = std::min(asked.min_bytes, rules.bytes_max);
  const std::int32_t replica = replica_of(asked, version);
  if (replica < 0 && replica != future_replica_id)
    rules.isolation = static_cast<Isolation>(asked.isolation_level);
  rules.as_replica = replica >= 0;
  rules.by_id = version >= ids_since;
  return rules;
}

// The partitions of the request. One that is named twice counts once, as it is named last.
std::vector<FetchTarget> targets_of(const FetchRequest& asked) {
  std::vector<FetchTarget> targets;
  std::size_t count = 0;
  for (const FetchRequest::Topic& topic : asked.topics) count += topic.partitions.size();
  targets.reserve(count);
  std::unordered_map<const FetchTarget*, FetchTarget*, FetchTargetHash, FetchTargetEqual> places;
  if (count > 1) places.reserve(count);
  for (const FetchRequest::Topic& topic : asked.topics) {
    for (const FetchRequest::Topic::Partition& one : topic.partitions) {
      FetchTarget& target = targets.emplace_back();
      target.topic = topic.topic;
      target.topic_id = topic.topic_id;
      target.partition = one.partition;
      target.offset = one.fetch_offset;
      target.bytes_max = one.partition_max_bytes;
      target.current_leader_epoch = epoch_of(one.current_leader_epoch);
      target.last_fetched_epoch = epoch_of(one.last_fetched_epoch);
      if (count == 1) return targets;
      const auto [known, added] = places.emplace(&target, &target);
      if (added) continue;
      *known->second = std::move(target);
      targets.pop_back();
    }
  }
  return targets;
}

std::vector<FetchTarget> forgotten_of(const FetchRequest& asked) {
  std::vector<FetchTarget> targets;
  for (const FetchRequest::ForgottenTopic& topic : asked.forgotten_topics_data) {
    for (const std::int32_t partition : topic.partitions) {
      FetchTarget& target = targets.emplace_back();
      target.topic = topic.topic;
      target.topic_id = topic.topic_id;
      target.partition = partition;
    }
  }
  return targets;
}

FetchOutcome outcome_of(const FetchItem& item) {
  FetchOutcome outcome;
  outcome.error = item.error() != ErrorCode::none;
  if (outcome.error) return outcome;
  outcome.high_watermark = item.answer.high_watermark;
  outcome.log_start = item.answer.log_start;
  outcome.records = item.answer.slice.size > 0;
  outcome.diverging = item.answer.diverging.has_value();
  return outcome;
}

std::vector<FetchOutcome> outcomes_of(const Items& items) {
  std::vector<FetchOutcome> outcomes;
  outcomes.reserve(items.size());
  for (const FetchItem& item : items) outcomes.push_back(outcome_of(item));
  return outcomes;
}

std::vector<FetchTarget> targets_of(const Items& items) {
  std::vector<FetchTarget> targets;
  targets.reserve(items.size());
  for (const FetchItem& item : items) targets.push_back(item.target);
  return targets;
}

std::vector<bool> unnamed_in(const std::vector<FetchTarget>& targets) {
  std::vector<bool> unnamed(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) unnamed[i] = targets[i].topic.empty();
  return unnamed;
}

std::vector<FetchSessions::Learned> learned_in(const Items& items,
                                               const std::vector<bool>& unnamed) {
  std::vector<FetchSessions::Learned> learned;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (unnamed[i] && !items[i].target.topic.empty()) learned.push_back({i, items[i].target.topic});
  return learned;
}

std::int64_t session_now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             base::Clock::now().time_since_epoch())
      .count();
}

PartitionAnswer answer_of(const FetchItem& item, const FetchRules& rules, std::int16_t version) {
  PartitionAnswer out;
  out.partition_index = item.target.partition;
  out.high_watermark = out.last_stable_offset = out.log_start_offset = -1;
  out.preferred_read_replica = -1;
  const ErrorCode error = item.error();
  if (error != ErrorCode::none) {
    // Before version 6 clients do not know that error to be one that passes.
    out.error_code = number(error == ErrorCode::kafka_storage_error && version < storage_error_since
                                ? ErrorCode::not_leader_or_follower
                                : error);
    if (item.unknown == ErrorCode::none) out.aborted_transactions.reset();
    return out;
  }
  out.high_watermark = item.answer.high_watermark;
  out.last_stable_offset = item.answer.last_stable_offset;
  out.log_start_offset = item.answer.log_start;
  out.aborted_transactions.reset();
  if (item.answer.diverging) {
    out.diverging_epoch.epoch = item.answer.diverging->epoch;
    out.diverging_epoch.end_offset = item.answer.diverging->end_offset;
  } else if (rules.isolation == Isolation::read_committed) {
    auto& aborted = out.aborted_transactions.emplace();
    for (const storage::AbortedTransaction& one : item.answer.aborted)
      aborted.push_back({one.producer_id, one.first_offset});
  }
  if (item.answer.slice.size > 0) out.records.deferred = item.answer.slice.size;
  return out;
}

// Where clients find the leader that they missed: with one broker, here. Replicas know addresses.
void name_leader(const Broker& broker, const Request& request, const Snapshot& catalog,
                 const FetchItem& item, const FetchRules& rules, PartitionAnswer& out,
                 FetchResponse& message) {
  if (request.version() < leader_since ||
      (out.error_code != number(ErrorCode::not_leader_or_follower) &&
       out.error_code != number(ErrorCode::fenced_leader_epoch)))
    return;
  const TopicPtr topic = catalog.find(item.target.topic);
  if (!has_partition(topic, item.target.partition)) return;
  out.current_leader.leader_id = broker.node_id();
  out.current_leader.leader_epoch =
      topic->partitions[static_cast<std::size_t>(item.target.partition)].leader_epoch;
  if (rules.as_replica || !message.node_endpoints.empty()) return;
  const Endpoint& here = broker.advertised(request.connection.listener);
  FetchResponse::NodeEndpoint& node = message.node_endpoints.emplace_back();
  node.node_id = broker.node_id();
  node.host = here.host;
  node.port = here.port;
}

// `told`: which items the answer has; empty: all.
Response encode_answer(const Broker& broker, const Shard& shard, const Request& request,
                       Items& items, const std::vector<bool>& told, const FetchRules& rules,
                       FetchResponse message) {
  std::vector<storage::FileSlice> slices;
  const Snapshot& catalog = *shard.catalog();
  const auto add = [&](FetchItem& item) {
    FetchResponse::Response* to = message.responses.empty() ? nullptr : &message.responses.back();
    const bool same = to != nullptr && (rules.by_id ? to->topic_id == item.target.topic_id
                                                    : to->topic == item.target.topic);
    if (!same) {
      to = &message.responses.emplace_back();
      to->topic = item.target.topic;
      to->topic_id = item.target.topic_id;
    }
    PartitionAnswer& out = to->partitions.emplace_back(answer_of(item, rules, request.version()));
    name_leader(broker, request, catalog, item, rules, out, message);
    if (item.answer.slice.size > 0) slices.push_back(std::move(item.answer.slice));
  };
  // Those that do not exist come last, as in Kafka.
  for (const bool exist : {true, false})
    for (std::size_t i = 0; i < items.size(); ++i)
      if ((items[i].unknown == ErrorCode::none) == exist && (told.empty() || told[i]))
        add(items[i]);
  Response response = respond(request, message);
  response.slices = std::move(slices);
  return response;
}

Response refuse(const Request& request, ErrorCode error, std::int32_t session = 0) {
  FetchResponse message;
  message.error_code = number(error);
  message.session_id = session;
  return respond(request, message);
}

// Isolation levels that do not exist. Before topic ids the error stands beside every partition.
Response refuse_all(const Request& request, const FetchRequest& asked) {
  FetchResponse message;
  message.error_code = number(ErrorCode::unknown_server_error);
  if (request.version() < ids_since) {
    for (const FetchRequest::Topic& topic : asked.topics) {
      FetchResponse::Response& to = message.responses.emplace_back();
      to.topic = topic.topic;
      for (const FetchRequest::Topic::Partition& one : topic.partitions) {
        PartitionAnswer& out = to.partitions.emplace_back();
        out.partition_index = one.partition;
        out.error_code = message.error_code;
        out.high_watermark = -1;
      }
    }
  }
  return respond(request, message);
}

// A request that names all its partitions: without a session, or to begin one.
Task<Response> fetch_full(Broker& broker, Shard& shard, Request request, FetchRules rules,
                          const FetchRequest& asked) {
  if (const auto owner = FetchSessions::shard_of(asked.session_id, broker.shard_count())) {
    Shard* const home = &broker.shard(*owner);
    auto close = [home, id = asked.session_id]() -> Task<bool> {
      home->fetch_sessions().close(id);
      co_return true;
    };
    co_await on(*home, std::move(close));
  }
  Items items = resolve(broker, shard, targets_of(asked), rules);
  co_await read(broker, shard, items, rules);
  FetchResponse message;
  if (asked.session_epoch == epoch_initial)
    message.session_id = shard.fetch_sessions().create(
        targets_of(items), outcomes_of(items), rules.by_id, rules.as_replica, session_now_ms());
  co_return encode_answer(broker, shard, request, items, {}, rules, std::move(message));
}

Task<Response> fetch_incremental(Broker& broker, Shard& shard, Request request, FetchRules rules,
                                 const FetchRequest& asked) {
  const std::int32_t id = asked.session_id;
  const auto owner = FetchSessions::shard_of(id, broker.shard_count());
  if (!owner) co_return refuse(request, ErrorCode::fetch_session_id_not_found);
  Shard* const home = &broker.shard(*owner);
  const std::int32_t epoch = asked.session_epoch;
  auto resume = [home, id, epoch, by_id = rules.by_id, changed = targets_of(asked),
                 forgotten = forgotten_of(asked)]() mutable -> Task<FetchSessions::Resumed> {
    co_return home->fetch_sessions().resume(id, epoch, by_id, std::move(changed), forgotten,
                                            session_now_ms());
  };
  FetchSessions::Resumed resumed = co_await on(*home, std::move(resume));
  if (resumed.error != ErrorCode::none) co_return refuse(request, resumed.error);
  const std::vector<bool> unnamed = unnamed_in(resumed.targets);
  Items items = resolve(broker, shard, std::move(resumed.targets), rules);
  co_await read(broker, shard, items, rules);
  FetchResponse message;
  std::vector<bool> told;
  if (!resumed.ended) {
    auto finish =
        [home, id, epoch, outcomes = outcomes_of(items),
         learned = learned_in(items, unnamed)]() mutable -> Task<std::optional<std::vector<bool>>> {
      co_return home->fetch_sessions().finish(id, epoch, outcomes, std::move(learned));
    };
    auto finished = co_await on(*home, std::move(finish));
    if (!finished) co_return refuse(request, ErrorCode::invalid_fetch_session_epoch, id);
    told = std::move(*finished);
    message.session_id = id;
  }
  co_return encode_answer(broker, shard, request, items, told, rules, std::move(message));
}

}  // namespace

Task<Response> fetch(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<FetchRequest>(request);
  if (!asked) co_return malformed();
  const FetchRules rules = rules_of(broker, *asked, request);
  if (rules.isolation != Isolation::read_uncommitted &&
      rules.isolation != Isolation::read_committed)
    co_return refuse_all(request, *asked);
  const bool full = asked->session_epoch == epoch_final || asked->session_epoch == epoch_initial;
  if (full) co_return co_await fetch_full(broker, shard, request, rules, *asked);
  co_return co_await fetch_incremental(broker, shard, request, rules, *asked);
}

}  // namespace broker::api
