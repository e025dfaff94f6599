// One client connection: a loop that reads a request, waits for its answer and writes it. Kafka
// itself takes the next request of a connection only after the answer to the last; so does the
// loop, but for Produce requests: those that came together are handled and answered together, and
// when their answers wait for the disk, these are owed, and a second loop writes them in order.
// Belongs to one shard for life.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "broker/byte_budget.h"
#include "broker/handler.h"
#include "broker/request_buffer.h"
#include "broker/wake_signal.h"
#include "protocol/base/clock.h"

namespace broker {

class FaultLog;

class Connection {
 public:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                                  boost::asio::io_context::executor_type>;

  Connection(Broker& broker, Shard& shard, Socket socket, ConnectionInfo info, FaultLog& faults);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Ends when the peer leaves, breaks the protocol, or close() is called.
  boost::asio::awaitable<void> serve();
  // The pending socket operation fails and the loop ends.
  void close();
  // Ends the connection as soon as the request under way, if any, is answered.
  void close_when_idle();
  // Closes what is past its deadline, gives back what has not been used for long.
  void sweep(base::Clock::time_point now);

 private:
  // muted: over a quota, not read for a while.
  enum class State { waiting, receiving, working, muted };
  // What the request under way is charged to, if the client has quotas.
  struct Charges;

  static base::Clock::time_point transfer_deadline(std::uint64_t bytes);

  boost::asio::awaitable<bool> receive();
  boost::asio::awaitable<bool> read_some();
  bool is_allowed(std::int32_t announced);
  void read_further_ahead();
  std::optional<Request> next_request();
  bool another_follows(std::int16_t api_key);
  boost::asio::awaitable<bool> handle();
  boost::asio::awaitable<bool> handle_together(TogetherHandler handler, Request first);
  void report_malformed(std::int16_t api_key, std::int16_t api_version);
  boost::asio::awaitable<bool> answer(Response response, Charges& charges);
  void owe(Response response, const protocol::RequestHeader& of);
  boost::asio::awaitable<void> pay();
  boost::asio::awaitable<bool> pay_next();
  boost::asio::awaitable<void> until_owed_at_most(std::size_t count);
  void request_done();
  void drop_buffer();
  Charges charges_for(const Request& request) const;
  boost::asio::awaitable<Response> run(Handler handler, Request request, Charges& charges);
  boost::asio::awaitable<std::chrono::milliseconds> charge(Charges& charges,
                                                           const Response& response);
  boost::asio::awaitable<void> mute(std::chrono::milliseconds time);
  boost::asio::awaitable<bool> send(const Response& response);
  boost::asio::awaitable<bool> send_all(const std::vector<Response>& responses);
  boost::asio::awaitable<bool> send_assembled(const Response& response, std::size_t total);
  boost::asio::awaitable<bool> send_bytes(base::Bytes first, base::Bytes second, bool more);
  boost::asio::awaitable<bool> send_file(const storage::FileSlice& slice);
  void enter(State state, std::uint64_t bytes = 0);
  bool between_requests() const;

  Broker& broker_;
  Shard& shard_;
  Socket socket_;
  base::Timer mute_timer_;
  ConnectionInfo info_;
  FaultLog& faults_;
  State state_ = State::waiting;
  bool closing_ = false;
  base::Clock::time_point deadline_;
  base::Clock::time_point send_deadline_ = base::Clock::time_point::max();
  // Answers that are not written yet; the first is being seen to by pay().
  struct Owed {
    Response response;
    std::int16_t api_key = 0, api_version = 0;
  };
  std::deque<Owed> owed_;
  Signal paid_;
  base::Clock::time_point last_request_;
  RequestBuffer input_;
  bool give_back_ = false;  // the read that is under way was ended to drop the buffer
  std::size_t size_ = 0;    // of the request under way
  ByteBudget::Share share_;
  ByteBudget::Share kept_;  // of the buffer, between requests; without it nothing is read ahead
};

}  // namespace broker
