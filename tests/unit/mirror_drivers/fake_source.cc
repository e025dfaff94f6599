#include "tests/unit/mirror_drivers/fake_source.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

#include "protocol/base/random.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/error_code.h"
#include "protocol/header.h"
#include "protocol/messages/api_versions.gen.h"
#include "protocol/messages/list_groups.gen.h"
#include "protocol/messages/offset_fetch.gen.h"

namespace mirror_test {

using boost::asio::ip::tcp;
constexpr auto nothrow = boost::asio::as_tuple(boost::asio::use_awaitable);

namespace {

std::int16_t number(protocol::ErrorCode code) {
  return static_cast<std::int16_t>(code);
}

}  // namespace

SourceBatch make_batch(base::Offset base, int count, base::LeaderEpoch epoch,
                       std::size_t value_bytes) {
  protocol::BatchOptions options;
  options.base_offset = base;
  options.partition_leader_epoch = epoch;
  protocol::BatchBuilder builder(options);
  for (int i = 0; i < count; ++i) {
    std::string value = "value " + std::to_string(base + i);
    value.resize(std::max(value.size(), value_bytes), '.');
    builder.add(1000 + i, std::nullopt, base::as_bytes(value));
  }
  return {base, base + count, epoch, std::move(builder).build()};
}

struct FakeSource::Connection {
  explicit Connection(tcp::socket s) : socket(std::move(s)), timer(socket.get_executor()) {}
  tcp::socket socket;
  base::Timer timer;
  std::map<std::int32_t, Session> sessions;
  void close() {
    boost::system::error_code ignored;
    socket.close(ignored);
    timer.cancel();
  }
};

FakeSource::FakeSource(boost::asio::io_context& io, Release r) : release(r), io_(io) {
  start();
}
FakeSource::~FakeSource() {
  stop();
}

void FakeSource::start() {
  if (acceptor_) return;
  acceptor_ = std::make_shared<tcp::acceptor>(io_);
  const tcp::endpoint endpoint(boost::asio::ip::address_v4::loopback(), port_);
  acceptor_->open(endpoint.protocol());
  acceptor_->set_option(tcp::acceptor::reuse_address(true));
  acceptor_->bind(endpoint);
  acceptor_->listen();
  port_ = acceptor_->local_endpoint().port();
  boost::asio::co_spawn(io_, accept_loop(acceptor_), boost::asio::detached);
}

void FakeSource::drop_connections() {
  for (const auto& connection : std::exchange(open_, {})) connection->close();
}

void FakeSource::stop() {
  if (acceptor_) acceptor_->close();
  acceptor_.reset();
  drop_connections();
}

void FakeSource::add_topic(const std::string& name, int partitions) {
  static base::Random random(99);
  SourceTopicData& topic = topics[name];
  topic.id = random.uuid();
  topic.partitions.resize(static_cast<std::size_t>(partitions));
}

void FakeSource::append(const std::string& topic, int partition, SourceBatch batch) {
  SourceLog& to = log(topic, partition);
  to.end = batch.next;
  to.batches.push_back(std::move(batch));
}

void FakeSource::produce(const std::string& topic, int partition, int count) {
  const SourceLog& to = log(topic, partition);
  append(topic, partition, make_batch(to.end, count, to.epoch));
}

base::Buffer FakeSource::bytes(const std::string& topic, int partition) {
  base::Buffer all;
  for (const SourceBatch& batch : log(topic, partition).batches)
    all.insert(all.end(), batch.bytes.begin(), batch.bytes.end());
  return all;
}

boost::asio::awaitable<void> FakeSource::accept_loop(std::shared_ptr<tcp::acceptor> acceptor) {
  for (;;) {
    auto [error, socket] = co_await acceptor->async_accept(nothrow);
    if (error) co_return;
    ++connections;
    auto connection = std::make_shared<Connection>(std::move(socket));
    open_.insert(connection);
    boost::asio::co_spawn(io_, serve(connection), boost::asio::detached);
  }
}

boost::asio::awaitable<void> FakeSource::serve(std::shared_ptr<Connection> connection) {
  // stop() has closed it, and this object may be gone.
  const auto stopped = [&socket = connection->socket] { return !socket.is_open(); };
  for (;;) {
    base::Buffer prefix(4);
    auto [e1, n1] = co_await boost::asio::async_read(
        connection->socket, boost::asio::buffer(prefix.data(), 4), nothrow);
    if (e1 || stopped()) break;
    kept.emplace_back(static_cast<std::size_t>(protocol::load_be<std::int32_t>(prefix.data())));
    base::Buffer& request = kept.back();
    auto [e2, n2] = co_await boost::asio::async_read(
        connection->socket, boost::asio::buffer(request.data(), request.size()), nothrow);
    if (e2 || stopped()) break;
    if (mute) continue;
    boost::system::error_code error;
    if (connection->socket.available(error) > 0) ++with_others_behind;
    base::Buffer out(4);
    if (!co_await answer(*connection, request, out) || stopped()) break;
    protocol::store_be<std::int32_t>(out.data(), static_cast<std::int32_t>(out.size() - 4));
    if (on_bytes) on_bytes(out);
    auto [e3, n3] = co_await boost::asio::async_write(
        connection->socket, boost::asio::buffer(out.data(), out.size()), nothrow);
    if (e3 || stopped()) break;
  }
  if (stopped()) co_return;
  connection->close();
  open_.erase(connection);
}

boost::asio::awaitable<bool> FakeSource::answer(Connection& connection, base::Bytes request,
                                                base::Buffer& out) {
  protocol::RequestHeader header;
  base::Bytes body;
  if (!decode(request, header, body)) co_return false;
  const auto key = static_cast<protocol::ApiKey>(header.api_key);
  protocol::Writer writer(out);
  const std::int32_t correlation = header.correlation_id + (wrong_correlation ? 1 : 0);
  encode(writer, key, header.api_version, protocol::ResponseHeader{correlation});
  switch (key) {
    case protocol::ApiKey::api_versions:
      answer_api_versions(header.api_version, writer);
      break;
    case protocol::ApiKey::metadata:
      answer_metadata(body, header.api_version, writer);
      break;
    case protocol::ApiKey::list_offsets:
      answer_list_offsets(body, header.api_version, writer);
      break;
    case protocol::ApiKey::list_groups:
      if (mute_groups) co_return false;
      answer_list_groups(body, header.api_version, writer);
      break;
    case protocol::ApiKey::offset_fetch:
      answer_offset_fetch(body, header.api_version, writer);
      break;
    case protocol::ApiKey::offset_for_leader_epoch:
      answer_epochs(body, header.api_version, writer);
      break;
    case protocol::ApiKey::fetch:
      co_await answer_fetch(connection, body, header.api_version, writer);
      break;
    default:
      co_return false;
  }
  co_return true;
}

// Kafka 2.1 to 2.3 refuse an unknown version in version 0, with an empty list.
void FakeSource::answer_api_versions(std::int16_t version, protocol::Writer& out) {
  protocol::ApiVersionsResponse response;
  if (version > release.api_versions) {
    response.error_code = number(protocol::ErrorCode::unsupported_version);
    encode(out, 0, response);
    return;
  }
  const auto serve_up_to = [&response](protocol::ApiKey key, std::int16_t low, std::int16_t high) {
    auto& api = response.api_keys.emplace_back();
    api.api_key = static_cast<std::int16_t>(key);
    api.min_version = low;
    api.max_version = high;
  };
  serve_up_to(protocol::ApiKey::api_versions, 0, release.api_versions);
  serve_up_to(protocol::ApiKey::metadata, 0, release.metadata);
  serve_up_to(protocol::ApiKey::fetch, 4, release.fetch);
  serve_up_to(protocol::ApiKey::list_offsets, 1, release.list_offsets);
  serve_up_to(protocol::ApiKey::list_groups, 0, release.list_groups);
  serve_up_to(protocol::ApiKey::offset_fetch, 1, release.offset_fetch);
  serve_up_to(protocol::ApiKey::offset_for_leader_epoch, 2, release.offset_for_leader_epoch);
  encode(out, version, response);
}

void FakeSource::answer_metadata(base::Bytes body, std::int16_t version, protocol::Writer& out) {
  protocol::MetadataRequest request;
  protocol::MetadataResponse response;
  if (!decode(body, version, request)) return;
  response.cluster_id = cluster_id;
  auto& broker = response.brokers.emplace_back();
  broker.node_id = 1;
  broker.host = "127.0.0.1";
  broker.port = port_;
  const auto add = [&](const std::string& name) {
    auto& topic = response.topics.emplace_back();
    topic.name = name;
    const auto found = topics.find(name);
    if (found == topics.end()) {
      topic.error_code = number(protocol::ErrorCode::unknown_topic_or_partition);
      return;
    }
    topic.topic_id = found->second.id;
    for (std::size_t p = 0; p < found->second.partitions.size(); ++p) {
      const SourceLog& from = found->second.partitions[p];
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = static_cast<std::int32_t>(p);
      partition.leader_id = from.has_leader ? 1 : -1;
      partition.leader_epoch = from.epoch;
    }
  };
  if (!request.topics)
    for (const auto& [name, topic] : topics) add(name);
  else
    for (const auto& topic : *request.topics) add(topic.name.value_or(""));
  if (on_metadata) on_metadata(response);
  encode(out, version, response);
}

void FakeSource::answer_list_offsets(base::Bytes body, std::int16_t version,
                                     protocol::Writer& out) {
  protocol::ListOffsetsRequest request;
  protocol::ListOffsetsResponse response;
  if (!decode(body, version, request)) return;
  for (const auto& topic : request.topics) {
    auto& answer = response.topics.emplace_back();
    answer.name = topic.name;
    for (const auto& partition : topic.partitions) {
      auto& one = answer.partitions.emplace_back();
      one.partition_index = partition.partition_index;
      const SourceLog& from = log(topic.name, partition.partition_index);
      one.offset = partition.timestamp == -2 ? from.start : from.end;
    }
  }
  if (on_list_offsets) on_list_offsets(response);
  encode(out, version, response);
}

void FakeSource::answer_list_groups(base::Bytes body, std::int16_t version, protocol::Writer& out) {
  ++group_listings;
  protocol::ListGroupsRequest request;
  protocol::ListGroupsResponse response;
  if (!decode(body, version, request)) return;
  response.error_code = list_groups_error;
  for (const auto& [name, group] : groups) {
    auto& one = response.groups.emplace_back();
    one.group_id = name;
    one.protocol_type = group.protocol_type;
    one.group_type = group.type;
  }
  encode(out, version, response);
}

void FakeSource::answer_offset_fetch(base::Bytes body, std::int16_t version,
                                     protocol::Writer& out) {
  ++offset_fetches;
  protocol::OffsetFetchRequest request;
  protocol::OffsetFetchResponse response;
  if (!decode(body, version, request)) return;
  const auto fill = [this](const std::string& name, auto& answer) {
    const SourceGroupData& group = groups[name];
    answer.error_code = group.error;
    for (const auto& [place, committed] : group.offsets) {
      auto& topic = answer.topics.emplace_back();
      topic.name = place.first;
      auto& partition = topic.partitions.emplace_back();
      partition.partition_index = place.second;
      partition.committed_offset = committed.offset;
      partition.committed_leader_epoch = committed.leader_epoch.value_or(-1);
      partition.metadata = committed.metadata;
    }
  };
  constexpr std::int16_t many_groups = 8;
  if (version < many_groups) {
    fill(request.group_id, response);
  } else {
    for (const auto& wanted : request.groups) {
      auto& group = response.groups.emplace_back();
      group.group_id = wanted.group_id;
      fill(wanted.group_id, group);
    }
  }
  encode(out, version, response);
}

void FakeSource::answer_epochs(base::Bytes body, std::int16_t version, protocol::Writer& out) {
  protocol::OffsetForLeaderEpochRequest request;
  protocol::OffsetForLeaderEpochResponse response;
  if (!decode(body, version, request)) return;
  for (const auto& topic : request.topics) {
    auto& answer = response.topics.emplace_back();
    answer.topic = topic.topic;
    for (const auto& partition : topic.partitions) {
      auto& one = answer.partitions.emplace_back();
      one.partition = partition.partition;
      const SourceLog& from = log(topic.topic, partition.partition);
      for (const SourceBatch& batch : from.batches)
        if (batch.epoch <= partition.leader_epoch) {
          one.leader_epoch = batch.epoch;
          one.end_offset = batch.next;
        }
      if (partition.leader_epoch == from.epoch) {
        one.leader_epoch = from.epoch;
        one.end_offset = from.end;
      }
    }
  }
  if (on_epochs) on_epochs(response);
  encode(out, version, response);
}

std::string FakeSource::name_of(const protocol::FetchRequest::Topic& topic,
                                std::int16_t version) const {
  if (version < 13) return topic.topic;
  for (const auto& [name, data] : topics)
    if (data.id == topic.topic_id) return name;
  return "";
}

bool FakeSource::fill(protocol::FetchResponse& response, const Session& session,
                      std::int16_t version, bool everything) {
  bool any = false;
  for (const auto& [place, want] : session.wants) {
    const auto topic = topics.find(place.first);
    protocol::FetchResponse::Response::Partition answer;
    answer.partition_index = place.second;
    if (topic == topics.end()) {
      answer.error_code = number(protocol::ErrorCode::unknown_topic_or_partition);
    } else {
      const SourceLog& from = topic->second.partitions.at(static_cast<std::size_t>(place.second));
      answer.high_watermark = answer.last_stable_offset = from.end;
      answer.log_start_offset = from.start;
      if (want.fetch_offset < from.start || want.fetch_offset > from.end) {
        answer.error_code = number(protocol::ErrorCode::offset_out_of_range);
      } else if (want.current_leader_epoch >= 0 && want.current_leader_epoch < from.epoch) {
        answer.error_code = number(protocol::ErrorCode::fenced_leader_epoch);
      } else {
        lent_.emplace_back();
        for (const SourceBatch& batch : from.batches)
          if (batch.next > want.fetch_offset &&
              (lent_.back().empty() || lent_.back().size() + batch.bytes.size() <=
                                           static_cast<std::size_t>(want.partition_max_bytes)))
            lent_.back().insert(lent_.back().end(), batch.bytes.begin(), batch.bytes.end());
        answer.records.bytes = lent_.back();
      }
    }
    const bool news = answer.error_code != 0 || !answer.records.bytes.empty();
    any |= news;
    if (!news && !everything) continue;
    auto& to = response.responses.emplace_back();
    to.topic = place.first;
    if (topic != topics.end()) to.topic_id = topic->second.id;
    to.partitions.push_back(answer);
  }
  static_cast<void>(version);
  return any;
}

boost::asio::awaitable<void> FakeSource::answer_fetch(Connection& connection, base::Bytes body,
                                                      std::int16_t version, protocol::Writer& out) {
  ++fetches;
  fetch_version = version;
  protocol::FetchRequest request;
  if (!decode(body, version, request)) co_return;
  last_fetches.push_back(request);
  if (last_fetches.size() > 64) last_fetches.erase(last_fetches.begin());
  Session full;
  Session* session = &full;
  protocol::FetchResponse response;
  const bool incremental = request.session_epoch > 0;
  if (!incremental) ++full_fetches;
  if (incremental) {
    const auto found = connection.sessions.find(request.session_id);
    if (found == connection.sessions.end() || !sessions) {
      response.error_code = number(protocol::ErrorCode::fetch_session_id_not_found);
      encode(out, version, response);
      co_return;
    }
    session = &found->second;
    if (request.session_epoch != session->epoch) {
      response.error_code = number(protocol::ErrorCode::invalid_fetch_session_epoch);
      encode(out, version, response);
      co_return;
    }
    ++session->epoch;
    response.session_id = request.session_id;
  } else if (request.session_epoch == 0 && sessions) {
    response.session_id = next_session_++;
    session = &connection.sessions[response.session_id];
  }
  for (const auto& topic : request.topics)
    for (const auto& partition : topic.partitions)
      session->wants[{name_of(topic, version), partition.partition}] = partition;
  for (const auto& topic : request.forgotten_topics_data) {
    protocol::FetchRequest::Topic named;
    named.topic = topic.topic;
    named.topic_id = topic.topic_id;
    for (const std::int32_t partition : topic.partitions)
      session->wants.erase({name_of(named, version), partition});
  }
  const auto until = base::Clock::now() + std::chrono::milliseconds(request.max_wait_ms);
  const Session copy = *session;
  while (!fill(response, copy, version, !incremental) && base::Clock::now() < until) {
    response.responses.clear();
    connection.timer.expires_after(std::chrono::milliseconds(5));
    co_await connection.timer.async_wait(nothrow);
    if (!connection.socket.is_open()) co_return;
  }
  if (on_fetch) on_fetch(request, response);
  encode(out, version, response);
  lent_.clear();
}

}  // namespace mirror_test
