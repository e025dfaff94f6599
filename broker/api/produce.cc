// Produce v3-13 (advertised from v0, see protocol/api_table.cc).
//   acks 0: nothing is answered, and the connection ends if something went wrong; acks 1: answered
//   when the log has it; acks -1: when it is on disk. v5 log start offset; v8 record errors and
//   messages; v9 flexible; v10 leader hints (not needed with one broker); v13 topic ids.
//   Mirrored topics refuse with POLICY_VIOLATION and name the mirror; transactional batches are
//   refused, there is no transaction coordinator.
#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/base/clock.h"
#include "protocol/messages/produce.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using PartitionResponse = ProduceResponse::Response::PartitionResponse;

constexpr std::int16_t acks_none = 0;
constexpr std::int16_t acks_leader = 1;
constexpr std::int16_t acks_all = -1;
constexpr std::int16_t zstd_since = 7;

// One partition's batch on its way; all of one shard travel together.
struct Item {
  base::TopicPartition id;
  base::MutableBytes records;
  PartitionResponse* answer;
};

void refuse(PartitionResponse& answer, ErrorCode error, std::string message = {}) {
  answer.error_code = number(error);
  answer.base_offset = -1;
  answer.log_append_time_ms = -1;
  answer.log_start_offset = -1;
  if (!message.empty()) answer.error_message = std::move(message);
}

void fill(PartitionResponse& answer, const ProduceAnswer& produced) {
  if (produced.refusal != protocol::ProduceError::none) {
    refuse(answer, static_cast<ErrorCode>(produced.refusal), produced.message);
  } else if (produced.error) {
    refuse(answer, kafka_error(produced.error), produced.message);
  } else {
    answer.base_offset = produced.info.first_offset;
    answer.log_append_time_ms = produced.info.log_append_time_ms.value_or(-1);
    answer.log_start_offset = produced.log_start;
  }
}

// Appends all, then waits for the disk: the syncs of several logs queue behind one another on the
// disk thread, but each covers whatever came in meanwhile.
Task<bool> produce_on_shard(Shard& shard, std::vector<Item> items, bool durable, bool zstd) {
  struct Written {
    std::shared_ptr<Partition> partition;
    base::Offset end;
    PartitionResponse* answer;
  };
  std::vector<Written> written;
  const std::int64_t now_ms = base::wall_clock_ms();
  for (const Item& item : items) {
    auto partition = shard.find(item.id);
    if (!partition) {
      refuse(*item.answer, missing_partition);
      continue;
    }
    const ProduceAnswer produced = partition->produce(item.records, zstd, now_ms);
    fill(*item.answer, produced);
    if (item.answer->error_code == 0)
      written.push_back({std::move(partition), produced.info.last_offset + 1, item.answer});
  }
  if (!durable) co_return true;
  for (const Written& one : written) {
    const auto flushed = co_await one.partition->flush(one.end);
    if (flushed.has_error()) refuse(*one.answer, kafka_error(flushed.error()));
  }
  co_return true;
}

// Answers what the catalog alone can tell and sorts the rest by shard.
std::vector<std::vector<Item>> plan(Broker& broker, Shard& shard, const Request& request,
                                    const ProduceRequest& asked, ProduceResponse& message) {
  std::vector<std::vector<Item>> by_shard(broker.shard_count());
  const bool by_id = request.version() >= 13;
  const Snapshot& catalog = *shard.catalog();
  const bool acks_known =
      asked.acks == acks_none || asked.acks == acks_leader || asked.acks == acks_all;
  message.responses.resize(asked.topic_data.size());
  for (std::size_t t = 0; t < asked.topic_data.size(); ++t) {
    const auto& from = asked.topic_data[t];
    auto& to = message.responses[t];
    to.name = from.name;
    to.topic_id = from.topic_id;
    const TopicPtr topic = by_id ? catalog.find(from.topic_id) : catalog.find(from.name);
    to.partition_responses.resize(from.partition_data.size());
    for (std::size_t p = 0; p < from.partition_data.size(); ++p) {
      const auto& data = from.partition_data[p];
      PartitionResponse& answer = to.partition_responses[p];
      answer.index = data.index;
      if (!acks_known) {
        refuse(answer, ErrorCode::invalid_required_acks);
      } else if (!topic) {
        refuse(answer, by_id ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition);
      } else if (!has_partition(topic, data.index)) {
        refuse(answer, ErrorCode::unknown_topic_or_partition);
      } else if (topic->internal) {
        refuse(answer, ErrorCode::invalid_topic_exception,
               "the topic is internal to the broker; clients do not write to it");
      } else if (asked.transactional_id) {
        refuse(answer, ErrorCode::unsupported_version,
               "transactions are not served by this broker; write without transactional.id");
      } else {
        const base::TopicPartition id = {topic->id, data.index};
        // The decoder hands out constant views; these bytes are the request's own (handler.h).
        const base::MutableBytes records = {const_cast<std::byte*>(data.records.bytes.data()),
                                            data.records.bytes.size()};
        by_shard[broker.shard_index_of(id)].push_back({id, records, &answer});
      }
    }
  }
  return by_shard;
}

bool has_error(const ProduceResponse& message) {
  for (const auto& topic : message.responses)
    for (const PartitionResponse& one : topic.partition_responses)
      if (one.error_code != 0) return true;
  return false;
}

}  // namespace

Task<Response> produce(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<ProduceRequest>(request);
  if (!asked) co_return malformed();
  ProduceResponse message;
  auto by_shard = plan(broker, shard, request, *asked, message);
  std::vector<Job<bool>> jobs;
  const bool durable = asked->acks == acks_all;
  const bool zstd = request.version() >= zstd_since;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, items = std::move(by_shard[i]), durable, zstd] {
      return produce_on_shard(*target, items, durable, zstd);
    };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
  if (asked->acks != acks_none) co_return respond(request, message);
  Response nothing;
  nothing.none = true;
  nothing.close = has_error(message);
  co_return nothing;
}

}  // namespace broker::api
