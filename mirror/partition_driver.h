// Runs the machine of one mirrored partition: performs its actions in order, on the partition's
// shard, and reports their outcomes.
//
// What needs no waiting (appending, above all) is done inline, within the call that brought the
// event, so a catch-up needs no coroutine per partition. The rest, disk and metadata, is one
// coroutine at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mirror/control_types.h"
#include "mirror/fetcher.h"
#include "mirror/group_sync.h"
#include "mirror/machine.h"
#include "mirror/target.h"
#include "protocol/base/clock.h"

namespace mirror {

class PartitionDriver;

// What a driver needs of its shard. Calls on the shard's thread.
class DriverHost {
 public:
  virtual ~DriverHost() = default;
  virtual boost::asio::any_io_executor executor() = 0;
  virtual const std::string& mirror() const = 0;
  virtual const Settings& settings() const = 0;
  virtual std::chrono::milliseconds source_deadline() const = 0;
  virtual std::int32_t jitter_permille() = 0;
  // Counted, so that the shard can wait for its end.
  virtual void spawn(boost::asio::awaitable<void> task) = 0;
  virtual Task<void> persist(base::TopicPartition id, Record record, LeaderEpoch leader_epoch) = 0;
  virtual Task<void> forget(base::TopicPartition id) = 0;
  // For the failover of a partition that ends there; returns also when it cannot be done.
  virtual boost::asio::awaitable<void> settle_groups(std::string topic, GroupPartition at) = 0;
  // The fetcher of this broker of the source; nullptr when its address is not known.
  virtual Fetcher* fetcher_of(base::NodeId node) = 0;
  // Answered by driver->aligned(), or failed(), with the ticket.
  virtual void align(std::shared_ptr<PartitionDriver> driver, Ticket ticket, Align what) = 0;
};

// Where the partition is at the source.
struct SourceLeader {
  base::NodeId node = 0;
  std::optional<LeaderEpoch> epoch;
};

class PartitionDriver final : public FetchClient,
                              public std::enable_shared_from_this<PartitionDriver> {
 public:
  PartitionDriver(DriverHost& host, std::shared_ptr<TargetPartition> target);
  ~PartitionDriver() override;
  PartitionDriver(const PartitionDriver&) = delete;
  PartitionDriver& operator=(const PartitionDriver&) = delete;

  // First of all: enters the persisted state.
  void restore(std::optional<Record> record);
  // A command or an outcome.
  void handle(const Event& event);
  // From now on nothing is begun any more; what is under way ends.
  void close();
  // About once a second: deadlines and the rate.
  void tick(base::Clock::time_point now);
  // Mirrored data is flushed lazily, since it can be fetched again: at once when the partition has
  // caught up, so that its lag is seen to end, else every few seconds. True: a flush was begun.
  bool flush_if_due(base::Clock::time_point now);

  // The source broker that leads the partition, as metadata showed last.
  void set_leader(SourceLeader leader, base::Uuid source_topic_id);

  const std::string& topic() const { return target_->topic(); }
  base::TopicPartition id() const { return target_->id(); }
  std::optional<base::Uuid> source_id() const { return target_->source_id(); }
  bool is_gone() const { return target_->is_gone(); }
  const State& state() const { return state_; }
  const std::optional<SourceLeader>& leader() const { return leader_; }
  std::uint64_t bytes_copied() const { return bytes_copied_; }
  PartitionDescription describe(base::Clock::time_point now) const;
  GroupPartition offsets_here() const;

  bool on_fetched(const FetchedPartition& answer) override;
  void on_fetch_failed(const base::Error& error, const std::string& text) override;

 private:
  // What became of an action. `finished` false: it is under way, and its outcome comes later.
  struct Performed {
    bool finished = true;
    std::optional<Event> outcome;
  };

  void pump();
  Performed perform(const Action& action, bool last);
  Performed begin_async(const Action& action, bool last);
  boost::asio::awaitable<void> run_async(Action action, Ticket ticket, bool last);
  boost::asio::awaitable<Event> perform_async(const Action& action, Ticket ticket);
  boost::asio::awaitable<void> flush();
  boost::asio::awaitable<base::Result<LogPosition>> truncate(Truncate what);
  void finish(Performed performed, Ticket ticket, bool last);
  void take_up(std::vector<Action> actions);
  void leave_waiting();

  Performed append();
  Performed fetch(const Fetch& action);
  Performed schedule(const ScheduleRetry& action);
  bool on_nothing_new(const FetchedPartition& answer);
  bool on_batches(const FetchedPartition& answer);

  Event log_is(const LogPosition& position) const;
  Event failed(const base::Error& error) const;
  void note_transition(const State& before, const Event& event);
  bool source_is_heard() const;

  DriverHost& host_;
  std::shared_ptr<TargetPartition> target_;
  State state_;
  std::vector<Action> todo_;
  std::size_t next_ = 0;
  bool pumping_ = false;
  bool busy_ = false;  // a coroutine performs an action
  bool flushing_ = false;
  bool closed_ = false;
  // It FAILED because the source's topic is another one: so are that one's group offsets.
  bool source_is_foreign_ = false;
  base::Clock::time_point since_;      // the state
  base::Clock::time_point ticket_at_;  // the ticket
  base::Timer retry_timer_;

  std::optional<SourceLeader> leader_;
  base::Uuid source_topic_id_;
  std::optional<base::NodeId> fetching_from_;
  Fetcher* fetcher_ = nullptr;  // while a fetch is wished for
  base::Bytes fetched_;         // of the answer being handled
  std::optional<base::Offset> source_high_watermark_;

  std::uint64_t bytes_copied_ = 0;
  std::uint64_t bytes_at_tick_ = 0;
  double bytes_per_second_ = 0;
  base::Clock::time_point ticked_at_;
  base::Clock::time_point flushed_at_;
};

}  // namespace mirror
