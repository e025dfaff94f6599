// Compares what is desired of a mirror with what is, and says what to ask for. Pure,
// level-triggered: whoever runs it gives it everything it knows, carries the requests out as far as
// it can, and runs it again after a while or a change. A request that was lost or came too early is
// simply made again; one that is not needed any more is not. Nothing here waits, and failing over
// needs nothing of the source.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mirror/machine.h"
#include "protocol/base/ids.h"

namespace mirror {

// ---- What is here.

struct LocalPartition {
  MirrorState state = MirrorState::unknown;  // of its machine
  bool final_failure = false;                // FAILED, and not tried again by itself
  bool unreachable = false;                  // FAILED because the source could not be reached
  // FAILED because the source's data have an epoch above this one, which its metadata showed.
  std::optional<LeaderEpoch> behind_epoch = {};
  LeaderEpoch leader_epoch = 0;
  std::optional<base::NodeId> fetches_from = {};  // node id of the source broker
};

// A topic of this mirror.
struct MirroredTopic {
  std::string name = {};
  base::Uuid id = {};
  std::optional<base::Uuid> source_id = {};    // as LocalTopic's
  MirrorState desired = MirrorState::unknown;  // MIRRORING, PAUSED, STOPPED; UNKNOWN: nothing asked
  bool excluded = false;                       // matches topics.exclude
  std::vector<LocalPartition> partitions = {};
};

// Any other topic here, whose name or id a source topic may want.
struct OtherTopic {
  std::string name = {};
  base::Uuid id = {};
  std::string mirror = {};  // empty: none
};

struct Here {
  // The actual states were replayed to the end. Until then an absent state means nothing, and
  // acting on it could cut a log; no partition is commanded.
  bool states_loaded = false;
  std::optional<std::string> source_cluster_id = {};  // remembered since the first contact
  std::vector<MirroredTopic> topics = {};
  std::vector<OtherTopic> other_topics = {};
};

// ---- What the source says.

struct SourcePartition {
  std::optional<base::NodeId> leader = {};       // absent: none at the moment
  std::optional<LeaderEpoch> leader_epoch = {};  // absent: the source names none
};

struct SourceTopic {
  std::string name = {};
  base::Uuid id = {};                            // zero: the source has no topic ids (before 2.8)
  bool included = false;                         // matches topics.include and not topics.exclude
  std::vector<SourcePartition> partitions = {};  // by partition number
  // What the source says of a mirror of its own of this topic from our cluster, the worst of all
  // partitions. Needed where the topic exists here and belongs to no mirror; absent: not known.
  std::optional<Reverse> reverse = {};
};

// One sync with the source. Absent topics count only where `complete` holds: a call that failed,
// was cut short or was not allowed says nothing about what exists.
struct Source {
  bool reachable = false;
  bool complete = false;                       // all topics were listed without an error
  std::optional<std::string> cluster_id = {};  // absent: the source did not say
  std::vector<SourceTopic> topics = {};
};

// ---- What to ask for.

// Create here (or attach, if a topic with this id exists), with desired state MIRRORING.
struct CreateTopic {
  std::string name = {};
  base::Uuid id = {};  // zero: choose one
  std::int32_t partitions = 0;
  bool operator==(const CreateTopic&) const = default;
};
struct AddPartitions {
  std::string name = {};
  std::int32_t total = 0;
  bool operator==(const AddPartitions&) const = default;
};
// The source has topic ids now and had none before (an upgrade): remember, durably, which it is.
struct RememberTopicId {
  std::string name = {};
  base::Uuid id = {};
  bool operator==(const RememberTopicId&) const = default;
};
// Set the desired state to STOPPED: the topic is excluded now.
struct StopTopic {
  std::string name = {};
  bool operator==(const StopTopic&) const = default;
};
// Remember it, durably, before any partition fetches.
struct RememberCluster {
  std::string cluster_id = {};
  bool operator==(const RememberCluster&) const = default;
};
// A source topic that cannot be mirrored. To be shown with the mirror: it has no partition to fail.
struct Conflict {
  std::string name = {};
  std::string text = {};
  bool operator==(const Conflict&) const = default;
};
// MarkFailed for each partition of the topic.
struct FailTopic {
  std::string name = {};
  Failure failure = Failure::topic_deleted;
  std::string text = {};
  bool operator==(const FailTopic&) const = default;
};
enum class PartitionCommand : std::uint8_t { start, pause, resume, stop, source_returned };
struct CommandPartition {
  std::string name = {};
  std::int32_t partition = 0;
  PartitionCommand command = PartitionCommand::start;
  bool operator==(const CommandPartition&) const = default;
};
// Fetch the partition from this broker of the source: its leader.
struct AssignLeader {
  std::string name = {};
  std::int32_t partition = 0;
  base::NodeId node = 0;
  std::optional<LeaderEpoch> leader_epoch = {};
  bool operator==(const AssignLeader&) const = default;
};
// SourceEpochSeen for the partition: the source's epoch comes near ours.
struct BumpAhead {
  std::string name = {};
  std::int32_t partition = 0;
  LeaderEpoch source_epoch = 0;
  bool operator==(const BumpAhead&) const = default;
};

using Request =
    std::variant<CreateTopic, AddPartitions, RememberTopicId, StopTopic, RememberCluster, Conflict,
                 FailTopic, CommandPartition, AssignLeader, BumpAhead>;

// What one sync must know of those before it. In memory only: after a restart a deletion takes two
// syncs again to be believed.
struct SyncMemory {
  std::map<std::string, std::int32_t> absent;  // complete listings in a row without the topic
  bool operator==(const SyncMemory&) const = default;
};

// A topic is deleted when this many complete listings in a row lack it. A broker that has just
// started may answer without its topics for a moment (2.1.1 does), so syncs must be seconds apart,
// and a listing with nothing in it at all needs more of them.
constexpr std::int32_t absences_for_deletion = 2;
constexpr std::int32_t absences_for_deletion_when_empty = 5;

// Whether the id that the source shows is that of the topic which the copy is of. A topic that was
// mirrored when the source had no ids is taken for the same when they appear: from then on its id
// is `remembered`, and another one is another topic.
bool is_same_topic(const base::Uuid& here, const std::optional<base::Uuid>& remembered,
                   const base::Uuid& at_source);

struct Plan {
  std::vector<Request> requests = {};  // in the order in which to carry them out
  SyncMemory memory;                   // for the next sync
};
// After a sync with the source. `source.reachable` false: the sync failed.
Plan reconcile(const Here& here, const Source& source, SyncMemory memory);
// Topics that would be attached to a topic of ours if the source does not mirror them from us: it
// has to be asked, because attaching takes the right to write away from the topic's producers.
std::vector<std::string> to_be_adopted(const Here& here, const Source& source);
// Between syncs, after a command: what needs nothing of the source.
std::vector<Request> reconcile_commands(const Here& here);

}  // namespace mirror
