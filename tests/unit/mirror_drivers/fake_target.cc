#include "tests/unit/mirror_drivers/fake_target.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "protocol/batch.h"
#include "protocol/batch_builder.h"

namespace mirror_test {

using mirror::LogPosition;
using mirror::TargetErrc;

base::Buffer FakeLog::bytes() const {
  base::Buffer all;
  for (const FakeBatch& batch : batches)
    all.insert(all.end(), batch.bytes.begin(), batch.bytes.end());
  return all;
}

LogPosition FakePartition::position() const {
  LogPosition out{.log_start = log_.start,
                  .log_end = log_.end,
                  .durable_end = log_.durable,
                  .last_epoch = {},
                  .leader_epoch = log_.leader_epoch};
  if (!log_.batches.empty()) out.last_epoch = log_.batches.back().epoch;
  return out;
}

std::optional<base::Uuid> FakePartition::source_id() const {
  const auto topic = target_.topic(log_.topic);
  return topic ? topic->source_id : std::nullopt;
}

base::Result<LogPosition> FakePartition::append(base::Bytes bytes) {
  if (target_.fail_appends) return TargetErrc::storage_offline;
  protocol::BatchIterator it(bytes, protocol::CrcCheck::yes);
  while (it.next()) {
    const protocol::BatchInfo& info = it.info();
    if (info.base_offset < log_.end && !log_.batches.empty()) return TargetErrc::out_of_order;
    if (info.partition_leader_epoch.value_or(-1) > log_.leader_epoch)
      return TargetErrc::epoch_above_leader;
    log_.batches.push_back({info.base_offset, info.next_offset(), info.partition_leader_epoch,
                            base::to_buffer(it.batch())});
    log_.end = info.next_offset();
  }
  if (it.stopped()) return TargetErrc::corrupt_batch;
  log_.events.push_back("append");
  return position();
}

Task<LogPosition> FakePartition::flush() {
  const Offset end = log_.end;
  co_await target_.turn();
  log_.durable = std::max(log_.durable, end);
  co_return position();
}

Task<LogPosition> FakePartition::truncate_to(Offset offset) {
  co_await target_.turn();
  while (!log_.batches.empty() && log_.batches.back().next > offset) log_.batches.pop_back();
  const Offset kept = log_.batches.empty() ? log_.start : log_.batches.back().next;
  log_.end = std::min(log_.end, std::max(kept, std::min(offset, log_.end)));
  if (log_.batches.empty() || log_.batches.back().next < log_.end)
    log_.end = std::max(kept, log_.start);
  log_.durable = std::min(log_.durable, log_.end);
  log_.events.push_back("truncate " + std::to_string(offset));
  co_return position();
}

Task<LogPosition> FakePartition::restart_at(Offset offset) {
  co_await target_.turn();
  log_.batches.clear();
  log_.start = log_.end = log_.durable = offset;
  log_.events.push_back("restart " + std::to_string(offset));
  co_return position();
}

base::Result<LogPosition> FakePartition::advance_log_start(Offset offset) {
  log_.start = std::max(log_.start, std::min(offset, log_.end));
  return position();
}

std::optional<mirror::EpochEndOffset> FakePartition::end_offset_for(base::LeaderEpoch epoch) const {
  std::optional<mirror::EpochEndOffset> out;
  for (const FakeBatch& batch : log_.batches)
    if (batch.epoch && *batch.epoch <= epoch)
      out = mirror::EpochEndOffset{*batch.epoch, batch.next};
  return out;
}

Task<base::LeaderEpoch> FakePartition::bump_epoch(base::LeaderEpoch at_least) {
  co_await target_.turn();
  log_.leader_epoch = std::max(log_.leader_epoch, at_least);
  log_.events.push_back("bump");
  co_return log_.leader_epoch;
}

void FakePartition::add_local(base::Buffer batch) {
  protocol::set_base_offset(batch, log_.end);
  protocol::set_partition_leader_epoch(batch, log_.leader_epoch);
  log_.batches.push_back({log_.end, log_.end + 1, log_.leader_epoch, std::move(batch)});
  log_.durable = ++log_.end;
}

Task<LogPosition> FakePartition::write_abort_markers() {
  co_await target_.turn();
  for (; log_.open_transactions > 0; --log_.open_transactions, ++log_.markers) {
    protocol::EndTransactionMarker marker;
    add_local(protocol::end_transaction_marker(marker, 1));
  }
  log_.events.push_back("markers");
  co_return position();
}

Task<LogPosition> FakePartition::write_producer_id_reset() {
  co_await target_.turn();
  add_local(protocol::producer_id_reset(1));
  ++log_.resets;
  log_.events.push_back("reset");
  co_return position();
}

void FakePartition::refuse_writes(std::string) {
  log_.writable = false;
  log_.events.push_back("refuse");
}

Task<void> FakePartition::allow_writes() {
  co_await target_.turn();
  log_.writable = true;
  log_.events.push_back("allow");
  co_return base::Result<void>();
}

// ---- The broker.

boost::asio::awaitable<void> FakeTarget::turn() {
  co_await boost::asio::post(io_.get_executor(), boost::asio::use_awaitable);
}

FakeLog& FakeTarget::log(const std::string& topic, std::int32_t partition) {
  return *logs_.at({topics_.at(topic).id, partition});
}

std::size_t FakeTarget::shard_of(base::TopicPartition partition) const {
  return std::hash<base::TopicPartition>{}(partition) % shards_;
}

std::shared_ptr<mirror::TargetPartition> FakeTarget::partition(base::TopicPartition id) {
  const auto found = logs_.find(id);
  if (found == logs_.end()) return nullptr;
  return std::make_shared<FakePartition>(*this, found->second);
}

std::vector<mirror::LocalTopic> FakeTarget::topics() const {
  std::vector<mirror::LocalTopic> all;
  for (const auto& [name, topic] : topics_) all.push_back(*this->topic(name));
  return all;
}

std::optional<mirror::LocalTopic> FakeTarget::topic(const std::string& name) const {
  const auto found = topics_.find(name);
  if (found == topics_.end()) return std::nullopt;
  mirror::LocalTopic out = found->second;
  for (std::size_t p = 0; p < out.leader_epochs.size(); ++p)
    out.leader_epochs[p] = logs_.at({out.id, static_cast<std::int32_t>(p)})->leader_epoch;
  return out;
}

boost::asio::awaitable<std::vector<base::Error>> FakeTarget::commit_group_offsets(
    std::vector<mirror::GroupCommit> commits) {
  co_await turn();
  std::vector<base::Error> outcomes;
  for (const mirror::GroupCommit& commit : commits) {
    if (groups_with_members.contains(commit.group)) {
      outcomes.push_back(mirror::TargetErrc::group_has_members);
      continue;
    }
    ++group_commits;
    for (const mirror::GroupOffset& offset : commit.offsets)
      committed[commit.group][{offset.topic, offset.id.partition}] = offset.committed;
    if (on_group_commit) on_group_commit(commit);
    outcomes.emplace_back();
  }
  co_return outcomes;
}

void FakeTarget::add_ordinary_topic(const std::string& name, base::Uuid id,
                                    std::int32_t partitions) {
  mirror::LocalTopic& topic = topics_[name];
  topic.name = name;
  topic.id = id;
  for (auto p = static_cast<std::int32_t>(topic.leader_epochs.size()); p < partitions; ++p) {
    topic.leader_epochs.push_back(0);
    const auto log = std::make_shared<FakeLog>();
    log->topic = name;
    log->id = {id, p};
    logs_[log->id] = log;
  }
}

void FakeTarget::remove_topic(const std::string& name) {
  const base::Uuid id = topics_.at(name).id;
  topics_.erase(name);
  std::erase_if(logs_, [&](const auto& entry) {
    if (entry.first.topic_id != id) return false;
    entry.second->gone = true;
    return true;
  });
}

Task<mirror::LocalTopic> FakeTarget::attach_topic(std::string mirror, std::string name,
                                                  base::Uuid id, std::int32_t partitions) {
  co_await turn();
  const auto found = topics_.find(name);
  if (found == topics_.end())
    add_ordinary_topic(name, id.is_zero() ? random_.uuid() : id, partitions);
  else if (found->second.id != id)
    co_return TargetErrc::id_mismatch;
  topics_[name].mirror = mirror;
  topics_[name].desired_state = -1;
  if (id.is_zero()) topics_[name].source_id = id;
  co_return *topic(name);
}

Task<void> FakeTarget::add_partitions(std::string name, std::int32_t total) {
  co_await turn();
  add_ordinary_topic(name, topics_.at(name).id, total);
  co_return base::Result<void>();
}

Task<void> FakeTarget::set_desired_state(std::vector<std::string> names, std::int8_t state) {
  co_await turn();
  for (const std::string& name : names) topics_.at(name).desired_state = state;
  co_return base::Result<void>();
}

Task<void> FakeTarget::remember_source_id(std::string name, base::Uuid source_id) {
  co_await turn();
  topics_.at(name).source_id = source_id;
  co_return base::Result<void>();
}

Task<void> FakeTarget::detach_topics(std::vector<std::string> names) {
  co_await turn();
  for (const std::string& name : names) topics_.at(name).mirror.clear();
  co_return base::Result<void>();
}

std::vector<mirror::MirrorDefinition> FakeTarget::mirrors() const {
  std::vector<mirror::MirrorDefinition> all;
  for (const auto& [name, definition] : mirrors_) all.push_back(definition);
  return all;
}

Task<void> FakeTarget::save_mirror(mirror::MirrorDefinition definition) {
  co_await turn();
  mirrors_[definition.name] = definition;
  co_return base::Result<void>();
}

Task<void> FakeTarget::remove_mirror(std::string name) {
  co_await turn();
  mirrors_.erase(name);
  co_return base::Result<void>();
}

Task<void> FakeTarget::append_state(std::int32_t state_partition,
                                    std::vector<StateRecord> records) {
  co_await turn();
  ++state_appends;
  if (fail_state_appends > 0) {
    --fail_state_appends;
    co_return TargetErrc::storage_offline;
  }
  auto& log = states_[state_partition];
  for (StateRecord& record : records) log.push_back(std::move(record));
  co_return base::Result<void>();
}

Task<void> FakeTarget::replay_state(
    std::function<void(base::Bytes, std::optional<base::Bytes>)> apply) {
  co_await turn();
  for (const auto& [partition, records] : states_)
    for (const StateRecord& record : records)
      apply(record.key, record.value ? std::optional<base::Bytes>(*record.value) : std::nullopt);
  co_return base::Result<void>();
}

}  // namespace mirror_test
