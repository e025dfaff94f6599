// What `calque group` asks a cluster: any Kafka from 2.1 on.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/messages/consumer_group_describe.gen.h"
#include "protocol/messages/describe_groups.gen.h"
#include "tools/cluster.h"
#include "tools/group_report.h"

namespace tools {

class GroupClient {
 public:
  explicit GroupClient(std::vector<Address> bootstrap);

  // Of all brokers, sorted by name.
  std::vector<GroupRow> list();
  // State and members. Failure(failed) if there is no such group.
  GroupDetails describe(const std::string& group);
  // All that it committed, sorted.
  std::vector<CommittedRow> committed(const std::string& group);
  // As a consumer outside of the group. Failure(failed) names the first partition that was refused.
  void commit(const std::string& group, const std::vector<CommittedRow>& offsets);
  void remove(const std::string& group);

  Cluster& cluster() { return cluster_; }

 private:
  Client& coordinator(const std::string& group);
  void describe_classic(const std::string& group, GroupDetails& out);
  // False: the broker cannot tell, or the group is of the classic protocol by now.
  bool describe_consumer(const std::string& group, GroupDetails& out);

  std::vector<Address> bootstrap_;
  Cluster cluster_;
  std::string coordinator_of_;
  std::unique_ptr<Client> coordinator_;
};

// What a broker says of a group that is there.
void take_details(const protocol::DescribeGroupsResponse::Group& from, GroupDetails& out);
void take_details(const protocol::ConsumerGroupDescribeResponse::Group& from, GroupDetails& out);

// The partitions that a member of a classic group was assigned, as the consumer protocol writes
// them; nothing where it does not.
std::vector<std::pair<std::string, std::int32_t>> assigned_partitions(base::Bytes assignment);

}  // namespace tools
