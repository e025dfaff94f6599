#include "broker/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/bounds.h"
#include "broker/error.h"
#include "broker/fetch_wait.h"
#include "broker/shard.h"
#include "protocol/base/check.h"
#include "protocol/base/log.h"
#include "protocol/batch_builder.h"
#include "storage/error.h"

namespace broker {
namespace {

// Nobody pays for the pruning of forgotten waiters more often than this.
constexpr std::size_t waiters_prune_min = 16;

}  // namespace

Partition::Partition(Shard& home, TopicPtr topic, std::int32_t index,
                     std::unique_ptr<storage::Log> log, protocol::ProduceRules rules)
    : home_(home),
      topic_(std::move(topic)),
      index_(index),
      log_(std::move(log)),
      rules_(rules),
      leader_epoch_(topic_->partitions.at(static_cast<std::size_t>(index)).leader_epoch) {
  settle_writes();
}

Partition::~Partition() = default;

// At opening: a topic that a mirror is done with is only handed over once the mirror has looked at
// the partition's actual state and says so.
void Partition::settle_writes() {
  if (topic_->mirror.empty())
    writes_ = Writes::allowed;
  else
    writes_ = is_mirrored(*topic_) ? Writes::refused : Writes::not_settled;
}

base::Offset Partition::readable_end(Isolation isolation) const {
  return isolation == Isolation::read_committed ? last_stable_offset() : high_watermark();
}

base::Result<void> Partition::check_leader_epoch(std::optional<base::LeaderEpoch> theirs) const {
  if (theirs && *theirs < leader_epoch_) return BrokerErrc::fenced_leader_epoch;
  if (theirs && *theirs > leader_epoch_) return BrokerErrc::unknown_leader_epoch;
  return {};
}

base::Result<void> Partition::check_writable() const {
  if (closed_) return BrokerErrc::not_here;
  if (writes_ == Writes::refused) return BrokerErrc::read_only;
  if (writes_ == Writes::not_settled) return BrokerErrc::not_settled;
  if (const auto error = log_->offline()) return *error;
  return {};
}

std::optional<TransactionTicket> Partition::take_ticket(base::ProducerId id,
                                                        base::ProducerEpoch epoch) {
  if (log_->in_transaction(id, epoch)) return std::nullopt;
  Verifying& one = verifying_[id];
  ++one.tickets;
  return TransactionTicket{id, one.markers};
}

void Partition::give_back(const TransactionTicket& ticket) {
  const auto at = verifying_.find(ticket.producer_id);
  if (at != verifying_.end() && --at->second.tickets == 0) verifying_.erase(at);
}

bool Partition::may_write_transaction(base::ProducerId id, base::ProducerEpoch epoch,
                                      const std::optional<TransactionTicket>& ticket) const {
  if (log_->in_transaction(id, epoch)) return true;
  if (!ticket || ticket->producer_id != id) return false;
  const auto at = verifying_.find(ticket->producer_id);
  return at != verifying_.end() && at->second.markers == ticket->markers;
}

std::int32_t Partition::coordinator_epoch_of(const TransactionMarker& marker) const {
  if (!marker.owed) return marker.coordinator_epoch;
  const auto known = log_->active_producer(marker.producer_id);
  return known ? std::max(marker.coordinator_epoch, known->coordinator_epoch)
               : marker.coordinator_epoch;
}

base::Result<storage::AppendInfo> Partition::append_marker(const TransactionMarker& marker,
                                                           std::int64_t now_ms) {
  TRY_VOID(check_writable());
  protocol::EndTransactionMarker content;
  content.producer_id = marker.producer_id;
  content.producer_epoch = marker.producer_epoch;
  content.coordinator_epoch = coordinator_epoch_of(marker);
  content.result =
      marker.committed ? protocol::TransactionResult::commit : protocol::TransactionResult::abort;
  base::Buffer batch = protocol::end_transaction_marker(content, now_ms);
  return append_internal(batch, now_ms);
}

void Partition::note_markers(base::Bytes batches) {
  protocol::BatchIterator it(batches, protocol::CrcCheck::no);
  while (it.next()) {
    if (!it.info().control() || !it.info().producer_id) continue;
    const auto at = verifying_.find(*it.info().producer_id);
    if (at != verifying_.end()) ++at->second.markers;
  }
}

ProduceAnswer Partition::produce(base::MutableBytes batch, std::int64_t now_ms,
                                 std::optional<TransactionTicket> ticket) {
  ProduceAnswer answer;
  answer.log_start = log_->log_start();
  if (const auto writable = check_writable(); writable.has_error()) {
    answer.error = writable.error();
    if (answer.error == BrokerErrc::read_only)
      answer.message = fmt::format(
          "the topic {} is a copy kept by the mirror {}; stop the topic in the mirror to write "
          "here",
          topic_->name, topic_->mirror);
    return answer;
  }
  protocol::ProduceRules rules = rules_;
  rules.now_ms = now_ms;
  protocol::ProduceVerdict verdict = protocol::check_produce(batch, rules);
  if (verdict.error != protocol::ProduceError::none) {
    answer.refusal = verdict.error;
    answer.message = std::move(verdict.message);
    answer.faults = std::move(verdict.faults);
    return answer;
  }
  const protocol::BatchInfo& header = verdict.info;
  if (header.transactional() &&
      !may_write_transaction(header.producer_id.value_or(-1), header.producer_epoch.value_or(-1),
                             ticket)) {
    answer.error = BrokerErrc::transaction_unknown;
    answer.message = "the partition is not in the producer's transaction";
    return answer;
  }
  protocol::PreparedBatch prepared = protocol::prepare_produce(batch, verdict, rules);
  if (prepared.error != protocol::ProduceError::none) {
    answer.refusal = prepared.error;
    return answer;
  }
  if (prepared.rebuilt) batch = *prepared.rebuilt;
  auto appended =
      log_->append_as_leader(batch, leader_epoch_, now_ms, storage::AppendOrigin::client);
  if (appended.has_error()) {
    answer.error = appended.error();
    return answer;
  }
  answer.info = *appended;
  if (!answer.info.duplicate) log_grew(batch.size());
  return answer;
}

base::Result<storage::AppendInfo> Partition::append_internal(base::MutableBytes batch,
                                                             std::int64_t now_ms) {
  if (closed_) return BrokerErrc::not_here;
  TRY(auto info,
      log_->append_as_leader(batch, leader_epoch_, now_ms, storage::AppendOrigin::coordinator));
  if (!verifying_.empty()) note_markers(batch);
  log_grew(batch.size());
  return info;
}

base::Result<storage::AppendInfo> Partition::append_verbatim(base::Bytes batches,
                                                             std::int64_t now_ms) {
  if (closed_) return BrokerErrc::not_here;
  if (writes_ == Writes::allowed) return BrokerErrc::busy;  // copied and own records never mix
  TRY(auto info, log_->append_verbatim(batches, leader_epoch_, now_ms));
  log_grew(batches.size());
  return info;
}

boost::asio::awaitable<base::Result<void>> Partition::flush(base::Offset end) {
  const auto self = shared_from_this();  // outlives a deletion of the topic meanwhile
  bool gathered = false;
  while (log_->durable_end() < end) {
    if (closed_) co_return BrokerErrc::not_here;
    if (const auto error = log_->offline()) co_return *error;
    if (log_->log_end() < end) co_return BrokerErrc::busy;  // truncated meanwhile
    if (sync_running_) {
      co_await synced_.wait();
      continue;
    }
    if (!gathered) {
      // Whoever is ready writes first, to be in this sync, and readers get what was written.
      gathered = true;
      co_await home_.others_first();
      continue;
    }
    std::unique_ptr<storage::SyncJob> job = log_->begin_sync();
    if (!job) break;
    CO_TRY_VOID(co_await run_sync(std::move(job)));
  }
  co_return base::Result<void>();
}

boost::asio::awaitable<base::Result<void>> Partition::sync() {
  const auto self = shared_from_this();
  co_await no_sync_running();
  if (closed_) co_return BrokerErrc::not_here;
  if (const auto error = log_->offline()) co_return *error;
  std::unique_ptr<storage::SyncJob> job = log_->begin_sync();
  if (!job) co_return base::Result<void>();
  co_return co_await run_sync(std::move(job));
}

boost::asio::awaitable<base::Result<void>> Partition::run_sync(
    std::unique_ptr<storage::SyncJob> job) {
  sync_running_ = true;
  storage::SyncJob* const running = job.get();
  auto work = [running] { return running->run(); };
  const base::Result<void> outcome = co_await home_.on_disk(std::move(work));
  sync_running_ = false;
  auto finished = log_->finish_sync(*job, outcome);
  synced_.notify_all();
  if (finished.has_error())
    base::logger("broker").error(
        "{}-{}: the disk refused a sync ({}); nothing more is written "
        "to it until a restart",
        topic_->name, index_, finished.error().message());
  co_return finished;
}

boost::asio::awaitable<void> Partition::no_sync_running() {
  while (sync_running_) co_await synced_.wait();
}

boost::asio::awaitable<base::Result<void>> Partition::truncate_to(base::Offset offset) {
  const auto self = shared_from_this();
  co_await no_sync_running();
  if (closed_) co_return BrokerErrc::not_here;
  auto done = log_->truncate_to(offset);
  wake_all();
  co_return done;
}

boost::asio::awaitable<base::Result<void>> Partition::restart_at(base::Offset offset) {
  const auto self = shared_from_this();
  co_await no_sync_running();
  if (closed_) co_return BrokerErrc::not_here;
  auto done = log_->restart_at(offset);
  wake_all();
  co_return done;
}

boost::asio::awaitable<base::Result<storage::CompactionStats>> Partition::compact(
    std::int64_t now_ms) {
  const auto self = shared_from_this();
  co_await no_sync_running();
  if (closed_) co_return BrokerErrc::not_here;
  storage::CompactionLimits limits;
  limits.now_ms = now_ms;
  limits.key_bytes_max = compaction_key_bytes_max;
  co_return log_->compact(limits);
}

ReadAnswer Partition::read(const ReadRequest& request) const {
  ReadAnswer answer;
  if (closed_) {
    answer.error = BrokerErrc::not_here;
    return answer;
  }
  if (const auto done = read_records(request, answer); done.has_error())
    answer.error = done.error();
  answer.high_watermark = high_watermark();
  answer.last_stable_offset = last_stable_offset();
  answer.log_start = log_start();
  answer.changes = changes_;
  return answer;
}

base::Result<void> Partition::read_records(const ReadRequest& request, ReadAnswer& answer) const {
  TRY_VOID(check_leader_epoch(request.current_leader_epoch));
  if (request.as_replica) {
    // Kafka's words for a follower that is in no assignment it knows of.
    if (request.current_leader_epoch) return BrokerErrc::unknown_leader_epoch;
    return BrokerErrc::not_a_replica;
  }
  if (request.last_fetched_epoch) {
    const auto end = log_->end_offset_for(*request.last_fetched_epoch);
    if (!end) return storage::StorageErrc::offset_out_of_range;
    // Before divergence: a reader below the start is out of range whatever its epoch (B13). One
    // beyond the end is not, for that is how a log that was cut shows.
    if (request.offset < log_start()) return storage::StorageErrc::offset_out_of_range;
    if (end->epoch < *request.last_fetched_epoch || end->end_offset < request.offset) {
      answer.diverging = *end;
      return {};
    }
  }
  if (request.offset < log_start() || request.offset > log_end())
    return storage::StorageErrc::offset_out_of_range;
  const bool committed = request.isolation == Isolation::read_committed;
  storage::ReadLimits limits;
  limits.below = readable_end(request.isolation);
  if (request.offset >= *limits.below) return {};
  if (request.bytes_max < 0) return BrokerErrc::negative_limit;
  limits.max_bytes = static_cast<std::uint32_t>(request.bytes_max);
  limits.want_upper_bound = committed;
  TRY(auto found, log_->read(request.offset, limits));
  answer.slice = std::move(found.slice);
  answer.first_batch_bytes = found.first_bytes;
  answer.sealed = found.sealed;
  if (committed && answer.slice.size > 0) {
    TRY(answer.aborted, log_->aborted_transactions(request.offset, found.upper_bound));
    // They lie in the order of their ends; clients that drop records as they go want their begins.
    std::ranges::sort(answer.aborted, {}, &storage::AbortedTransaction::first_offset);
  }
  return {};
}

void Partition::add_waiter(std::shared_ptr<FetchWaiter> waiter, Isolation isolation) {
  if (waiters_.size() >= waiters_prune_min)
    std::erase_if(waiters_, [](const Waiter& one) { return one.waiter->done(); });
  waiters_.push_back({std::move(waiter), isolation, readable_end(isolation)});
}

std::size_t Partition::waiting() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(waiters_, [](const Waiter& one) { return !one.waiter->done(); }));
}

