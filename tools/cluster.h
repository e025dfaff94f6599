// A cluster as the data commands need it: which partitions there are, and a connection to the
// leader of each.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/messages/list_offsets.gen.h"
#include "tools/client.h"

namespace tools {

// ListOffsets' special timestamps.
constexpr std::int64_t latest_timestamp = -1;
constexpr std::int64_t earliest_timestamp = -2;
constexpr std::int64_t max_timestamp = -3;

class Cluster {
 public:
  struct Partition {
    std::int32_t index = 0;
    std::optional<base::NodeId> leader;
    std::optional<base::LeaderEpoch> leader_epoch;
  };
  struct Topic {
    std::string name;
    base::Uuid id;
    bool internal = false;
    std::vector<Partition> partitions;  // sorted
  };

  Cluster(std::vector<Address> bootstrap, std::string option);

  // All topics, sorted by name.
  std::vector<Topic> topics();
  std::optional<Topic> topic(const std::string& name);
  const std::string& cluster_id() const { return cluster_id_; }

  // Any broker.
  Client& any() { return *bootstrap_client_; }
  // The controller as the metadata names it now: before Kafka 2.8 only it changes topics. Any
  // broker while none is named.
  Client& controller();
  // The partition's leader; asks for metadata if it is not known yet. Failure(failed) while there
  // is none.
  Client& leader(const std::string& topic, std::int32_t partition);
  // After NOT_LEADER or a lost connection: the next leader() looks again.
  void forget_leaders();

  // Absent: the broker cannot answer (it is too old for that timestamp).
  using OffsetAnswer = protocol::ListOffsetsResponse::Topic::Partition;
  std::optional<OffsetAnswer> offset_at(const std::string& topic, std::int32_t partition,
                                        std::int64_t timestamp);
  // Where `epoch` ends, as (epoch, end offset) in Kafka's own terms.
  std::pair<std::int32_t, std::int64_t> epoch_end(const std::string& topic, std::int32_t partition,
                                                  base::LeaderEpoch epoch);

 private:
  std::vector<Topic> ask(std::optional<std::vector<std::string>> names);
  Client& client_of(base::NodeId node);

  std::vector<Address> addresses_;
  std::string option_;
  std::string cluster_id_;
  base::NodeId controller_ = -1;
  std::unique_ptr<Client> bootstrap_client_;
  std::map<base::NodeId, Address> nodes_;
  std::map<base::NodeId, std::unique_ptr<Client>> clients_;
  std::map<std::pair<std::string, std::int32_t>, base::NodeId> leaders_;
};

}  // namespace tools
