// Produce v3-13 (advertised from v0, see protocol/api_table.cc).
//   acks 0: nothing is answered, and the connection ends if something went wrong; acks 1: answered
//   when the log has it; acks -1: when it is on disk. v5 log start offset; v8 record errors and
//   messages; v9 flexible; v10 the current leader beside NOT_LEADER_OR_FOLLOWER; v13 topic ids.
//   A partition that is named twice counts once, as it is named last.
//   Mirrored topics refuse with POLICY_VIOLATION and name the mirror.
#include <map>
#include <unordered_map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/api/produce_transaction.h"
#include "protocol/base/clock.h"
#include "protocol/messages/produce.gen.h"
#include "protocol/produce_check.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::ProduceError;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using TopicAnswer = ProduceResponse::Response;
using PartitionAnswer = TopicAnswer::PartitionResponse;

constexpr std::int16_t acks_none = 0;
constexpr std::int16_t acks_leader = 1;
constexpr std::int16_t acks_all = -1;
constexpr std::int16_t zstd_since = 7;
constexpr std::int16_t produce_leader_since = 10;
constexpr std::int16_t produce_ids_since = 13;

using Item = ProduceItem;

void refuse(PartitionAnswer& answer, ErrorCode error, std::string message = {}) {
  answer.error_code = number(error);
  answer.base_offset = -1;
  answer.log_append_time_ms = -1;
  answer.log_start_offset = -1;
  if (!message.empty()) answer.error_message = std::move(message);
}

// Kafka tells the log start beside errors that speak of what the log holds, and not beside those
// after which the client shall look elsewhere or send something smaller.
bool tells_log_start(ErrorCode error) {
  switch (error) {
    case ErrorCode::corrupt_message:
    case ErrorCode::unknown_topic_or_partition:
    case ErrorCode::not_leader_or_follower:
    case ErrorCode::message_too_large:
    case ErrorCode::record_list_too_large:
    case ErrorCode::kafka_storage_error:
    case ErrorCode::policy_violation:
      return false;
    default:
      return true;
  }
}

void fill(PartitionAnswer& answer, ProduceAnswer produced) {
  const bool refused = produced.refusal != ProduceError::none;
  if (!refused && !produced.error) {
    answer.base_offset = produced.info.first_offset;
    answer.log_append_time_ms = produced.info.log_append_time_ms.value_or(-1);
    answer.log_start_offset = produced.log_start;
    return;
  }
  const ErrorCode error =
      refused ? static_cast<ErrorCode>(produced.refusal) : kafka_error(produced.error);
  refuse(answer, error, std::move(produced.message));
  if (tells_log_start(error)) answer.log_start_offset = produced.log_start;
  for (protocol::RecordFault& fault : produced.faults)
    answer.record_errors.push_back({fault.index, std::move(fault.message)});
}

// What waits for the disk: the log of `id` up to `end`.
struct Written {
  base::TopicPartition id;
  base::Offset end = 0;
  PartitionAnswer* answer = nullptr;
};

ErrorCode error_of_missing(Shard& shard, const base::TopicPartition& id) {
  return shard.catalog()->find(id.topic_id) ? missing_partition
                                            : ErrorCode::unknown_topic_or_partition;
}

// Beside errors that old producers know for something else.
std::string sentence_of(ErrorCode refused) {
  if (refused == ErrorCode::invalid_txn_state)
    return "the partition is not in the producer's transaction";
  if (refused == ErrorCode::not_enough_replicas)
    return "the transaction coordinator cannot tell yet; try again";
  return {};
}

std::vector<Written> append_on_shard(Shard& shard, const std::vector<Item>& items) {
  std::vector<Written> written;
  const std::int64_t now_ms = base::wall_clock_ms();
  for (const Item& item : items) {
    const auto partition = shard.find(item.id);
    if (!partition) {
      refuse(*item.answer, error_of_missing(shard, item.id));
      continue;
    }
    if (item.refused != ErrorCode::none) {
      if (item.ticket) partition->give_back(*item.ticket);
      refuse(*item.answer, item.refused, sentence_of(item.refused));
      continue;
    }
    ProduceAnswer produced = partition->produce(item.batch, now_ms, item.ticket);
    if (item.ticket) partition->give_back(*item.ticket);
    const base::Offset end = produced.info.last_offset + 1;
    fill(*item.answer, std::move(produced));
    if (item.durable && item.answer->error_code == 0)
      written.push_back({item.id, end, item.answer});
  }
  return written;
}

