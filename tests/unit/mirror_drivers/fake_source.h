// A Kafka in memory that speaks the real protocol on loopback, of a release of one's choice, and
// that can be told to lie.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mirror/group_offsets.h"
#include "protocol/api_table.h"
#include "protocol/base/bytes.h"
#include "protocol/base/clock.h"
#include "protocol/base/ids.h"
#include "protocol/messages/fetch.gen.h"
#include "protocol/messages/list_offsets.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_for_leader_epoch.gen.h"

namespace mirror_test {

struct SourceBatch {
  base::Offset base = 0, next = 0;
  base::LeaderEpoch epoch = 0;
  base::Buffer bytes;
};

struct SourceLog {
  std::vector<SourceBatch> batches;
  base::Offset start = 0, end = 0;
  base::LeaderEpoch epoch = 0;
  bool has_leader = true;
};

struct SourceTopicData {
  base::Uuid id;
  std::vector<SourceLog> partitions;
};

// The highest versions that a release serves.
struct Release {
  std::int16_t api_versions, metadata, fetch, list_offsets, offset_for_leader_epoch, list_groups,
      offset_fetch;
};
constexpr Release kafka_2_1{2, 7, 10, 4, 2, 2, 5};
constexpr Release kafka_2_4{3, 9, 11, 5, 3, 3, 6};
constexpr Release kafka_2_7{3, 9, 12, 5, 3, 4, 7};
constexpr Release kafka_4_4{4, 13, 18, 11, 4, 5, 10};

struct SourceGroupData {
  std::string protocol_type = "consumer";
  std::string type = "Classic";
  std::int16_t error = 0;  // answered to OffsetFetch
  std::map<std::pair<std::string, std::int32_t>, mirror::CommittedOffset> offsets;
};

class FakeSource {
 public:
  FakeSource(boost::asio::io_context& io, Release release);
  ~FakeSource();

  std::uint16_t port() const { return port_; }
  std::string bootstrap() const { return "127.0.0.1:" + std::to_string(port_); }
  // Ends all connections and refuses new ones, until start() takes the same port again.
  void stop();
  void start();
  void drop_connections();

  void add_topic(const std::string& name, int partitions);
  SourceLog& log(const std::string& topic, int partition) {
    return topics.at(topic).partitions.at(static_cast<std::size_t>(partition));
  }
  // Appends `count` records as one batch in the partition's epoch.
  void produce(const std::string& topic, int partition, int count);
  void append(const std::string& topic, int partition, SourceBatch batch);
  base::Buffer bytes(const std::string& topic, int partition);

  std::map<std::string, SourceTopicData> topics;
  std::map<std::string, SourceGroupData> groups;
  std::string cluster_id = "source-cluster-id";
  Release release;

  // Lies. Each may change an answer before it goes out.
  std::function<void(protocol::FetchRequest&, protocol::FetchResponse&)> on_fetch;
  std::function<void(protocol::MetadataResponse&)> on_metadata;
  std::function<void(base::Buffer& response)> on_bytes;  // size prefix included
  std::function<void(protocol::ListOffsetsResponse&)> on_list_offsets;
  std::function<void(protocol::OffsetForLeaderEpochResponse&)> on_epochs;
  bool wrong_correlation = false;
  bool sessions = true;
  bool mute = false;         // reads requests and answers nothing
  bool mute_groups = false;  // only ListGroups is not answered
  std::int16_t list_groups_error = 0;

  // What was asked.
  int fetches = 0, connections = 0, full_fetches = 0;
  int group_listings = 0, offset_fetches = 0;
  int with_others_behind = 0;  // requests that the next one had come with
  std::int16_t fetch_version = -1;
  std::vector<protocol::FetchRequest> last_fetches;  // the newest last, at most 64
  std::deque<base::Buffer> kept;                     // requests, which last_fetches borrow from

 private:
  struct Session {
    std::int32_t epoch = 1;
    std::map<std::pair<std::string, std::int32_t>, protocol::FetchRequest::Topic::Partition> wants;
  };
  struct Connection;

  boost::asio::awaitable<void> accept_loop(
      std::shared_ptr<boost::asio::ip::tcp::acceptor> acceptor);
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<bool> answer(Connection& connection, base::Bytes request,
                                      base::Buffer& out);
  void answer_api_versions(std::int16_t version, protocol::Writer& out);
  void answer_metadata(base::Bytes body, std::int16_t version, protocol::Writer& out);
  void answer_list_offsets(base::Bytes body, std::int16_t version, protocol::Writer& out);
  void answer_list_groups(base::Bytes body, std::int16_t version, protocol::Writer& out);
  void answer_offset_fetch(base::Bytes body, std::int16_t version, protocol::Writer& out);
  void answer_epochs(base::Bytes body, std::int16_t version, protocol::Writer& out);
  boost::asio::awaitable<void> answer_fetch(Connection& connection, base::Bytes body,
                                            std::int16_t version, protocol::Writer& out);
  bool fill(protocol::FetchResponse& response, const Session& session, std::int16_t version,
            bool everything);
  std::string name_of(const protocol::FetchRequest::Topic& topic, std::int16_t version) const;

  boost::asio::io_context& io_;
  std::uint16_t port_ = 0;
  std::shared_ptr<boost::asio::ip::tcp::acceptor> acceptor_;
  std::set<std::shared_ptr<Connection>> open_;
  std::deque<base::Buffer> lent_;  // records of responses under way
  std::int32_t next_session_ = 1;
};

// A batch as a producer's: `count` records from `base` on.
SourceBatch make_batch(base::Offset base, int count, base::LeaderEpoch epoch,
                       std::size_t value_bytes = 20);

}  // namespace mirror_test
