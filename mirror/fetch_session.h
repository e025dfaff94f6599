// The partitions that one connection fetches, and Kafka's incremental fetch session (KIP-227) about
// them: which of them the next request must name. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/messages/fetch.gen.h"

namespace mirror {

class FetchClient;

// One partition's next fetch.
struct FetchWish {
  std::string topic;
  base::Uuid source_topic_id;  // zero: the source has none
  std::int32_t partition = 0;
  base::Offset offset = 0;
  base::Offset log_start = 0;
  std::optional<base::LeaderEpoch> last_epoch;    // of our last batch
  std::optional<base::LeaderEpoch> source_epoch;  // the leader's, as far as known
};

class FetchSession {
 public:
  struct Entry {
    FetchWish wish;
    FetchClient* client = nullptr;
    bool known = false;  // the source has the partition in its session, or will with this request
    bool asked = false;  // with this very wish, so that an answer is an answer to it
  };

  explicit FetchSession(std::int32_t partition_max_bytes)
      : partition_max_bytes_(partition_max_bytes) {}

  // Replaces what was wished for the same partition.
  void want(FetchWish wish, FetchClient* client);
  void drop(const std::string& topic, std::int32_t partition);
  // After an answer: drops the partition unless something new was wished for it meanwhile.
  void drop_if_answered(const std::string& topic, std::int32_t partition);
  void clear();
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // Whether every partition's topic id is known, so that requests may name them by it (v13).
  bool all_have_ids() const { return without_id_ == 0; }

  // Puts in the session's id and epoch and the partitions that the source must hear of.
  void fill(protocol::FetchRequest& request, bool by_id);
  // False: the source knows nothing of the session any more; the answer has no data and the next
  // request begins anew.
  bool accept(const protocol::FetchResponse& response);
  // The connection was lost, and its session with it.
  void reset();

  // Of a response; nullptr: not asked for (any more), or something else was wished meanwhile.
  Entry* find(const protocol::FetchResponse::Response& topic, std::int32_t partition);
  // All entries' clients, for telling them of a failure.
  std::vector<FetchClient*> clients() const;

  std::int32_t id() const { return id_; }
  std::int32_t epoch() const { return epoch_; }

 private:
  void abandon();
  struct Topic {
    std::string name;
    base::Uuid id;
    std::map<std::int32_t, Entry> partitions;
  };
  using Place = std::pair<std::string, std::int32_t>;
  void add_to(protocol::FetchRequest& request, std::map<std::string, std::size_t>& places,
              Entry& entry) const;
  void fill_all(protocol::FetchRequest& request);
  void fill_changes(protocol::FetchRequest& request);
  void forget(const Entry& entry);

  std::int32_t partition_max_bytes_;
  std::map<std::string, Topic> topics_;
  std::unordered_map<base::Uuid, std::string> names_;
  std::size_t size_ = 0;
  std::size_t without_id_ = 0;
  std::size_t rotation_ = 0;
  std::int32_t id_ = 0;     // 0: no session (yet)
  std::int32_t epoch_ = 0;  // of the next request
  bool by_id_ = false;
  // Since the last fill(); what was sent and got no answer is made good by reset().
  std::set<Place> changed_;
  std::map<Place, base::Uuid> forgotten_;
};

}  // namespace mirror
