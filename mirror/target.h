// What mirroring needs from this broker. broker/mirror_target.cc implements it; tests have a fake.
//
// Threads: a broker has `shard_count()` shards, each one thread with its executor. A partition
// belongs to one shard for life. TargetPartition is used on its own shard only. Target's other
// calls are made on shard 0, where the mirror coordinator lives, unless said otherwise.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mirror/group_offsets.h"
#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace mirror {

template <class T>
using Task = boost::asio::awaitable<base::Result<T>>;

enum class TargetErrc {
  out_of_order = 1,    // the batches do not begin where the log ends
  epoch_above_leader,  // a batch's leader epoch is above this partition's
  epoch_goes_back,     // a batch's leader epoch is below that of an earlier batch
  corrupt_batch,
  storage_offline,  // the log or its directory failed
  no_space,         // the reserve of the disk is reached; passes when there is space again
  gone,             // the partition was deleted meanwhile
  already_exists,
  id_mismatch,        // the topic exists here under another id
  id_in_use,          // another topic here has the id
  busy,               // a concurrent change won; look again
  group_has_members,  // its consumers are here: its offsets are theirs
  group_unavailable,  // the group coordinator is not ready for it; passes
  group_refused,      // it did not write them, and its log says why
};
const boost::system::error_category& target_category();
inline boost::system::error_code make_error_code(TargetErrc e) {
  return {static_cast<int>(e), target_category()};
}

struct LogPosition {
  base::Offset log_start = 0;
  base::Offset log_end = 0;
  base::Offset durable_end = 0;                 // survives a power cut
  std::optional<base::LeaderEpoch> last_epoch;  // of the last batch in the log
  base::LeaderEpoch leader_epoch = 0;           // of this partition here
};

struct EpochEndOffset {
  base::LeaderEpoch epoch = 0;
  base::Offset end_offset = 0;
};

class TargetPartition {
 public:
  virtual ~TargetPartition() = default;
  virtual const std::string& topic() const = 0;
  virtual base::TopicPartition id() const = 0;
  virtual LogPosition position() const = 0;
  // The topic's LocalTopic::source_id.
  virtual std::optional<base::Uuid> source_id() const = 0;
  // The partition was deleted: every call fails from now on. One with the same id may exist by now;
  // Target::partition() has it.
  virtual bool is_gone() const = 0;

  // The door for the source's batches: no byte is changed. They are written when this returns and
  // become durable by a later flush (position().durable_end tells). The high watermark follows and
  // waiting consumers wake.
  virtual base::Result<LogPosition> append(base::Bytes batches) = 0;
  // Waits until all that was appended before the call is on disk.
  virtual Task<LogPosition> flush() = 0;
  virtual Task<LogPosition> truncate_to(base::Offset offset) = 0;
  virtual Task<LogPosition> restart_at(base::Offset offset) = 0;
  virtual base::Result<LogPosition> advance_log_start(base::Offset offset) = 0;
  // As OffsetForLeaderEpoch answers: the largest epoch ≤ `epoch` in the log and where it ends;
  // absent when there is none.
  virtual std::optional<EpochEndOffset> end_offset_for(base::LeaderEpoch epoch) const = 0;

  // Raises the leader epoch to at least `at_least`, durably, and publishes it; never lowers it.
  virtual Task<base::LeaderEpoch> bump_epoch(base::LeaderEpoch at_least) = 0;
  // One ABORT marker for each producer with an open transaction, with this partition's own leader
  // epoch; durable.
  virtual Task<LogPosition> write_abort_markers() = 0;
  // The producer-id reset control record (KIP-1279 c.2): forgets all producer state; durable.
  virtual Task<LogPosition> write_producer_id_reset() = 0;

  // From now on Produce (and DeleteRecords …) is refused with POLICY_VIOLATION and a text that
  // names the mirror.
  virtual void refuse_writes(std::string mirror) = 0;
  // Durable (the broker refuses again after a restart until this was done once more), then clients
  // may write.
  virtual Task<void> allow_writes() = 0;
};

// A topic of this broker as the mirror sees it.
struct LocalTopic {
  std::string name;
  base::Uuid id;
  std::vector<base::LeaderEpoch> leader_epochs;  // one per partition
  std::string mirror;                            // empty: belongs to none
  std::int8_t desired_state = -1;                // MIRRORING 3, PAUSED 5, STOPPED 7, -1 none
  // The topic's id at the source, where that is not `id`. Zero: the source had no ids when it was
  // attached, or ever since.
  std::optional<base::Uuid> source_id = {};
};

struct MirrorDefinition {
  std::string name;
  std::map<std::string, std::string> configs;  // KIP-1279 k.3, short names
};

class Target {
 public:
  virtual ~Target() = default;

  virtual const std::string& cluster_id() const = 0;
  virtual std::size_t shard_count() const = 0;
  virtual boost::asio::any_io_executor executor(std::size_t shard) = 0;    // any thread
  virtual std::size_t shard_of(base::TopicPartition partition) const = 0;  // any thread
  // On the partition's shard; nullptr when there is none (yet).
  virtual std::shared_ptr<TargetPartition> partition(base::TopicPartition id) = 0;

  // Topics. Desired states are kept in the metadata store with the topic.
  virtual std::vector<LocalTopic> topics() const = 0;
  virtual std::optional<LocalTopic> topic(const std::string& name) const = 0;
  // Creates the topic with this id (a fresh one when zero) and partition count, or adopts an
  // existing one with the same id (or, when `id` is zero, with the same name and no other mirror);
  // read-only from its first moment. already_exists, id_mismatch, id_in_use otherwise.
  virtual Task<LocalTopic> attach_topic(std::string mirror, std::string name, base::Uuid id,
                                        std::int32_t partitions) = 0;
  virtual Task<void> add_partitions(std::string name, std::int32_t total) = 0;
  virtual Task<void> set_desired_state(std::vector<std::string> names, std::int8_t state) = 0;
  // Durable on return.
  virtual Task<void> remember_source_id(std::string name, base::Uuid source_id) = 0;
  // Forgets that the topics belong to a mirror; they must be STOPPED.
  virtual Task<void> detach_topics(std::vector<std::string> names) = 0;

  // Mirror definitions, in the metadata store.
  virtual std::vector<MirrorDefinition> mirrors() const = 0;
  virtual Task<void> save_mirror(MirrorDefinition definition) = 0;
  virtual Task<void> remove_mirror(std::string name) = 0;

  // Commits for groups without members, as if they had done so themselves; durable on return. One
  // outcome for each group, in order: none, group_has_members (nothing was changed),
  // group_unavailable or group_refused.
  virtual boost::asio::awaitable<std::vector<base::Error>> commit_group_offsets(
      std::vector<GroupCommit> commits) = 0;

  // The internal topic `__mirror_state`: compacted, `mirror.state.topic.num.partitions` partitions,
  // made at first use. Durable on return. A null value is a tombstone.
  struct StateRecord {
    base::Buffer key;
    std::optional<base::Buffer> value;
  };
  virtual std::int32_t state_partition_count() const = 0;
  virtual Task<void> append_state(std::int32_t state_partition,
                                  std::vector<StateRecord> records) = 0;
  // Calls `apply` on shard 0 with every record of all its partitions, each partition in log order.
  virtual Task<void> replay_state(
      std::function<void(base::Bytes key, std::optional<base::Bytes> value)> apply) = 0;
};

}  // namespace mirror

template <>
struct boost::system::is_error_code_enum<mirror::TargetErrc> : std::true_type {};