void Partition::log_grew(std::size_t bytes) {
  if (waiters_.empty()) return;
  for (Waiter& one : waiters_) {
    if (one.isolation == Isolation::read_uncommitted)
      one.waiter->add_bytes(static_cast<std::int64_t>(bytes));
    else if (last_stable_offset() > one.seen_end)
      one.waiter->wake();
  }
  std::erase_if(waiters_, [](const Waiter& one) { return one.waiter->done(); });
}

void Partition::wake_all() {
  ++changes_;
  for (Waiter& one : std::exchange(waiters_, {})) one.waiter->wake();
}

void Partition::refuse_writes() {
  writes_ = Writes::refused;
  wake_all();
}

base::Result<void> Partition::allow_writes() {
  if (closed_) return BrokerErrc::not_here;
  if (is_mirrored(*topic_)) return BrokerErrc::busy;
  TRY_VOID(log_->begin_epoch(leader_epoch_));
  writes_ = Writes::allowed;
  wake_all();
  return {};
}

void Partition::update(TopicPtr topic, storage::LogConfig config, protocol::ProduceRules rules) {
  if (closed_) return;
  const base::LeaderEpoch epoch =
      topic->partitions.at(static_cast<std::size_t>(index_)).leader_epoch;
  CHECK(epoch >= leader_epoch_);
  const bool was_open = writes_ == Writes::allowed;
  const bool had_mirror = !topic_->mirror.empty();
  topic_ = std::move(topic);
  log_->set_config(config);
  rules_ = rules;
  if (is_mirrored(*topic_)) {
    writes_ = Writes::refused;
  } else if (had_mirror && topic_->mirror.empty()) {
    writes_ = Writes::allowed;
  }
  if (epoch == leader_epoch_ && was_open == (writes_ == Writes::allowed)) return;
  leader_epoch_ = epoch;
  if (topic_->mirror.empty()) {
    if (const auto begun = log_->begin_epoch(epoch); begun.has_error())
      base::logger("broker").error("{}-{}: leader epoch {} was not written down: {}", topic_->name,
                                   index_, epoch, begun.error().message());
  }
  wake_all();
}

void Partition::tick(std::int64_t now_ms) {
  if (closed_) return;
  auto& log = base::logger("broker");
  if (const auto error = log_->offline()) {
    // A full disk passes; a failed write or sync is for an operator and a restart.
    if (*error != storage::StorageErrc::no_space && !storage::is_no_space(*error)) return;
    if (log_->reopen_after_error(now_ms).has_value())
      log.info("{}-{}: there is space on the disk again", topic_->name, index_);
    return;
  }
  if (const auto rolled = log_->maybe_roll(now_ms); rolled.has_error())
    log.error("{}-{}: rolling the segment failed: {}", topic_->name, index_,
              rolled.error().message());
}

boost::asio::awaitable<storage::Log*> Partition::close() {
  const auto self = shared_from_this();
  if (std::exchange(closed_, true)) co_return nullptr;
  wake_all();
  co_await no_sync_running();
  synced_.notify_all();
  co_return log_.get();
}

}  // namespace broker
