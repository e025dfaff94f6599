// OffsetFetch v1-10.
//   v2 all topics, an error for the group; v5 leader epoch; v7 stable offsets only: where one is
//   pending in a transaction the client is told to come again (KIP-447); v8 several groups; v9
//   member epochs; v10 topics by id.
//   What was not committed is offset -1 without an error.
#include <utility>

#include "broker/api/group_request.h"
#include "protocol/messages/offset_fetch.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::OffsetFetchRequest;
using protocol::OffsetFetchResponse;
using GroupAsked = OffsetFetchRequest::Group;
using GroupAnswer = OffsetFetchResponse::Group;
using FetchedOffset = GroupAnswer::Topic::Partition;

namespace {

constexpr std::int16_t group_errors_since = 2;
constexpr std::int16_t several_groups_since = 8;
constexpr std::int16_t fetch_topic_ids_since = 10;

FetchedOffset offset_answer(std::int32_t partition, const groups::CommittedOffset* known) {
  FetchedOffset out;
  out.partition_index = partition;
  out.committed_offset = -1;
  out.metadata = "";
  if (!known) return out;
  out.committed_offset = known->offset;
  out.committed_leader_epoch = known->leader_epoch.value_or(-1);
  out.metadata = known->metadata;
  return out;
}

FetchedOffset failed_offset(std::int32_t partition, ErrorCode error) {
  FetchedOffset out = offset_answer(partition, nullptr);
  out.error_code = number(error);
  return out;
}

// What a group has, as one request sees it.
struct KnownOffsets {
  const Snapshot& catalog;
  const groups::GroupShard& state;
  const std::string& group;
  bool by_id = false;
  bool stable_only = false;

  bool unstable(const std::string& topic, std::int32_t partition) const {
    return stable_only && state.pending_offsets().has(group, topic, partition);
  }
};

// Offsets of a topic that was deleted and made anew say nothing of the new one.
bool belongs_to(const groups::CommittedOffset& offset, const TopicPtr& topic) {
  return offset.topic_id.is_zero() || !topic || topic->id == offset.topic_id;
}

// Of what is pending only what was committed before is told.
void fill_all(const KnownOffsets& known, GroupAnswer& answer) {
  const groups::TopicOffsets* committed = known.state.offsets().find(known.group);
  if (!committed) return;
  for (const auto& [name, partitions] : *committed) {
    const TopicPtr topic = known.catalog.find(name);
    if (known.by_id && !topic) continue;  // cannot be named
    GroupAnswer::Topic& to = answer.topics.emplace_back();
    to.name = name;
    if (topic) to.topic_id = topic->id;
    for (const auto& [partition, offset] : partitions) {
      if (!belongs_to(offset, topic)) continue;
      to.partitions.push_back(known.unstable(name, partition)
                                  ? failed_offset(partition, ErrorCode::unstable_offset_commit)
                                  : offset_answer(partition, &offset));
    }
    if (to.partitions.empty()) answer.topics.pop_back();
  }
}

FetchedOffset asked_offset(const KnownOffsets& known, const std::string& name,
                           const TopicPtr& topic, std::int32_t partition) {
  if (known.by_id && !topic) return failed_offset(partition, ErrorCode::unknown_topic_id);
  if (known.unstable(name, partition))
    return failed_offset(partition, ErrorCode::unstable_offset_commit);
  const groups::CommittedOffset* offset = known.state.offsets().find(known.group, name, partition);
  return offset_answer(partition, offset && belongs_to(*offset, topic) ? offset : nullptr);
}

void fill_asked(const KnownOffsets& known, const GroupAsked& asked, GroupAnswer& answer) {
  for (const GroupAsked::Topic& from : *asked.topics) {
    GroupAnswer::Topic& to = answer.topics.emplace_back();
    to.name = from.name;
    to.topic_id = from.topic_id;
    const TopicPtr topic =
        known.by_id ? known.catalog.find(from.topic_id) : known.catalog.find(from.name);
    const std::string& name = known.by_id && topic ? topic->name : from.name;
    for (const std::int32_t index : from.partition_indexes)
      to.partitions.push_back(asked_offset(known, name, topic, index));
  }
}

Task<GroupAnswer> fetch_group(Broker& broker, SnapshotPtr catalog, bool by_id, bool stable_only,
                              const GroupAsked& asked) {
  auto ask = [&catalog, by_id, stable_only, &asked](groups::GroupShard& state, groups::Now) {
    groups::Decided<GroupAnswer> out;
    const ErrorCode error = state.check_fetch(asked.group_id, asked.member_id, asked.member_epoch);
    out.answer.error_code = number(error);
    if (error != ErrorCode::none) return out;
    const KnownOffsets known = {*catalog, state, asked.group_id, by_id, stable_only};
    if (asked.topics)
      fill_asked(known, asked, out.answer);
    else
      fill_all(known, out.answer);
    return out;
  };
  auto outcome = co_await broker.groups().decide(asked.group_id, std::move(ask));
  if (outcome.error != ErrorCode::none) {
    outcome.value = GroupAnswer();
    outcome.value.error_code = number(outcome.error);
  }
  outcome.value.group_id = asked.group_id;
  co_return std::move(outcome.value);
}

GroupAsked single_group(const OffsetFetchRequest& asked) {
  GroupAsked group;
  group.group_id = asked.group_id;
  if (!asked.topics) {
    group.topics.reset();
    return group;
  }
  group.topics.emplace();
  for (const OffsetFetchRequest::Topic& one : *asked.topics) {
    GroupAsked::Topic& topic = group.topics->emplace_back();
    topic.name = one.name;
    topic.partition_indexes = one.partition_indexes;
  }
  return group;
}

void answer_single(const Request& request, const GroupAsked& asked, GroupAnswer answer,
                   OffsetFetchResponse& message) {
  if (answer.error_code != 0 && request.version() < group_errors_since && asked.topics) {
    // No place for an error but the partitions.
    for (const GroupAsked::Topic& from : *asked.topics) {
      GroupAnswer::Topic& to = answer.topics.emplace_back();
      to.name = from.name;
      for (const std::int32_t index : from.partition_indexes) {
        to.partitions.push_back(offset_answer(index, nullptr));
        to.partitions.back().error_code = answer.error_code;
      }
    }
  }
  message.error_code = answer.error_code;
  for (GroupAnswer::Topic& from : answer.topics) {
    OffsetFetchResponse::Topic& to = message.topics.emplace_back();
    to.name = std::move(from.name);
    for (FetchedOffset& one : from.partitions)
      to.partitions.push_back({one.partition_index, one.committed_offset,
                               one.committed_leader_epoch, std::move(one.metadata),
                               one.error_code});
  }
}

}  // namespace

Task<Response> offset_fetch(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<OffsetFetchRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  const bool by_id = request.version() >= fetch_topic_ids_since;
  OffsetFetchResponse message;
  if (request.version() < several_groups_since) {
    const GroupAsked group = single_group(*asked);
    GroupAnswer answer = co_await fetch_group(broker, catalog, by_id, asked->require_stable, group);
    answer_single(request, group, std::move(answer), message);
    co_return respond(request, message);
  }
  for (const GroupAsked& group : asked->groups)
    message.groups.push_back(
        co_await fetch_group(broker, catalog, by_id, asked->require_stable, group));
  co_return respond(request, message);
}

}  // namespace broker::api
