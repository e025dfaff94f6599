#include "broker/mirror_target.h"

#include <algorithm>
#include <utility>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/coordinator_log.h"
#include "broker/error.h"
#include "broker/group_coordinator.h"
#include "broker/mirror_partition.h"
#include "mirror/task_group.h"
#include "protocol/base/clock.h"
#include "protocol/batch_builder.h"

namespace broker {
namespace {

constexpr std::uint32_t replay_chunk_bytes = 1 << 20;

mirror::LocalTopic local(const Topic& topic) {
  mirror::LocalTopic out;
  out.name = topic.name;
  out.id = topic.id;
  out.mirror = topic.mirror;
  out.desired_state = topic.desired_state;
  out.source_id = topic.source_id;
  for (const storage::PartitionRecord& one : topic.partitions)
    out.leader_epochs.push_back(one.leader_epoch);
  return out;
}

// KIP-1279 c.1, and a segment size, which it leaves to the broker's default of a gigabyte: then
// nothing would ever be compacted.
NewTopic state_topic(std::int32_t partitions) {
  NewTopic topic;
  topic.name = std::string(mirror_state_topic);
  topic.partitions = partitions;
  topic.internal = true;
  topic.configs = {{"cleanup.policy", "compact"},
                   {"compression.type", "producer"},
                   {"retention.ms", "-1"},
                   {"segment.bytes", std::to_string(internal_segment_bytes)}};
  return topic;
}

}  // namespace

const std::string& MirrorTarget::cluster_id() const {
  return broker_.cluster_id();
}

std::size_t MirrorTarget::shard_count() const {
  return broker_.shard_count();
}

boost::asio::any_io_executor MirrorTarget::executor(std::size_t shard) {
  return broker_.shard(shard).executor();
}

std::size_t MirrorTarget::shard_of(base::TopicPartition partition) const {
  return broker_.shard_index_of(partition);
}

std::shared_ptr<mirror::TargetPartition> MirrorTarget::partition(base::TopicPartition id) {
  auto found = broker_.shard_of(id).find(id);
  if (!found) return nullptr;
  return std::make_shared<MirrorPartition>(broker_, std::move(found));
}

std::vector<mirror::LocalTopic> MirrorTarget::topics() const {
  std::vector<mirror::LocalTopic> all;
  for (const auto& [name, topic] : broker_.catalog().snapshot()->topics())
    all.push_back(local(*topic));
  return all;
}

std::optional<mirror::LocalTopic> MirrorTarget::topic(const std::string& name) const {
  const TopicPtr topic = broker_.catalog().snapshot()->find(name);
  if (!topic) return std::nullopt;
  return local(*topic);
}

mirror::Task<mirror::LocalTopic> MirrorTarget::attach_topic(std::string mirror, std::string name,
                                                            base::Uuid id,
                                                            std::int32_t partitions) {
  const auto attached = for_mirror(
      co_await broker_.catalog().attach_topic(std::move(mirror), std::move(name), id, partitions));
  if (attached.has_error()) co_return attached.error();
  co_return local(**attached);
}

mirror::Task<void> MirrorTarget::add_partitions(std::string name, std::int32_t total) {
  const TopicPtr topic = broker_.catalog().snapshot()->find(name);
  if (topic && static_cast<std::int32_t>(topic->partitions.size()) >= total)
    co_return base::Result<void>();  // done before
  const auto added =
      for_mirror(co_await broker_.catalog().add_partitions(std::move(name), total, true));
  if (added.has_error()) co_return added.error();
  co_return base::Result<void>();
}

mirror::Task<void> MirrorTarget::set_desired_state(std::vector<std::string> names,
                                                   std::int8_t state) {
  co_return for_mirror(co_await broker_.catalog().set_desired_state(std::move(names), state));
}

mirror::Task<void> MirrorTarget::remember_source_id(std::string name, base::Uuid source_id) {
  co_return for_mirror(co_await broker_.catalog().remember_source_id(std::move(name), source_id));
}

mirror::Task<void> MirrorTarget::detach_topics(std::vector<std::string> names) {
  co_return for_mirror(co_await broker_.catalog().detach_topics(std::move(names)));
}

std::vector<mirror::MirrorDefinition> MirrorTarget::mirrors() const {
  std::vector<mirror::MirrorDefinition> all;
  for (const auto& [name, record] : broker_.catalog().snapshot()->mirrors())
    all.push_back({name, record->configs});
  return all;
}

mirror::Task<void> MirrorTarget::save_mirror(mirror::MirrorDefinition definition) {
  storage::MirrorRecord record;
  const MirrorPtr before = broker_.catalog().snapshot()->mirror(definition.name);
  record.created_ms = before ? before->created_ms : base::wall_clock_ms();
  record.name = std::move(definition.name);
  record.configs = std::move(definition.configs);
  co_return for_mirror(co_await broker_.catalog().save_mirror(std::move(record)));
}

mirror::Task<void> MirrorTarget::remove_mirror(std::string name) {
  co_return for_mirror(co_await broker_.catalog().remove_mirror(std::move(name)));
}

namespace {

// Each waits for the disk, and those of one partition of __consumer_offsets for the same sync.
constexpr std::size_t group_commits_at_once = 64;

struct GroupCommits {
  std::vector<mirror::GroupCommit> commits;
  std::vector<base::Error> outcomes;
  std::size_t next = 0;
};

base::Error mirrored_commit_error(protocol::ErrorCode code) {
  switch (code) {
    case protocol::ErrorCode::none:
      return {};
    case protocol::ErrorCode::non_empty_group:
      return mirror::TargetErrc::group_has_members;
    case protocol::ErrorCode::coordinator_load_in_progress:
    case protocol::ErrorCode::coordinator_not_available:
    case protocol::ErrorCode::not_coordinator:
      return mirror::TargetErrc::group_unavailable;
    default:
      return mirror::TargetErrc::group_refused;
  }
}

boost::asio::awaitable<void> commit_groups(GroupCoordinator& groups, GroupCommits& work) {
  while (work.next < work.commits.size()) {
    const std::size_t at = work.next++;
    mirror::GroupCommit& commit = work.commits[at];
    std::vector<MirroredOffset> offsets;
    for (mirror::GroupOffset& one : commit.offsets) {
      MirroredOffset& to = offsets.emplace_back();
      to.topic = std::move(one.topic);
      to.partition = one.id.partition;
      to.offset = one.committed.offset;
      to.leader_epoch = one.committed.leader_epoch;
      to.metadata = std::move(one.committed.metadata);
      // Else the coordinator does not write anew what it has.
      if (commit.renews) to.commit_timestamp_ms = base::wall_clock_ms();
    }
    const protocol::ErrorCode code =
        co_await groups.commit_mirrored(std::move(commit.group), std::move(offsets));
    work.outcomes[at] = mirrored_commit_error(code);
  }
}

}  // namespace

boost::asio::awaitable<std::vector<base::Error>> MirrorTarget::commit_group_offsets(
    std::vector<mirror::GroupCommit> commits) {
  GroupCommits work;
  // Where one ends early, by an exception, its groups were not committed.
  work.outcomes.assign(commits.size(), mirror::TargetErrc::group_unavailable);
  work.commits = std::move(commits);
  mirror::TaskGroup tasks(executor(0));
  const std::size_t count = std::min(group_commits_at_once, work.commits.size());
  for (std::size_t i = 0; i < count; ++i)
    tasks.spawn("mirrored group offsets", commit_groups(broker_.groups(), work));
  co_await tasks.wait();
  co_return std::move(work.outcomes);
}

std::int32_t MirrorTarget::state_partition_count() const {
  if (const TopicPtr topic = broker_.catalog().snapshot()->find(mirror_state_topic))
    return static_cast<std::int32_t>(topic->partitions.size());
  return static_cast<std::int32_t>(broker_.config().integer("mirror.state.topic.num.partitions"));
}

mirror::Task<base::TopicPartition> MirrorTarget::state_topic_partition(std::int32_t index) {
  TopicPtr topic = broker_.catalog().snapshot()->find(mirror_state_topic);
  if (!topic) {
    auto made = co_await broker_.catalog().create_topic(state_topic(state_partition_count()));
    if (made.has_error() && made.error() != BrokerErrc::topic_exists)
      co_return mirror_error(made.error());
    topic = broker_.catalog().snapshot()->find(mirror_state_topic);
  }
  if (!topic || index < 0 || static_cast<std::size_t>(index) >= topic->partitions.size())
    co_return mirror::TargetErrc::gone;
  co_return base::TopicPartition{topic->id, index};
}

mirror::Task<void> MirrorTarget::append_state(std::int32_t state_partition,
                                              std::vector<StateRecord> records) {
  if (records.empty()) co_return base::Result<void>();
  CO_TRY(const base::TopicPartition id, co_await state_topic_partition(state_partition));
  const std::int64_t now_ms = base::wall_clock_ms();
  protocol::BatchBuilder builder{protocol::BatchOptions()};
  for (const StateRecord& one : records) {
    std::optional<base::Bytes> value;
    if (one.value) value = base::Bytes(*one.value);
    builder.add(now_ms, base::Bytes(one.key), value);
  }
  base::Buffer batch = std::move(builder).build();
  Shard& shard = broker_.shard_of(id);
  auto append = [&shard, &batch, id, now_ms]() -> mirror::Task<void> {
    const auto partition = shard.find(id);
    if (!partition) co_return mirror::TargetErrc::gone;
    const auto appended = partition->append_internal(batch, now_ms);
    if (appended.has_error()) co_return mirror_error(appended.error());
    co_return for_mirror(co_await partition->flush(appended->last_offset + 1));
  };
  co_return co_await on(shard, std::move(append));
}

mirror::Task<void> MirrorTarget::replay_state(
    std::function<void(base::Bytes key, std::optional<base::Bytes> value)> apply) {
  const TopicPtr topic = broker_.catalog().snapshot()->find(mirror_state_topic);
  if (!topic) co_return base::Result<void>();
  LogContent content;
  content.record = [&apply](base::Bytes key, std::optional<base::Bytes> value,
                            const groups::Place&) { apply(key, value); };
  for (std::size_t p = 0; p < topic->partitions.size(); ++p) {
    const base::TopicPartition id = {topic->id, static_cast<std::int32_t>(p)};
    Shard& shard = broker_.shard_of(id);
    std::optional<base::Offset> offset;  // absent: from the log start
    for (;;) {
      auto read = [&shard, id, offset]() -> boost::asio::awaitable<ReadAnswer> {
        ReadRequest request;
        ReadAnswer answer;
        const auto partition = shard.find(id);
        if (partition) {
          request.offset = offset.value_or(partition->log_start());
          request.bytes_max = replay_chunk_bytes;
          answer = partition->read(request);
          answer.log_start = request.offset;  // where this chunk begins
        } else {
          answer.error = BrokerErrc::not_here;
        }
        co_return answer;
      };
      const ReadAnswer answer = co_await on(shard, std::move(read));
      if (answer.error) co_return mirror_error(answer.error);
      if (answer.slice.size == 0) break;
      base::Buffer bytes(answer.slice.size);
      CO_TRY_VOID(for_mirror(answer.slice.file->pread(bytes, answer.slice.position)));
      CO_TRY(offset, for_mirror(apply_content(bytes, answer.log_start, content)));
    }
  }
  co_return base::Result<void>();
}

}  // namespace broker
