// One partition as its clients see it: the log, the high watermark, whether clients may write, who
// waits for records. Belongs to one shard; only that shard's thread calls it.
//
// High watermark: with one replica it is the log end, so records can be read as soon as they are
// written, as from a Kafka topic with one replica. A power cut may then take records away that a
// consumer has read, if they were produced with acks below all; what acks=all acknowledged is on
// disk. What is *derived* from mirrored records (positions, synced offsets) waits for the disk: see
// flush().
#pragma once
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/catalog.h"
#include "broker/transaction_marker.h"
#include "broker/wake_signal.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/produce_check.h"
#include "storage/log.h"

namespace broker {

class FetchWaiter;
class Shard;

enum class Isolation : std::int8_t { read_uncommitted = 0, read_committed = 1 };

// Kafka's limits for one partition's read.
struct ReadRequest {
  base::Offset offset = 0;
  std::int32_t bytes_max = 0;  // an error when negative and there is something to read
  Isolation isolation = Isolation::read_uncommitted;
  std::optional<base::LeaderEpoch> current_leader_epoch;
  std::optional<base::LeaderEpoch> last_fetched_epoch;
  bool as_replica = false;
};

struct ReadAnswer {
  base::Error error;
  base::Offset high_watermark = 0;
  base::Offset last_stable_offset = 0;
  base::Offset log_start = 0;
  storage::FileSlice slice;  // size 0: nothing to read
  std::uint32_t first_batch_bytes = 0;
  bool sealed = false;  // the slice ends with its segment, and there are more
  std::optional<storage::EpochEnd> diverging;
  std::uint64_t changes = 0;                         // see Partition::changes
  std::vector<storage::AbortedTransaction> aborted;  // read_committed only
};

struct ProduceAnswer {
  base::Error error;
  // Set instead of `error` when the records themselves are refused, and which of them.
  protocol::ProduceError refusal = protocol::ProduceError::none;
  std::vector<protocol::RecordFault> faults;
  std::string message;  // for the client; may be empty
  storage::AppendInfo info;
  base::Offset log_start = 0;
};

struct TransactionTicket {
  base::ProducerId producer_id = 0;
  std::uint64_t markers = 0;
};

class Partition : public std::enable_shared_from_this<Partition> {
 public:
  // The leader epoch and the settings are those of the topic's record.
  Partition(Shard& home, TopicPtr topic, std::int32_t index, std::unique_ptr<storage::Log> log,
            protocol::ProduceRules rules);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  base::TopicPartition id() const { return {topic_->id, index_}; }
  const Topic& topic() const { return *topic_; }
  std::int32_t index() const { return index_; }
  base::LeaderEpoch leader_epoch() const { return leader_epoch_; }
  base::Offset log_start() const { return log_->log_start(); }
  base::Offset log_end() const { return log_->log_end(); }
  base::Offset high_watermark() const { return log_->log_end(); }
  base::Offset last_stable_offset() const { return log_->last_stable_offset(high_watermark()); }
  // The offset that a reader of this isolation may read up to.
  base::Offset readable_end(Isolation isolation) const;
  storage::Log& log() { return *log_; }
  const storage::Log& log() const { return *log_; }

  // fenced_leader_epoch or unknown_leader_epoch unless absent or ours.
  base::Result<void> check_leader_epoch(std::optional<base::LeaderEpoch> theirs) const;

  // Whether clients may write: read_only (mirrored), not_settled (a mirrored topic that is to be
  // writable, but its partition has not been handed over yet), or the log's own trouble.
  base::Result<void> check_writable() const;
  const std::string& mirror() const { return topic_->mirror; }
  // Nothing is served any more: the topic was deleted, or the broker ends.
  bool closed() const { return closed_; }

