// Keeps the committed offsets of the source's consumer groups here, on shard 0: a round at every
// refresh of the mirror, and a last one for the partitions of a failover. What is committed is
// decided by group_sync.h.
//
// A round asks every broker of the source for the groups that it coordinates, and then for their
// offsets, some groups at a time, so that its memory and each of its requests are bounded. What
// fails is left for the next round and shown by describe().
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mirror/control_types.h"
#include "mirror/group_sync.h"
#include "mirror/mirror_config.h"
#include "mirror/mirror_shard.h"
#include "mirror/source_client.h"
#include "mirror/target.h"
#include "mirror/task_group.h"

namespace mirror {

// What the rounds need of their mirror.
class GroupHost {
 public:
  virtual ~GroupHost() = default;
  virtual const std::string& name() const = 0;
  virtual const MirrorConfig& config() const = 0;
  virtual std::vector<LocalTopic> topics() const = 0;
  virtual boost::asio::awaitable<std::vector<PartitionSnapshot>> snapshot() = 0;
  // As the last sync found it.
  virtual bool source_answers() const = 0;
  virtual std::chrono::milliseconds refresh_interval() const = 0;
  // `limit`: no call may take longer.
  virtual SourceClientOptions groups_client_options(std::chrono::milliseconds limit) const = 0;
};

class GroupRounds {
 public:
  // All outlive this. `tasks` is waited for, after close(), before this goes.
  GroupRounds(GroupHost& host, Target& target, TaskGroup& tasks);
  ~GroupRounds();

  // The periodic rounds, until close().
  boost::asio::awaitable<void> run();
  // Begins no more; whoever waits is let go.
  void close();
  // The source answers, or the patterns changed: begin a round soon.
  void wake();

  // For a partition that is failing over: nothing is fetched any more, and clients do not write
  // yet. Returns when the last offsets are committed or could not be had in time; afterwards no
  // round touches the partition. Waits for the source no longer than groups.stop.timeout.ms, and
  // for a source that is known to be away not at all.
  boost::asio::awaitable<void> settle(std::string topic, GroupPartition at);

  std::vector<GroupDescription> describe() const;
  // Of the last round as a whole.
  const std::string& problem() const { return problem_; }

 private:
  struct Round;
  struct Waiter {
    GroupPartition at;
    std::uint64_t turn = 0;
  };
  struct Status {
    GroupProgress progress;
    std::optional<std::int64_t> synced_ms;
    std::string error;
  };

  boost::asio::awaitable<std::chrono::milliseconds> periodic_round();
  boost::asio::awaitable<void> settle_loop();
  boost::asio::awaitable<void> last_round(std::map<std::pair<std::string, std::int32_t>, Waiter>);
  boost::asio::awaitable<void> perform(Round& round);
  boost::asio::awaitable<bool> find_topics(Round& round);
  boost::asio::awaitable<void> find_groups(Round& round);
  boost::asio::awaitable<void> copy_groups(Round& round, base::NodeId node,
                                           std::vector<std::string> names);
  boost::asio::awaitable<void> commit(Round& round, std::vector<GroupAnswer> answers);
  boost::asio::awaitable<GroupPartitions> partitions_of(Round& round);
  boost::asio::awaitable<void> sleep(base::Timer& timer, std::chrono::milliseconds time);
  void note_progress(Round& round, const PlannedGroup& planned);
  void finish(const Round& round);
  void note_problem(std::string problem);
  void fail_group(Round& round, const std::string& group, std::string problem, bool may_pass);
  bool wanted() const;
  std::chrono::milliseconds next_pause(const Round& round);

  GroupHost& host_;
  Target& target_;
  TaskGroup& tasks_;
  base::Timer timer_;    // until the next periodic round
  base::Timer settled_;  // waited on by those that fail over
  base::Timer idle_;     // waited on by the last round, for the periodic one to end
  bool closed_ = false;
  bool woken_ = false;
  bool running_ = false;  // a periodic round is
  bool interrupted_ = false;
  std::unique_ptr<SourceClient> client_;

  GroupMemory memory_;
  std::map<std::string, Status> groups_;
  std::string problem_;
  int unfinished_rounds_ = 0;  // in a row

  std::map<std::pair<std::string, std::int32_t>, Waiter> waiting_;
  std::uint64_t turns_ = 0;
  std::uint64_t settled_turn_ = 0;
  bool settling_ = false;
};

}  // namespace mirror