Task<bool> flush_one(Shard& shard, Written one) {
  const auto partition = shard.find(one.id);
  if (!partition) {
    refuse(*one.answer, error_of_missing(shard, one.id));
    co_return false;
  }
  const auto flushed = co_await partition->flush(one.end);
  if (flushed.has_error()) refuse(*one.answer, kafka_error(flushed.error()));
  co_return flushed.has_value();
}

// All at once: the syncs of several logs share what the file system writes for each of them.
Task<bool> flush_on_shard(Shard& shard, std::vector<Written> written) {
  std::vector<Job<bool>> jobs;
  jobs.reserve(written.size());
  for (const Written& one : written)
    jobs.push_back({&shard, [&shard, one] { return flush_one(shard, one); }});
  co_await on_each(std::move(jobs));
  co_return true;
}

// What was asked of one partition, the last time that it was named.
struct Wanted {
  TopicPtr topic;
  std::size_t at_topic = 0;  // in the answer
  std::int32_t index = 0;
  base::Bytes records;
};

// Names the topics of the answer and gives the partitions in the order of the request.
std::vector<Wanted> sort_out(const ProduceRequest& asked, bool by_id, const Snapshot& catalog,
                             ProduceResponse& message) {
  std::vector<Wanted> wanted;
  std::map<std::string_view, std::size_t> by_name;
  std::unordered_map<base::Uuid, std::size_t> by_topic_id;
  std::map<std::pair<std::size_t, std::int32_t>, std::size_t> places;
  for (const auto& from : asked.topic_data) {
    if (from.partition_data.empty()) continue;
    const std::size_t next = message.responses.size();
    const std::size_t at = by_id ? by_topic_id.emplace(from.topic_id, next).first->second
                                 : by_name.emplace(from.name, next).first->second;
    if (at == next) {
      TopicAnswer& to = message.responses.emplace_back();
      to.name = from.name;
      to.topic_id = from.topic_id;
    }
    const TopicPtr topic = by_id ? catalog.find(from.topic_id) : catalog.find(from.name);
    for (const auto& data : from.partition_data) {
      Wanted one = {topic, at, data.index, data.records.bytes};
      const auto [known, added] = places.emplace(std::pair(at, data.index), wanted.size());
      if (added)
        wanted.push_back(std::move(one));
      else
        wanted[known->second] = std::move(one);
    }
  }
  return wanted;
}

// Answers every partition with the same error.
void refuse_all(const std::vector<Wanted>& wanted, ProduceResponse& message, ErrorCode error,
                const std::string& text = {}) {
  for (const Wanted& one : wanted) {
    PartitionAnswer& answer = message.responses[one.at_topic].partition_responses.emplace_back();
    answer.index = one.index;
    refuse(answer, error, text);
  }
}

// What spoils the request as a whole: the answer is complete then.
bool refused_as_a_whole(const std::vector<Wanted>& wanted, const ProduceRequest& asked,
                        ProduceResponse& message, bool& transactional) {
  for (const Wanted& one : wanted) {
    const protocol::ProduceShape shape = protocol::look_at_produce(one.records, true);
    if (shape.not_a_batch) {
      refuse_all(wanted, message, ErrorCode::corrupt_message, *shape.not_a_batch);
      return true;
    }
    transactional = transactional || shape.transactional;
  }
  if (!transactional || asked.transactional_id) return false;
  refuse_all(wanted, message, ErrorCode::transactional_id_authorization_failed);
  return true;
}

using ByShard = std::vector<std::vector<Item>>;