  // A client's batch: one of magic 2, see look_at_produce(). It is patched in place. In the page
  // cache on return; see flush().
  // A batch that begins a transaction here needs a ticket.
  ProduceAnswer produce(base::MutableBytes batch, std::int64_t now_ms,
                        std::optional<TransactionTicket> ticket = std::nullopt);
  // Before a producer's transactional batch: nothing if it has a transaction open here, else a
  // ticket, which is good once the coordinator knows that the partition is in the transaction, and
  // until a marker ends that (KIP-890). Each ticket is given back.
  std::optional<TransactionTicket> take_ticket(base::ProducerId id, base::ProducerEpoch epoch);
  void give_back(const TransactionTicket& ticket);
  // Whether a batch of the producer may be written, by what is open or by the ticket.
  bool may_write_transaction(base::ProducerId id, base::ProducerEpoch epoch,
                             const std::optional<TransactionTicket>& ticket) const;
  // Waits until everything below `end` is on disk. Syncs are shared: while one runs, those who come
  // wait for the next.
  boost::asio::awaitable<base::Result<void>> flush(base::Offset end);
  // Waits until all that was done to the log is on disk: its start as well, and files that go.
  boost::asio::awaitable<base::Result<void>> sync();

  ReadAnswer read(const ReadRequest& request) const;
  // Rises with everything that wakes all who wait: who read before and enlists after it would
  // otherwise miss it.
  std::uint64_t changes() const { return changes_; }
  // Tells `waiter` of what can be read in addition from now on.
  void add_waiter(std::shared_ptr<FetchWaiter> waiter, Isolation isolation);
  std::size_t waiting() const;
  // The leader epoch, the right to write or the log's end changed otherwise than by growing: who
  // waits looks again.
  void wake_all();

  // What the marker's is to be in this log.
  std::int32_t coordinator_epoch_of(const TransactionMarker& marker) const;
  // The end of a transaction. For clients' eyes; see flush().
  base::Result<storage::AppendInfo> append_marker(const TransactionMarker& marker,
                                                  std::int64_t now_ms);
  // Batches of the broker itself: internal topics, transaction markers.
  base::Result<storage::AppendInfo> append_internal(base::MutableBytes batch, std::int64_t now_ms);

  // The mirror's doors; see mirror/target.h.
  base::Result<storage::AppendInfo> append_verbatim(base::Bytes batches, std::int64_t now_ms);
  boost::asio::awaitable<base::Result<void>> truncate_to(base::Offset offset);
  boost::asio::awaitable<base::Result<void>> restart_at(base::Offset offset);
  void refuse_writes();
  // busy while the topic is to be mirrored: what clients write then would be cut away.
  base::Result<void> allow_writes();

  // By key. Blocks the shard's thread while it lasts.
  boost::asio::awaitable<base::Result<storage::CompactionStats>> compact(std::int64_t now_ms);

  // The catalog's newest word on the topic: settings, desired state, leader epoch.
  void update(TopicPtr topic, storage::LogConfig config, protocol::ProduceRules rules);
  // Rolls, tries to recover from a full disk.
  void tick(std::int64_t now_ms);
  // Waits for a running sync, then nothing touches the log any more: it is the caller's, to be
  // closed on whatever thread, or deleted. Null: somebody was here before.
  boost::asio::awaitable<storage::Log*> close();

 private:
  enum class Writes { allowed, refused, not_settled };
  struct Waiter {
    std::shared_ptr<FetchWaiter> waiter;
    Isolation isolation;
    base::Offset seen_end;
  };

  // Requests under way that hold a ticket of this producer, and the markers that it got meanwhile.
  struct Verifying {
    std::size_t tickets = 0;
    std::uint64_t markers = 0;
  };

  void settle_writes();
  void note_markers(base::Bytes batches);
  void log_grew(std::size_t bytes);
  base::Result<void> read_records(const ReadRequest& request, ReadAnswer& answer) const;
  boost::asio::awaitable<void> no_sync_running();
  boost::asio::awaitable<base::Result<void>> run_sync(std::unique_ptr<storage::SyncJob> job);

  Shard& home_;
  TopicPtr topic_;
  std::int32_t index_;
  std::unique_ptr<storage::Log> log_;
  protocol::ProduceRules rules_;
  base::LeaderEpoch leader_epoch_ = 0;
  Writes writes_ = Writes::allowed;
  bool sync_running_ = false;
  bool closed_ = false;
  Signal synced_;
  std::vector<Waiter> waiters_;
  std::unordered_map<base::ProducerId, Verifying> verifying_;
  std::uint64_t changes_ = 0;
};

}  // namespace broker
