#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>
#include <vector>

#include "mirror/source_error.h"
#include "mirror/stream.h"

namespace mirror {
namespace {

using boost::asio::ip::tcp;
constexpr auto nothrow = boost::asio::as_tuple(boost::asio::use_awaitable);

class TcpStream final : public Stream {
 public:
  explicit TcpStream(tcp::socket socket) : socket_(std::move(socket)) {}

  boost::asio::awaitable<base::Result<std::size_t>> read_some(base::MutableBytes into) override {
    const auto buffer = boost::asio::buffer(into.data(), into.size());
    const auto [error, n] = co_await socket_.async_read_some(buffer, nothrow);
    if (error) co_return error;
    co_return n;
  }

  boost::asio::awaitable<base::Result<void>> write(base::Bytes bytes) override {
    const auto buffer = boost::asio::buffer(bytes.data(), bytes.size());
    const auto [error, n] = co_await boost::asio::async_write(socket_, buffer, nothrow);
    if (error) co_return error;
    co_return boost::system::in_place_value;
  }

  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  tcp::socket socket_;
};

// Ends what is under way when the time is over. Its handler may already be queued when this object
// goes, hence the shared state.
class StreamDeadline {
 public:
  StreamDeadline(const boost::asio::any_io_executor& executor, base::Clock::duration timeout,
                 tcp::resolver& resolver, tcp::socket& socket)
      : timer_(executor) {
    timer_.expires_after(timeout);
    timer_.async_wait([&resolver, &socket, state = state_](boost::system::error_code error) {
      if (error || state->over) return;
      state->passed = true;
      resolver.cancel();
      boost::system::error_code ignored;
      socket.close(ignored);
    });
  }
  ~StreamDeadline() { state_->over = true; }
  StreamDeadline(const StreamDeadline&) = delete;
  StreamDeadline& operator=(const StreamDeadline&) = delete;
  bool passed() const { return state_->passed; }

 private:
  struct State {
    bool passed = false, over = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  base::Timer timer_;
};

boost::asio::awaitable<base::Result<std::vector<tcp::endpoint>>> resolve(tcp::resolver& resolver,
                                                                         std::string host,
                                                                         std::uint16_t port) {
  boost::system::error_code not_numeric;
  const auto address = boost::asio::ip::make_address(host, not_numeric);
  std::vector<tcp::endpoint> endpoints;
  if (!not_numeric) {  // no thread for the resolver in the common case
    endpoints.emplace_back(address, port);
    co_return endpoints;
  }
  const auto [error, found] = co_await resolver.async_resolve(host, std::to_string(port), nothrow);
  if (error) co_return error;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

}  // namespace

boost::asio::awaitable<base::Result<std::unique_ptr<Stream>>> connect_stream(
    boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
    base::Clock::duration timeout) {
  tcp::resolver resolver(executor);
  tcp::socket socket(executor);
  StreamDeadline deadline(executor, timeout, resolver, socket);
  auto endpoints = co_await resolve(resolver, std::move(host), port);
  if (deadline.passed()) co_return SourceErrc::timed_out;
  if (!endpoints) co_return endpoints.error();
  const auto [error, endpoint] = co_await boost::asio::async_connect(socket, *endpoints, nothrow);
  if (deadline.passed()) co_return SourceErrc::timed_out;
  if (error) co_return error;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  std::unique_ptr<Stream> stream = std::make_unique<TcpStream>(std::move(socket));
  co_return stream;
}

}  // namespace mirror