// Answers what the catalog and the shape of the records tell, and sorts the rest by shard.
void plan(Broker& broker, const Request& request, const ProduceRequest& asked,
          const std::vector<Wanted>& wanted, ProduceResponse& message, ByShard& by_shard) {
  const bool by_id = request.version() >= produce_ids_since;
  const bool zstd = request.version() >= zstd_since;
  const bool acks_known =
      asked.acks == acks_none || asked.acks == acks_leader || asked.acks == acks_all;
  std::vector<std::size_t> counts(message.responses.size());
  for (const Wanted& one : wanted) ++counts[one.at_topic];
  for (std::size_t i = 0; i < counts.size(); ++i)  // the items point into these
    message.responses[i].partition_responses.reserve(counts[i]);
  for (const Wanted& one : wanted) {
    PartitionAnswer& answer = message.responses[one.at_topic].partition_responses.emplace_back();
    answer.index = one.index;
    if (!has_partition(one.topic, one.index)) {
      refuse(answer, by_id && !one.topic ? ErrorCode::unknown_topic_id
                                         : ErrorCode::unknown_topic_or_partition);
      continue;
    }
    const protocol::ProduceShape shape = protocol::look_at_produce(one.records, zstd);
    if (shape.error != ProduceError::none) {
      refuse(answer, static_cast<ErrorCode>(shape.error));
    } else if (!acks_known) {
      refuse(answer, ErrorCode::invalid_required_acks);
    } else if (one.topic->internal) {
      refuse(answer, ErrorCode::invalid_topic_exception);
    } else {
      const base::TopicPartition id = {one.topic->id, one.index};
      // The decoder hands out constant views; these bytes are the request's own (handler.h).
      const base::MutableBytes batch = {const_cast<std::byte*>(one.records.data()),
                                        shape.size_bytes};
      const bool durable = asked.acks == acks_all;
      by_shard[broker.shard_index_of(id)].push_back({id, one.topic->name, batch, &answer, durable});
    }
  }
}

// Where clients find the leader that they missed: with one broker, here.
void name_leaders(const Broker& broker, const Request& request, const Snapshot& catalog,
                  ProduceResponse& message) {
  if (request.version() < produce_leader_since) return;
  for (TopicAnswer& topic : message.responses) {
    const TopicPtr known = request.version() >= produce_ids_since ? catalog.find(topic.topic_id)
                                                                  : catalog.find(topic.name);
    for (PartitionAnswer& one : topic.partition_responses) {
      if (one.error_code != number(ErrorCode::not_leader_or_follower) ||
          !has_partition(known, one.index))
        continue;
      one.current_leader.leader_id = broker.node_id();
      one.current_leader.leader_epoch =
          known->partitions[static_cast<std::size_t>(one.index)].leader_epoch;
      if (!message.node_endpoints.empty()) continue;
      const Endpoint& here = broker.advertised(request.connection.listener);
      ProduceResponse::NodeEndpoint& node = message.node_endpoints.emplace_back();
      node.node_id = broker.node_id();
      node.host = here.host;
      node.port = here.port;
    }
  }
}

bool has_error(const ProduceResponse& message) {
  for (const TopicAnswer& topic : message.responses)
    for (const PartitionAnswer& one : topic.partition_responses)
      if (one.error_code != 0) return true;
  return false;
}

// A request whose records are on their way, and its answer.
struct Begun {
  protocol::RequestHeader header;
  std::int16_t acks = acks_none;
  ProduceResponse message;
  // Of a request with transactional batches: these need to be admitted first.
  std::optional<std::string> transactional_id = {};
  ByShard to_admit = {};
};

// Sorts out one request; what needs nothing more goes to `by_shard`. Nothing: it is malformed.
std::unique_ptr<Begun> begin(Broker& broker, const Request& request, const Snapshot& catalog,
                             ByShard& by_shard) {
  const auto asked = decode_request<ProduceRequest>(request);
  if (!asked) return nullptr;
  auto begun = std::make_unique<Begun>();
  begun->header = request.header;
  begun->acks = asked->acks;
  const bool by_id = request.version() >= produce_ids_since;
  const std::vector<Wanted> wanted = sort_out(*asked, by_id, catalog, begun->message);
  bool transactional = false;
  if (refused_as_a_whole(wanted, *asked, begun->message, transactional)) return begun;
  if (transactional) {
    begun->transactional_id = asked->transactional_id;
    begun->to_admit.resize(broker.shard_count());
  }
  plan(broker, request, *asked, wanted, begun->message, transactional ? begun->to_admit : by_shard);
  return begun;
}

