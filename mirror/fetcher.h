// Fetches from one broker of a source for the partitions of one shard and mirror: one connection,
// one request outstanding, all partitions that want data in it.
//
// A partition states a wish with want() and gets one answer to it through its FetchClient; then it
// may wish again, from within that call, and the next request carries it. So in a catch-up each
// response is checked, appended and followed by the next request without a coroutine per partition.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mirror/fetch_session.h"
#include "mirror/source_connection.h"
#include "protocol/base/clock.h"

namespace mirror {

// What the source answered for one partition. Borrowed for the call.
struct FetchedPartition {
  std::int16_t error = 0;
  bool diverging = false;
  base::Bytes records;
  std::optional<base::Offset> high_watermark;
  std::optional<base::Offset> log_start;
};

// A partition, to its fetcher. All calls come from the fetcher's coroutine, none from want().
class FetchClient {
 public:
  virtual ~FetchClient() = default;
  // Data, an error of this partition, or word that there is nothing new. False: nothing came of it
  // and the wish stands. True: it is used up; a new one may have been stated already.
  virtual bool on_fetched(const FetchedPartition& answer) = 0;
  // The request failed as a whole. The wish is used up.
  virtual void on_fetch_failed(const base::Error& error, const std::string& text) = 0;
};

struct FetcherOptions {
  Endpoint endpoint;
  ConnectionOptions connection;
  std::string cluster_id;
  std::chrono::milliseconds wait_max{1000};  // fetch.wait.max.ms
  std::chrono::milliseconds backoff{1000};   // fetch.backoff.ms
  std::int32_t min_bytes = 1;
  std::int32_t partition_max_bytes = 1024 * 1024;  // fetch.max.bytes
  std::int32_t response_max_bytes = 1024 * 1024;   // at most fetch.response.max.bytes
};

class Fetcher {
 public:
  Fetcher(boost::asio::any_io_executor executor, FetcherOptions options);
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // The fetcher's coroutine; spawn it once. Ends after close(). The object outlives it.
  boost::asio::awaitable<void> run();
  void close();

  void want(FetchWish wish, FetchClient* client);
  void drop(const std::string& topic, std::int32_t partition);

  const Endpoint& endpoint() const { return options_.endpoint; }
  bool idle() const { return session_.empty(); }
  // When the source answered last; the figures about it are as old as that.
  std::optional<base::Clock::time_point> heard_at() const { return heard_at_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  boost::asio::awaitable<base::Result<void>> connect();
  boost::asio::awaitable<base::Result<void>> fetch_once();
  boost::asio::awaitable<void> pause(base::Clock::duration duration);
  boost::asio::awaitable<void> await_wish();
  void fail_all(const base::Error& error, const std::string& text);
  bool dispatch(const protocol::FetchResponse& response);
  bool deliver(FetchSession::Entry& entry,
               const protocol::FetchResponse::Response::Partition& partition);
  std::optional<std::int16_t> version() const;
  std::chrono::milliseconds next_wait() const;

  boost::asio::any_io_executor executor_;
  FetcherOptions options_;
  FetchSession session_;
  std::unique_ptr<SourceConnection> connection_;
  base::Timer timer_;  // wakes await_wish() and pause()
  bool closed_ = false;
  std::optional<base::Clock::time_point> heard_at_;
  // While partitions come and go the long poll is kept short, so that newcomers do not wait it out.
  base::Clock::time_point changed_at_{};
  std::chrono::milliseconds idle_backoff_{};
  std::uint64_t bytes_received_ = 0;
};

}  // namespace mirror
