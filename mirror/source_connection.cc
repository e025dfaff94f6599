#include "mirror/source_connection.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/big_endian.h"
#include "protocol/header.h"
#include "protocol/messages/api_versions.gen.h"
#include "protocol/messages/metadata.gen.h"

namespace mirror {
namespace {

constexpr std::size_t prefix_bytes = 4;
constexpr std::size_t small_buffer_bytes = 16 * 1024;
// What a plain question waits beyond the request timeout.
constexpr std::chrono::milliseconds no_extra_wait{};

}  // namespace

std::string Endpoint::to_string() const {
  const bool bracket = host.find(':') != std::string::npos;
  return bracket ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// Closes the stream when a call takes too long. The timer stays armed between calls and looks at
// the time when it fires: setting a variable per call is cheaper than moving a timer.
class SourceConnection::Deadline {
 public:
  Deadline(const boost::asio::any_io_executor& executor, Stream& stream)
      : state_(std::make_shared<State>(executor, stream)) {}
  ~Deadline() {
    state_->stream = nullptr;
    state_->timer.cancel();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void arm(base::Clock::duration timeout) {
    const auto at = base::Clock::now() + timeout;
    state_->at = at;
    if (!state_->waiting || state_->timer.expiry() > at) wait(state_, at);
  }
  void disarm() { state_->at.reset(); }
  bool passed() const { return state_->passed; }

 private:
  struct State {
    State(const boost::asio::any_io_executor& executor, Stream& s) : timer(executor), stream(&s) {}
    base::Timer timer;
    Stream* stream;
    std::optional<base::Clock::time_point> at;
    bool waiting = false;
    bool passed = false;
  };
  static void wait(const std::shared_ptr<State>& state, base::Clock::time_point at) {
    state->waiting = true;
    state->timer.expires_at(at);
    state->timer.async_wait([state](boost::system::error_code error) {
      if (error) return;  // moved, or gone
      state->waiting = false;
      if (state->stream == nullptr || !state->at) return;
      if (*state->at > base::Clock::now()) return wait(state, *state->at);
      state->passed = true;
      state->stream->close();
    });
  }
  std::shared_ptr<State> state_;
};

SourceConnection::SourceConnection(boost::asio::any_io_executor executor, Endpoint endpoint,
                                   ConnectionOptions options)
    : executor_(std::move(executor)),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)) {}

SourceConnection::~SourceConnection() {
  close();
}

void SourceConnection::close() {
  open_ = false;
  closed_here_ = true;
  if (stream_) stream_->close();
}

base::Error SourceConnection::fail(base::Error error) {
  const bool timed_out = deadline_ && deadline_->passed();
  const bool by_us = closed_here_;
  open_ = false;
  if (stream_) stream_->close();
  if (timed_out) return SourceErrc::timed_out;
  if (by_us) return SourceErrc::closed;
  return error;
}

boost::asio::awaitable<base::Result<void>> SourceConnection::open(
    std::optional<std::string> expected_cluster_id) {
  CHECK(!stream_);
  auto connected =
      co_await connect_stream(executor_, endpoint_.host, endpoint_.port, options_.connect_timeout);
  if (!connected) co_return closed_here_ ? base::Error(SourceErrc::closed) : connected.error();
  stream_ = std::move(*connected);
  if (closed_here_) co_return fail(SourceErrc::closed);
  deadline_ = std::make_unique<Deadline>(executor_, *stream_);
  CO_TRY_VOID(co_await negotiate());
  CO_TRY_VOID(co_await check_cluster(std::move(expected_cluster_id)));
  open_ = true;
  co_return boost::system::in_place_value;
}

// A broker that does not know our version of ApiVersions answers in version 0 with error 35, and
// before 2.4 with an empty list; then it is asked in version 0.
boost::asio::awaitable<base::Result<void>> SourceConnection::negotiate() {
  protocol::ApiVersionsRequest request;
  request.client_software_name = "calque";
  request.client_software_version = CALQUE_VERSION;
  for (std::int16_t version : {std::int16_t{3}, std::int16_t{0}}) {
    send_.clear();
    append(request, version);
    CO_TRY_VOID(co_await send(no_extra_wait));
    CO_TRY(const base::Bytes body,
           co_await receive(protocol::ApiKey::api_versions, version, correlation_id_));
    constexpr auto refused = static_cast<std::int16_t>(protocol::ErrorCode::unsupported_version);
    protocol::ApiVersionsResponse response;
    const bool error_in_v0 =
        body.size() >= 2 && protocol::load_be<std::int16_t>(body.data()) == refused;
    if (error_in_v0 && version > 0) continue;
    if (!decode(body, version, response)) co_return fail(SourceErrc::malformed);
    if (response.error_code != 0) co_return fail(kafka_error(response.error_code));
    for (const auto& api : response.api_keys)
      versions_[api.api_key] = {api.min_version, api.max_version};
    co_return boost::system::in_place_value;
  }
  co_return fail(SourceErrc::unsupported);
}

boost::asio::awaitable<base::Result<void>> SourceConnection::check_cluster(
    std::optional<std::string> expected) {
  // From version 2 on the answer has the cluster id.
  const auto version = version_of(protocol::ApiKey::metadata, 4);
  if (!version) co_return fail(SourceErrc::unsupported);
  protocol::MetadataRequest request;  // of no topic
  request.allow_auto_topic_creation = false;
  protocol::MetadataResponse response;
  CO_TRY_VOID(co_await call(request, response, *version));
  if (!response.cluster_id || response.cluster_id->empty())
    co_return fail(SourceErrc::no_cluster_id);
  cluster_id_ = std::move(*response.cluster_id);
  if (expected && *expected != cluster_id_) co_return fail(SourceErrc::cluster_changed);
  co_return boost::system::in_place_value;
}

std::optional<std::int16_t> SourceConnection::version_of(protocol::ApiKey key,
                                                         std::int16_t at_least,
                                                         std::int16_t at_most) const {
  const auto theirs = versions_.find(static_cast<std::int16_t>(key));
  const protocol::ApiInfo* ours = protocol::find_api(key);
  if (theirs == versions_.end() || ours == nullptr) return std::nullopt;
  const std::int16_t high = std::min({theirs->second.high, ours->max_version, at_most});
  const std::int16_t low = std::max({theirs->second.low, ours->min_version, at_least});
  if (high < low) return std::nullopt;
  return high;
}

void SourceConnection::begin(protocol::ApiKey key, std::int16_t version) {
  const protocol::ApiInfo* info = protocol::find_api(key);
  CHECK(info != nullptr && info->has(version));
  send_.resize(send_.size() + prefix_bytes);
  // Wraps to 0, as Kafka's own clients do.
  correlation_id_ = correlation_id_ == INT32_MAX ? 0 : correlation_id_ + 1;
  protocol::Writer writer(send_);
  encode(writer, protocol::RequestHeader{.api_key = static_cast<std::int16_t>(key),
                                         .api_version = version,
                                         .correlation_id = correlation_id_,
                                         .client_id = options_.client_id});
}

void SourceConnection::end(std::size_t at) {
  protocol::store_be<std::int32_t>(send_.data() + at,
                                   static_cast<std::int32_t>(send_.size() - at - prefix_bytes));
}

boost::asio::awaitable<base::Result<void>> SourceConnection::send(
    std::chrono::milliseconds extra_wait) {
  if (!stream_ || closed_here_) co_return fail(SourceErrc::closed);
  deadline_->arm(options_.request_timeout + extra_wait);
  auto sent = co_await stream_->write(send_);
  if (!sent) co_return fail(sent.error());
  co_return boost::system::in_place_value;
}

boost::asio::awaitable<base::Result<base::Bytes>> SourceConnection::receive(
    protocol::ApiKey key, std::int16_t version, std::int32_t correlation, bool more) {
  auto received = co_await receive_frame(more);
  if (!received) co_return fail(received.error());
  if (more)
    deadline_->arm(options_.request_timeout);
  else
    deadline_->disarm();
  const base::Bytes response = base::Bytes(receive_).subspan(prefix_bytes, *received);
  protocol::ResponseHeader header;
  base::Bytes body;
  if (!decode(response, key, version, header, body)) co_return fail(SourceErrc::malformed);
  if (header.correlation_id != correlation) co_return fail(SourceErrc::wrong_correlation);
  co_return body;
}

// Reads one response into receive_, prefix included; answers its size without the prefix.
boost::asio::awaitable<base::Result<std::size_t>> SourceConnection::receive_frame(bool more) {
  if (receive_.size() < small_buffer_bytes) receive_.resize(small_buffer_bytes);
  if (receive_.size() > 4 * receive_buffer_bytes) {
    receive_.resize(receive_buffer_bytes);
    receive_.shrink_to_fit();
  }
  std::size_t have = 0;
  std::size_t want = prefix_bytes;
  bool size_known = false;
  while (have < want) {
    base::MutableBytes space = base::MutableBytes(receive_).subspan(have);
    if (more) space = space.first(std::min(space.size(), want - have));
    auto n = co_await stream_->read_some(space);
    if (!n) co_return n.error();
    have += *n;
    bytes_received_ += *n;
    if (!size_known && have >= prefix_bytes) {
      const auto size = protocol::load_be<std::int32_t>(receive_.data());
      if (size < static_cast<std::int32_t>(prefix_bytes)) co_return SourceErrc::malformed;
      if (static_cast<std::size_t>(size) > response_bytes_max) co_return SourceErrc::too_large;
      want = prefix_bytes + static_cast<std::size_t>(size);
      size_known = true;
    }
    if (size_known && have == receive_.size() && have < want)
      receive_.resize(std::min(want, std::max(receive_buffer_bytes, have * 2)));
  }
  // Nothing is outstanding any more, so nothing can follow.
  if (have > want) co_return SourceErrc::malformed;
  co_return want - prefix_bytes;
}

}  // namespace mirror
