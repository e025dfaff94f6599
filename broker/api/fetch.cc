// Fetch v4-18, for consumers and mirrors.
//   No incremental sessions: every answer is full and says session 0, as Kafka's does when its
//   cache of sessions is full. v4 isolation level; v5 log start; v9 leader epoch check; v11 rack
//   (one broker, ignored); v12 diverging epoch; v13 topic ids; v16 node endpoints (not needed).
//   Records are never null (A03). Whole batches only; the first partition with records gets at
//   least one batch, whatever the limits (A12). A long poll waits until min_bytes have come in
//   since the first look, then reads once more.
#include <algorithm>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/bounds.h"
#include "broker/fetch_wait.h"
#include "protocol/messages/fetch.gen.h"

namespace broker::api {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;

constexpr std::int32_t session_epoch_final = -1;
constexpr std::int32_t session_epoch_initial = 0;

// A partition of the request, in the request's order.
struct Item {
  base::TopicPartition id;
  ReadRequest read;
  std::size_t shard = 0;
  ErrorCode known_error = ErrorCode::none;  // without asking a shard
  ReadAnswer answer;

  base::Offset seen_end() const {
    return read.isolation == Isolation::read_committed ? answer.last_stable_offset
                                                       : answer.high_watermark;
  }
};

struct Plan {
  std::vector<Item> items;
  std::uint32_t bytes_max = 0;
  std::int64_t bytes_min = 0;
  Isolation isolation = Isolation::read_uncommitted;
};

Plan plan(Broker& broker, Shard& shard, const Request& request, const FetchRequest& asked) {
  Plan made;
  const auto limit = static_cast<std::uint32_t>(broker.config().integer("fetch.max.bytes"));
  made.bytes_max = std::min(static_cast<std::uint32_t>(std::max(asked.max_bytes, 0)), limit);
  made.bytes_min = std::min<std::int64_t>(asked.min_bytes, made.bytes_max);
  if (asked.isolation_level == static_cast<std::int8_t>(Isolation::read_committed))
    made.isolation = Isolation::read_committed;
  const bool by_id = request.version() >= 13;
  const Snapshot& catalog = *shard.catalog();
  for (const FetchRequest::Topic& from : asked.topics) {
    const TopicPtr topic = by_id ? catalog.find(from.topic_id) : catalog.find(from.topic);
    for (const FetchRequest::Topic::Partition& one : from.partitions) {
      Item& item = made.items.emplace_back();
      if (!topic) {
        item.known_error =
            by_id ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
        continue;
      }
      if (!has_partition(topic, one.partition)) {
        item.known_error = ErrorCode::unknown_topic_or_partition;
        continue;
      }
      item.id = {topic->id, one.partition};
      item.shard = broker.shard_index_of(item.id);
      item.read.offset = one.fetch_offset;
      item.read.bytes_max = std::min(
          static_cast<std::uint32_t>(std::max(one.partition_max_bytes, 0)), made.bytes_max);
      item.read.isolation = made.isolation;
      item.read.current_leader_epoch = epoch_of(one.current_leader_epoch);
      item.read.last_fetched_epoch = epoch_of(one.last_fetched_epoch);
    }
  }
  return made;
}

// Does `work` for the items of each shard, on that shard.
template <class F>
Task<void> on_shards(Broker& broker, Plan& made, F work) {
  std::vector<std::vector<Item*>> by_shard(broker.shard_count());
  for (Item& item : made.items)
    if (item.known_error == ErrorCode::none) by_shard[item.shard].push_back(&item);
  std::vector<Job<bool>> jobs;
  for (std::size_t i = 0; i < by_shard.size(); ++i) {
    if (by_shard[i].empty()) continue;
    Shard* const target = &broker.shard(i);
    auto run = [target, work, items = std::move(by_shard[i])]() -> Task<bool> {
      for (Item* item : items) work(*item, target->find(item->id));
      co_return true;
    };
    jobs.push_back({target, std::move(run)});
  }
  if (!jobs.empty()) co_await on_each(std::move(jobs));
}

void read_one(Item& item, const std::shared_ptr<Partition>& partition) {
  item.answer = ReadAnswer();
  if (partition)
    item.answer = partition->read(item.read);
  else
    item.answer.error = BrokerErrc::not_here;
}

// Cuts the whole to bytes_max: the first partition with records keeps at least one batch, later
// ones are left out when they do not fit, and come first in the client's next request.
std::int64_t apply_limits(Plan& made) {
  std::uint64_t total = 0;
  for (Item& item : made.items) {
    storage::FileSlice& slice = item.answer.slice;
    if (slice.size == 0) continue;
    const bool fits = slice.size <= item.read.bytes_max && total + slice.size <= made.bytes_max;
    if (total > 0 && !fits) slice = storage::FileSlice();
    total += slice.size;
  }
  return static_cast<std::int64_t>(total);
}

// Whether the client is told at once: an error or a diverged log, or enough records.
bool is_ready(const Plan& made, std::int64_t bytes) {
  return bytes >= made.bytes_min || made.items.empty() ||
         std::ranges::any_of(made.items, [](const Item& item) {
           return item.known_error != ErrorCode::none || item.answer.error ||
                  item.answer.diverging.has_value();
         });
}

Task<void> wait_for_more(Broker& broker, Shard& shard, Plan& made, std::int64_t bytes,
                         base::Clock::time_point deadline) {
  const auto waiter = std::make_shared<FetchWaiter>(shard, made.bytes_min - bytes);
  const auto enlist = [waiter](Item& item, const std::shared_ptr<Partition>& partition) {
    if (!partition) return waiter->wake();
    // What came in between the first look and now is found by comparing ends.
    const bool grew = partition->readable_end(item.read.isolation) > item.seen_end();
    partition->add_waiter(waiter, item.read.isolation);
    if (grew) waiter->wake();
  };
  co_await on_shards(broker, made, enlist);
  co_await waiter->wait_until(deadline);
}

FetchResponse::Response::Partition answer_of(Item& item, std::int32_t index, Isolation isolation) {
  FetchResponse::Response::Partition out;
  out.partition_index = index;
  const bool failed = item.known_error != ErrorCode::none || item.answer.error;
  if (item.known_error != ErrorCode::none)
    out.error_code = number(item.known_error);
  else if (item.answer.error == BrokerErrc::not_here)
    out.error_code = number(missing_partition);
  else
    out.error_code = number(item.answer.error);
  out.high_watermark = failed ? -1 : item.answer.high_watermark;
  out.last_stable_offset = failed ? -1 : item.answer.last_stable_offset;
  out.log_start_offset = failed ? -1 : item.answer.log_start;
  if (item.answer.diverging) {
    out.diverging_epoch.epoch = item.answer.diverging->epoch;
    out.diverging_epoch.end_offset = item.answer.diverging->end_offset;
  }
  out.aborted_transactions.reset();
  if (isolation == Isolation::read_committed && !failed) {
    auto& aborted = out.aborted_transactions.emplace();
    for (const storage::AbortedTransaction& one : item.answer.aborted)
      aborted.push_back({one.producer_id, one.first_offset});
  }
  out.preferred_read_replica = -1;
  if (item.answer.slice.size > 0) out.records.deferred = item.answer.slice.size;
  return out;
}

Response encode_answer(const Request& request, const FetchRequest& asked, Plan& made) {
  FetchResponse message;
  std::vector<storage::FileSlice> slices;
  auto item = made.items.begin();
  for (const FetchRequest::Topic& topic : asked.topics) {
    FetchResponse::Response& out = message.responses.emplace_back();
    out.topic = topic.topic;
    out.topic_id = topic.topic_id;
    for (const FetchRequest::Topic::Partition& one : topic.partitions) {
      out.partitions.push_back(answer_of(*item, one.partition, made.isolation));
      if (item->answer.slice.size > 0) slices.push_back(std::move(item->answer.slice));
      ++item;
    }
  }
  Response response = respond(request, message);
  response.slices = std::move(slices);
  return response;
}

// We never gave out a session, so a client that continues one is told to start over, as Kafka does
// after it evicted the session.
std::optional<ErrorCode> session_error(const FetchRequest& asked) {
  if (asked.session_epoch == session_epoch_final || asked.session_epoch == session_epoch_initial)
    return std::nullopt;
  return ErrorCode::fetch_session_id_not_found;
}

}  // namespace

Task<Response> fetch(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<FetchRequest>(request);
  if (!asked) co_return malformed();
  if (const auto error = session_error(*asked)) {
    FetchResponse message;
    message.error_code = number(*error);
    co_return respond(request, message);
  }
  const auto wait = std::chrono::milliseconds(std::max(asked->max_wait_ms, 0));
  const auto deadline = base::Clock::now() + std::min<base::Clock::duration>(wait, fetch_wait_max);
  Plan made = plan(broker, shard, request, *asked);
  co_await on_shards(broker, made, read_one);
  const std::int64_t bytes = apply_limits(made);
  if (!is_ready(made, bytes) && wait.count() > 0 && !shard.stopping()) {
    co_await wait_for_more(broker, shard, made, bytes, deadline);
    co_await on_shards(broker, made, read_one);
    apply_limits(made);
  }
  co_return encode_answer(request, *asked, made);
}

}  // namespace broker::api
