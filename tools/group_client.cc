#include "tools/group_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "protocol/error_code.h"
#include "protocol/messages/delete_groups.gen.h"
#include "protocol/messages/describe_cluster.gen.h"
#include "protocol/messages/find_coordinator.gen.h"
#include "protocol/messages/list_groups.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_commit.gen.h"
#include "protocol/messages/offset_fetch.gen.h"

namespace tools {

namespace {

// From these versions on topics are named by their ids.
constexpr std::int16_t offset_version_by_name = 9;
constexpr std::int16_t offset_fetch_of_many_groups = 8;
constexpr std::int16_t find_coordinator_of_many_keys = 4;
constexpr std::int16_t metadata_by_name = 12;
// A coordinator that still loads is asked again, this often.
constexpr int coordinator_attempts = 20;
constexpr std::chrono::milliseconds coordinator_pause{500};

bool is_code(std::int16_t number, protocol::ErrorCode code) {
  return number == static_cast<std::int16_t>(code);
}

bool coordinator_is_away(std::int16_t error) {
  return is_code(error, protocol::ErrorCode::coordinator_not_available) ||
         is_code(error, protocol::ErrorCode::coordinator_load_in_progress) ||
         is_code(error, protocol::ErrorCode::not_coordinator);
}

[[noreturn]] void fail_group(const std::string& group, std::string_view what, std::int16_t error,
                             const std::optional<std::string>& message = {}) {
  if (is_code(error, protocol::ErrorCode::group_id_not_found))
    throw Failure(
        ExitCode::failed,
        fmt::format("there is no group '{}'; 'calque group list' shows those that there are",
                    group));
  if (is_code(error, protocol::ErrorCode::non_empty_group) ||
      is_code(error, protocol::ErrorCode::unknown_member_id))
    throw Failure(
        ExitCode::failed,
        fmt::format("group '{}' has members, so {}; end its consumers first", group, what));
  throw Failure(ExitCode::failed,
                fmt::format("of group '{}' {}: {}", group, what, error_text(error, message)));
}

bool is_of_consumer_protocol(const GroupDetails& group) {
  return group.type == "consumer" || group.type == "Consumer";
}

// Of one group that was asked for.
template <class Groups>
const auto& only_one(const Groups& groups, const std::string& coordinator) {
  if (groups.size() == 1) return groups[0];
  throw Failure(ExitCode::failed,
                fmt::format("{} answered without the group that was asked for; look at the "
                            "broker's log",
                            coordinator));
}

std::string member_type(std::int8_t number) {
  if (number == 0) return "classic";
  return number == 1 ? "consumer" : "";
}

template <class Assignment>
std::vector<GroupPlace> places_of(const Assignment& assignment) {
  std::vector<GroupPlace> places;
  for (const auto& topic : assignment.topic_partitions)
    for (const std::int32_t partition : topic.partitions)
      places.emplace_back(topic.topic_name, partition);
  std::ranges::sort(places);
  return places;
}

template <class Topics>
void add_committed(const std::string& group, const Topics& topics,
                   std::vector<CommittedRow>& rows) {
  for (const auto& topic : topics)
    for (const auto& partition : topic.partitions) {
      if (partition.error_code != 0)
        fail_group(group,
                   fmt::format("the offset of '{}' partition {} is not told", topic.name,
                               partition.partition_index),
                   partition.error_code);
      if (partition.committed_offset < 0) continue;
      CommittedRow row;
      row.topic = topic.name;
      row.partition = partition.partition_index;
      row.offset = partition.committed_offset;
      if (partition.committed_leader_epoch >= 0)
        row.leader_epoch = partition.committed_leader_epoch;
      row.metadata = partition.metadata.value_or("");
      rows.push_back(std::move(row));
    }
}

}  // namespace

GroupClient::GroupClient(std::vector<Address> bootstrap)
    : bootstrap_(std::move(bootstrap)), cluster_(bootstrap_, "bootstrap-server") {}

Client& GroupClient::coordinator(const std::string& group) {
  if (coordinator_ && coordinator_of_ == group) return *coordinator_;
  protocol::FindCoordinatorRequest request;
  request.key = group;
  request.coordinator_keys = {group};
  for (int attempt = 1;; ++attempt) {
    Client& client = cluster_.any();
    const auto version = client.version<protocol::FindCoordinatorRequest>();
    const auto response = client.call_version<protocol::FindCoordinatorResponse>(request, version);
    std::int16_t error = response.error_code;
    std::optional<std::string> message = response.error_message;
    std::string host = response.host;
    std::int32_t port = response.port;
    if (version >= find_coordinator_of_many_keys) {
      if (response.coordinators.size() != 1)
        fail_group(group, "the coordinator is not told",
                   static_cast<std::int16_t>(protocol::ErrorCode::coordinator_not_available));
      error = response.coordinators[0].error_code;
      message = response.coordinators[0].error_message;
      host = response.coordinators[0].host;
      port = response.coordinators[0].port;
    }
    if (error == 0) {
      const std::vector<Address> there{{host, static_cast<std::uint16_t>(port)}};
      coordinator_ = std::make_unique<Client>(there, "bootstrap-server");
      coordinator_of_ = group;
      return *coordinator_;
    }
    if (!coordinator_is_away(error) || attempt == coordinator_attempts)
      fail_group(group, "the coordinator is not told", error, message);
    std::this_thread::sleep_for(coordinator_pause);
  }
}

std::vector<GroupRow> GroupClient::list() {
  protocol::MetadataRequest which;  // of no topic
  which.allow_auto_topic_creation = false;
  const auto metadata = cluster_.any().call<protocol::MetadataResponse>(which, metadata_by_name);
  std::vector<GroupRow> rows;
  for (const auto& broker : metadata.brokers) {
    const std::vector<Address> there{{broker.host, static_cast<std::uint16_t>(broker.port)}};
    Client client(there, "bootstrap-server");
    protocol::ListGroupsRequest request;
    const auto response = client.call<protocol::ListGroupsResponse>(request);
    if (response.error_code != 0)
      throw Failure(ExitCode::failed, fmt::format("broker {} does not list its groups: {}",
                                                  broker.node_id, error_text(response.error_code)));
    for (const auto& group : response.groups)
      rows.push_back({group.group_id, group.protocol_type, group.group_state, group.group_type});
  }
  std::ranges::sort(rows, {}, &GroupRow::group);
  return rows;
}

GroupDetails GroupClient::describe(const std::string& group) {
  GroupDetails out;
  out.group = group;
  out.coordinator = coordinator(group).address().to_string();
  // Groups of other protocols than these two are only listed.
  for (const GroupRow& row : list())
    if (row.group == group) {
      out.state = row.state;
      out.type = row.type;
      out.listed = true;
    }
  const bool told = is_of_consumer_protocol(out) && describe_consumer(group, out);
  if (!told) describe_classic(group, out);
  return out;
}

void GroupClient::describe_classic(const std::string& group, GroupDetails& out) {
  protocol::DescribeGroupsRequest request;
  request.groups = {group};
  const auto response = coordinator(group).call<protocol::DescribeGroupsResponse>(request);
  const auto& found = only_one(response.groups, out.coordinator);
  const bool none = is_code(found.error_code, protocol::ErrorCode::group_id_not_found) ||
                    (found.error_code == 0 && found.group_state == "Dead");
  if (found.error_code != 0 && !none)
    fail_group(group, "the state is not told", found.error_code, found.error_message);
  if (!none) return take_details(found, out);
  if (!out.listed)
    fail_group(group, "", static_cast<std::int16_t>(protocol::ErrorCode::group_id_not_found));
}

bool GroupClient::describe_consumer(const std::string& group, GroupDetails& out) {
  using Request = protocol::ConsumerGroupDescribeRequest;
  Client& client = coordinator(group);
  if (!client.serves(Request::api_key, Request::min_version)) return false;
  Request request;
  request.group_ids = {group};
  const auto response = client.call<protocol::ConsumerGroupDescribeResponse>(request);
  const auto& found = only_one(response.groups, out.coordinator);
  if (is_code(found.error_code, protocol::ErrorCode::group_id_not_found)) return false;
  if (found.error_code != 0)
    fail_group(group, "the state is not told", found.error_code, found.error_message);
  take_details(found, out);
  return true;
}

void take_details(const protocol::DescribeGroupsResponse::Group& from, GroupDetails& out) {
  out.state = from.group_state;
  out.protocol = from.protocol_data;
  for (const auto& member : from.members) {
    GroupMemberRow& row = out.members.emplace_back();
    row.member = member.member_id;
    row.instance = member.group_instance_id;
    row.client = member.client_id;
    row.host = member.client_host;
    if (from.protocol_type == "consumer")
      row.partitions = assigned_partitions(member.member_assignment);
  }
}

void take_details(const protocol::ConsumerGroupDescribeResponse::Group& from, GroupDetails& out) {
  out.state = from.group_state;
  out.protocol = from.assignor_name;
  out.epoch = from.group_epoch;
  out.assignment_epoch = from.assignment_epoch;
  for (const auto& member : from.members) {
    GroupMemberRow& row = out.members.emplace_back();
    row.member = member.member_id;
    row.instance = member.instance_id;
    row.client = member.client_id;
    row.host = member.client_host;
    row.epoch = member.member_epoch;
    row.type = member_type(member.member_type);
    row.partitions = places_of(member.assignment);
    row.target = places_of(member.target_assignment);
  }
}

std::vector<CommittedRow> GroupClient::committed(const std::string& group) {
  Client& client = coordinator(group);
  const auto version = client.version<protocol::OffsetFetchRequest>(offset_version_by_name);
  protocol::OffsetFetchRequest request;
  request.group_id = group;
  request.topics.reset();
  auto& entry = request.groups.emplace_back();
  entry.group_id = group;
  entry.topics.reset();
  const auto response = client.call_version<protocol::OffsetFetchResponse>(request, version);
  std::vector<CommittedRow> rows;
  std::int16_t error = response.error_code;
  if (version < offset_fetch_of_many_groups) {
    add_committed(group, response.topics, rows);
  } else if (response.groups.size() == 1) {
    error = response.groups[0].error_code;
    if (error == 0) add_committed(group, response.groups[0].topics, rows);
  }
  if (error != 0) fail_group(group, "the offsets are not told", error);
  std::ranges::sort(rows, {}, [](const CommittedRow& row) {
    return std::pair<std::string_view, std::int32_t>(row.topic, row.partition);
  });
  return rows;
}

void GroupClient::commit(const std::string& group, const std::vector<CommittedRow>& offsets) {
  protocol::OffsetCommitRequest request;
  request.group_id = group;
  std::map<std::string, std::size_t> places;
  for (const CommittedRow& row : offsets) {
    const auto [place, is_new] = places.try_emplace(row.topic, request.topics.size());
    if (is_new) request.topics.emplace_back().name = row.topic;
    auto& partition = request.topics[place->second].partitions.emplace_back();
    partition.partition_index = row.partition;
    partition.committed_offset = row.offset;
    partition.committed_leader_epoch = row.leader_epoch.value_or(-1);
    partition.committed_metadata = row.metadata;
  }
  const auto response =
      coordinator(group).call<protocol::OffsetCommitResponse>(request, offset_version_by_name);
  for (const auto& topic : response.topics)
    for (const auto& partition : topic.partitions)
      if (partition.error_code != 0)
        fail_group(group,
                   fmt::format("the offset of '{}' partition {} was not changed", topic.name,
                               partition.partition_index),
                   partition.error_code);
}

void GroupClient::remove(const std::string& group) {
  protocol::DeleteGroupsRequest request;
  request.groups_names = {group};
  const auto response = coordinator(group).call<protocol::DeleteGroupsResponse>(request);
  for (const auto& result : response.results)
    if (result.error_code != 0)
      fail_group(group, "nothing was deleted", result.error_code, result.error_message);
}

std::vector<std::pair<std::string, std::int32_t>> assigned_partitions(base::Bytes assignment) {
  protocol::Reader reader(assignment, false);
  std::int16_t version = 0;
  reader.num(version);
  struct Topic {
    std::string name;
    std::vector<std::int32_t> partitions;
  };
  std::vector<Topic> topics;
  constexpr std::size_t topic_bytes_min = 6;
  reader.array(topics, topic_bytes_min, [&reader](Topic& topic) {
    reader.text(topic.name);
    reader.array(topic.partitions, sizeof(std::int32_t),
                 [&reader](std::int32_t& partition) { reader.num(partition); });
  });
  std::vector<std::pair<std::string, std::int32_t>> out;
  if (!reader.ok()) return out;
  for (const Topic& topic : topics)
    for (const std::int32_t partition : topic.partitions) out.emplace_back(topic.name, partition);
  std::ranges::sort(out);
  return out;
}

}  // namespace tools
