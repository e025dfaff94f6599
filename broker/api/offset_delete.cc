// OffsetDelete v0: of topics that the group does not consume.
#include "broker/api/group_request.h"
#include "protocol/messages/offset_delete.gen.h"

namespace broker::api {

using protocol::ErrorCode;
using protocol::OffsetDeleteRequest;
using protocol::OffsetDeleteResponse;

Task<Response> offset_delete(Broker& broker, Shard& shard, Request request) {
  const auto asked = decode_request<OffsetDeleteRequest>(request);
  if (!asked) co_return malformed();
  const SnapshotPtr catalog = shard.catalog();
  OffsetDeleteResponse message;
  groups::OffsetDeletion deletion;
  deletion.group = asked->group_id;
  for (const OffsetDeleteRequest::Topic& from : asked->topics) {
    if (from.partitions.empty()) continue;
    const TopicPtr topic = catalog->find(from.name);
    OffsetDeleteResponse::Topic& to = message.topics.emplace_back();
    to.name = from.name;
    groups::OffsetDeletion::Topic& wanted = deletion.topics.emplace_back();
    wanted.name = from.name;
    for (const OffsetDeleteRequest::Topic::Partition& one : from.partitions) {
      OffsetDeleteResponse::Topic::Partition& answer = to.partitions.emplace_back();
      answer.partition_index = one.partition_index;
      if (has_partition(topic, one.partition_index))
        wanted.partitions.push_back(one.partition_index);
      else
        answer.error_code = number(ErrorCode::unknown_topic_or_partition);
    }
  }
  auto ask = [&deletion](groups::GroupShard& state, groups::Now) {
    return state.delete_offsets(deletion);
  };
  const auto outcome = co_await broker.groups().decide(deletion.group, std::move(ask));
  ErrorCode error = outcome.error != ErrorCode::none ? outcome.error : outcome.value.error;
  if (deletion.group.empty()) error = ErrorCode::invalid_group_id;
  if (error != ErrorCode::none) {
    message = OffsetDeleteResponse();
    message.error_code = number(error);
    co_return respond(request, message);
  }
  for (std::size_t i = 0; i < message.topics.size(); ++i)
    for (OffsetDeleteResponse::Topic::Partition& one : message.topics[i].partitions)
      if (one.error_code == 0) one.error_code = number(outcome.value.topics[i]);
  co_return respond(request, message);
}

}  // namespace broker::api