Task<bool> admit(Broker& broker, Begun& begun, ByShard& by_shard) {
  co_await admit_transaction(broker, *begun.transactional_id, begun.header.api_version,
                             begun.to_admit);
  for (std::size_t i = 0; i < by_shard.size(); ++i)
    by_shard[i].insert(by_shard[i].end(), begun.to_admit[i].begin(), begun.to_admit[i].end());
  begun.to_admit.clear();
  co_return true;
}

Response response_to(const Begun& begun) {
  Response response;
  if (begun.acks == acks_none) {
    response.none = true;
    response.close = has_error(begun.message);
  } else {
    response = respond(begun.header, begun.message);
  }
  return response;
}

using AllBegun = std::vector<std::unique_ptr<Begun>>;

std::vector<Response> responses_to(const AllBegun& all, bool last_is_malformed) {
  std::vector<Response> responses;
  for (const auto& one : all) {
    responses.push_back(response_to(*one));
    if (responses.back().close) return responses;
  }
  if (last_is_malformed) responses.push_back(malformed());
  return responses;
}

// Waits until all is on disk, then gives the answers.
Task<std::vector<Response>> answer_when_durable(std::shared_ptr<const AllBegun> all,
                                                bool last_is_malformed,
                                                std::vector<Job<bool>> flushes) {
  co_await on_each(std::move(flushes));
  co_return responses_to(*all, last_is_malformed);
}

// Appends what was planned; gives the jobs that wait for the disk.
Task<std::vector<Job<bool>>> append_all(Broker& broker, ByShard by_shard) {
  using AllWritten = std::vector<Written>;
  std::vector<Shard*> targets;
  for (std::size_t i = 0; i < by_shard.size(); ++i)
    if (!by_shard[i].empty()) targets.push_back(&broker.shard(i));
  std::vector<AllWritten> written;
  if (targets.size() == 1 && targets.front()->is_current()) {
    written.push_back(append_on_shard(*targets.front(), by_shard[targets.front()->index()]));
  } else {
    std::vector<Job<AllWritten>> appends;
    for (Shard* const target : targets) {
      auto run = [target, items = std::move(by_shard[target->index()])]() -> Task<AllWritten> {
        co_return append_on_shard(*target, items);
      };
      appends.push_back({target, std::move(run)});
    }
    written = co_await on_each(std::move(appends));
  }
  std::vector<Job<bool>> flushes;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (written[i].empty()) continue;
    auto run = [target = targets[i], all = std::move(written[i])] {
      return flush_on_shard(*target, all);
    };
    flushes.push_back({targets[i], std::move(run)});
  }
  co_return flushes;
}

}  // namespace

// Records of the same partition are appended in the order of the requests, as if each request had
// waited for the one before.
Task<std::vector<Response>> produce_together(Broker& broker, Shard& shard,
                                             std::vector<Request> requests) {
  const SnapshotPtr catalog = shard.catalog();
  ByShard by_shard(broker.shard_count());
  auto all = std::make_shared<AllBegun>();
  bool last_is_malformed = false;
  for (const Request& request : requests) {
    auto begun = begin(broker, request, *catalog, by_shard);
    last_is_malformed = begun == nullptr;
    if (last_is_malformed) break;
    if (begun->transactional_id) co_await admit(broker, *begun, by_shard);
    all->push_back(std::move(begun));
  }
  std::vector<Job<bool>> flushes = co_await append_all(broker, std::move(by_shard));
  co_await shard.readers_first();
  for (std::size_t i = 0; i < all->size(); ++i)
    name_leaders(broker, requests[i], *shard.catalog(), (*all)[i]->message);
  if (flushes.empty()) co_return responses_to(*all, last_is_malformed);
  std::vector<Response> later(1);
  later.front().later = [all, last_is_malformed, flushes = std::move(flushes)] {
    return answer_when_durable(all, last_is_malformed, flushes);
  };
  co_return later;
}

Task<Response> produce(Broker& broker, Shard& shard, Request request) {
  std::vector<Request> only;
  only.push_back(std::move(request));
  std::vector<Response> responses = co_await produce_together(broker, shard, std::move(only));
  co_return std::move(responses.front());
}

}  // namespace broker::api
