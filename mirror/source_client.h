// The Kafka client towards a source cluster: everything but Fetch, which has connections of its own
// (fetcher.h). One mirror's, one shard's.
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
#include "mirror/machine.h"
#include "mirror/source_connection.h"
#include "mirror/target.h"
#include "protocol/base/ids.h"

namespace mirror {

struct SourceMetadata {
  struct Partition {
    std::int16_t error = 0;
    std::optional<base::NodeId> leader;
    // Absent before Metadata v9 (Kafka 2.4): older brokers may serve a stale one.
    std::optional<base::LeaderEpoch> leader_epoch;
  };
  struct Topic {
    std::string name;
    base::Uuid id;  // zero before Metadata v10 (Kafka 2.8)
    std::int16_t error = 0;
    bool internal = false;
    std::vector<Partition> partitions;  // by number
  };
  std::string cluster_id;
  std::map<base::NodeId, Endpoint> brokers;
  std::vector<Topic> topics;
};

// A question about one partition to its leader, and what came of it.
struct PartitionQuestion {
  std::string topic;
  std::int32_t partition = 0;
  std::optional<base::LeaderEpoch> current_epoch;  // of the leader, as we know it
  std::optional<base::LeaderEpoch> asked_epoch;    // OffsetForLeaderEpoch only
};
struct PartitionAnswer {
  std::int16_t error = 0;
  std::optional<base::LeaderEpoch> epoch;
  std::optional<base::Offset> offset;  // absent: the source says -1, undefined
};

// A mirror that the source has from our cluster, for one partition.
struct ReverseAnswer {
  Reverse reverse = Reverse::none;
  std::optional<Position> position;
};
struct ReverseMirrors {
  bool supported = false;
  std::map<std::pair<std::string, std::int32_t>, ReverseAnswer> partitions;
  // Over all partitions of the topic.
  Reverse worst_of(const std::string& topic) const;
};

struct ListedGroup {
  std::string name;
  std::string protocol_type;  // "consumer"; empty: offsets only, or nothing known yet
  std::string type;           // empty before ListGroups v5 (Kafka 3.8)
};
struct GroupAnswer {
  std::int16_t error = 0;  // of the group, or of the first partition that has one
  SourceGroup group;       // without the partitions that have an error or no offset
};

enum class OffsetSpec : std::int8_t { latest = -1, earliest = -2 };

struct SourceClientOptions {
  std::vector<Endpoint> bootstrap;
  ConnectionOptions connection;
  std::optional<std::string> cluster_id;  // remembered since the first contact
};

// Used by one coroutine at a time, on its executor's thread.
class SourceClient {
 public:
  SourceClient(boost::asio::any_io_executor executor, SourceClientOptions options);
  ~SourceClient();

  // Absent `topics`: all of them. Tries the known brokers, then the bootstrap servers.
  Task<SourceMetadata> metadata(std::optional<std::vector<std::string>> topics);
  // One answer for each question, in order.
  Task<std::vector<PartitionAnswer>> epoch_ends(base::NodeId node,
                                                std::vector<PartitionQuestion> questions);
  Task<std::vector<PartitionAnswer>> offsets(base::NodeId node, OffsetSpec spec,
                                             std::vector<PartitionQuestion> questions);
  Task<ReverseMirrors> reverse_mirrors(std::string our_cluster_id, std::vector<std::string> topics);

  // The groups that this broker coordinates; the others are listed by the other brokers.
  Task<std::vector<ListedGroup>> groups(base::NodeId node);
  // All that these groups committed; `node` coordinates them. One answer for each, in order. From
  // Kafka 3.0 on this is one request, before that one for each group.
  Task<std::vector<GroupAnswer>> group_offsets(base::NodeId node, std::vector<std::string> groups);

  // From the last metadata().
  std::optional<Endpoint> endpoint_of(base::NodeId node) const;
  // The cluster that answered last, also when it was not the expected one.
  const std::string& seen_cluster_id() const { return seen_cluster_id_; }
  // One sentence about a failure of a call.
  std::string describe(const base::Error& error) const;
  // The next metadata come from another broker, if there is one: what the one at hand knows is
  // behind.
  void ask_another();
  void remember_cluster(std::string id) { options_.cluster_id = std::move(id); }
  // Ends what is under way; every later call fails with SourceErrc::closed.
  void close();

 private:
  using Connection = std::unique_ptr<SourceConnection>;

  Task<SourceConnection*> any_broker();
  Task<SourceConnection*> broker(base::NodeId node);
  boost::asio::awaitable<base::Result<void>> open(Connection& slot, Endpoint endpoint);
  std::vector<Endpoint> candidates() const;

  template <class Request, class Response>
  Task<std::int16_t> ask(std::optional<base::NodeId> node, std::int16_t at_least,
                         const Request& request, Response& response,
                         std::int16_t at_most = INT16_MAX);
  Task<std::int16_t> version_at(base::NodeId node, protocol::ApiKey key, std::int16_t at_least,
                                std::int16_t at_most);
  Task<std::vector<GroupAnswer>> offsets_one_by_one(base::NodeId node,
                                                    std::vector<std::string> groups);

  boost::asio::any_io_executor executor_;
  SourceClientOptions options_;
  std::map<base::NodeId, Endpoint> brokers_;
  std::map<base::NodeId, Connection> connections_;
  Connection any_;
  std::size_t next_candidate_ = 0;
  std::string seen_cluster_id_;
  bool closed_ = false;
};

}  // namespace mirror
