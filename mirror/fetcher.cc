#include "mirror/fetcher.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace mirror {
namespace {

using namespace std::chrono_literals;

constexpr std::int16_t version_with_zstd = 10;  // all that the oldest source needs, and serves
constexpr std::int16_t version_without_ids = 12;
constexpr auto newcomer_period = 3s;
constexpr auto newcomer_wait = 50ms;
// A source that answers a long poll at once with nothing would have us spin.
constexpr auto too_soon = 2ms;
constexpr auto nothing_backoff_first = 10ms;

bool is_session_lost(protocol::ErrorCode code) {
  return code == protocol::ErrorCode::fetch_session_id_not_found ||
         code == protocol::ErrorCode::invalid_fetch_session_epoch ||
         code == protocol::ErrorCode::fetch_session_topic_id_error;
}

}  // namespace

Fetcher::Fetcher(boost::asio::any_io_executor executor, FetcherOptions options)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      session_(options_.partition_max_bytes),
      timer_(executor_) {}

Fetcher::~Fetcher() = default;

void Fetcher::close() {
  closed_ = true;
  if (connection_) connection_->close();
  timer_.cancel();
}

void Fetcher::want(FetchWish wish, FetchClient* client) {
  const bool was_idle = session_.empty();
  session_.want(std::move(wish), client);
  if (was_idle) timer_.cancel();
}

void Fetcher::drop(const std::string& topic, std::int32_t partition) {
  session_.drop(topic, partition);
}

boost::asio::awaitable<void> Fetcher::pause(base::Clock::duration duration) {
  const auto until = base::Clock::now() + duration;
  while (!closed_ && base::Clock::now() < until) {  // a new wish wakes it too
    timer_.expires_at(until);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

boost::asio::awaitable<void> Fetcher::await_wish() {
  while (!closed_ && session_.empty()) {
    timer_.expires_at(base::Clock::time_point::max());
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

boost::asio::awaitable<void> Fetcher::run() {
  while (!closed_) {
    if (session_.empty()) {
      co_await await_wish();
      continue;
    }
    base::Result<void> done = boost::system::in_place_value;
    if (!connection_ || !connection_->is_open()) done = co_await connect();
    if (done && !closed_) done = co_await fetch_once();
    if (done || closed_) continue;
    heard_at_.reset();
    const std::string text =
        describe_error(done.error(), options_.cluster_id, connection_->cluster_id());
    connection_.reset();
    fail_all(done.error(), text);
  }
  connection_.reset();
}

boost::asio::awaitable<base::Result<void>> Fetcher::connect() {
  session_.reset();
  connection_ =
      std::make_unique<SourceConnection>(executor_, options_.endpoint, options_.connection);
  co_return co_await connection_->open(options_.cluster_id);
}

std::optional<std::int16_t> Fetcher::version() const {
  return connection_->version_of(protocol::ApiKey::fetch, version_with_zstd,
                                 session_.all_have_ids() ? INT16_MAX : version_without_ids);
}

std::chrono::milliseconds Fetcher::next_wait() const {
  const bool settled = base::Clock::now() - changed_at_ > newcomer_period;
  return settled ? options_.wait_max
                 : std::min<std::chrono::milliseconds>(options_.wait_max, newcomer_wait);
}

boost::asio::awaitable<base::Result<void>> Fetcher::fetch_once() {
  const auto spoken = version();
  if (!spoken) co_return SourceErrc::unsupported;
  protocol::FetchRequest request;
  const std::chrono::milliseconds wait = next_wait();
  request.max_wait_ms = static_cast<std::int32_t>(wait.count());
  request.min_bytes = options_.min_bytes;
  request.max_bytes = options_.response_max_bytes;
  session_.fill(request, *spoken > version_without_ids);
  const std::size_t asked = session_.size();
  const auto begun = base::Clock::now();
  const std::uint64_t bytes_before = connection_->bytes_received();
  protocol::FetchResponse response;
  CO_TRY_VOID(co_await connection_->call(request, response, *spoken, wait));
  bytes_received_ += connection_->bytes_received() - bytes_before;
  const auto now = base::Clock::now();
  bool progress = false;
  if (session_.accept(response)) {
    heard_at_ = now;
    progress = dispatch(response);
  } else {
    const base::Error error = kafka_error(response.error_code);
    const auto code = static_cast<protocol::ErrorCode>(response.error_code);
    if (!is_session_lost(code)) co_return error;
  }
  if (session_.size() != asked) changed_at_ = now;
  // The source mutes a client that it throttles, and tells for how long.
  if (response.throttle_time_ms > 0) {
    const auto throttle = std::min<std::chrono::milliseconds>(
        std::chrono::milliseconds(response.throttle_time_ms), options_.connection.request_timeout);
    co_await pause(throttle);
  }
  if (progress || base::Clock::now() - begun > too_soon) {
    idle_backoff_ = {};
  } else {
    idle_backoff_ = std::clamp<std::chrono::milliseconds>(idle_backoff_ * 2, nothing_backoff_first,
                                                          std::max(options_.backoff, 10ms));
    co_await pause(idle_backoff_);
  }
  co_return boost::system::in_place_value;
}

void Fetcher::fail_all(const base::Error& error, const std::string& text) {
  const std::vector<FetchClient*> clients = session_.clients();
  session_.clear();
  for (FetchClient* client : clients) client->on_fetch_failed(error, text);
}

bool Fetcher::dispatch(const protocol::FetchResponse& response) {
  bool progress = false;
  for (const auto& topic : response.responses)
    for (const auto& partition : topic.partitions) {
      FetchSession::Entry* entry = session_.find(topic, partition.partition_index);
      if (entry != nullptr && deliver(*entry, partition)) progress = true;
    }
  return progress;
}

// True: the wish is used up. The client may wish again or drop others meanwhile, so `entry` is not
// touched after it was called; a wish that it did not renew has `asked` still set.
bool Fetcher::deliver(FetchSession::Entry& entry,
                      const protocol::FetchResponse::Response::Partition& partition) {
  const auto known = [](base::Offset offset) -> std::optional<base::Offset> {
    if (offset < 0) return std::nullopt;
    return offset;
  };
  const FetchedPartition answer{.error = partition.error_code,
                                .diverging = partition.diverging_epoch.end_offset >= 0,
                                .records = partition.records.bytes,  // null counts as none
                                .high_watermark = known(partition.high_watermark),
                                .log_start = known(partition.log_start_offset)};
  const std::string topic = entry.wish.topic;
  const std::int32_t number = entry.wish.partition;
  FetchClient* client = entry.client;
  if (!client->on_fetched(answer)) return false;
  session_.drop_if_answered(topic, number);
  return true;
}

}  // namespace mirror
