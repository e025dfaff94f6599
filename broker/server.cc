#include "broker/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <limits>
#include <thread>
#include <utility>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "protocol/base/log.h"

namespace broker {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr auto no_exceptions = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds accept_pause = 100ms;

spdlog::logger& server_log() {
  return base::logger("server");
}

std::string text_of(const tcp::endpoint& peer) {
  return fmt::format("{}:{}", peer.address().to_string(), peer.port());
}

void log_failure(const char* what, const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    server_log().error("{} ended by an exception: {}", what, e.what());
  }
}

}  // namespace

Server::Server(Broker& broker) : broker_(broker) {
  for (std::size_t i = 0; i < broker_.shard_count(); ++i)
    of_shards_.push_back(std::make_unique<OfShard>());
}

Server::~Server() = default;

std::optional<std::string> Server::bind(const std::string& name, const std::string& host,
                                        std::uint16_t port) {
  Shard& shard = broker_.shard(0);
  boost::system::error_code error;
  tcp::endpoint endpoint(tcp::v4(), port);
  if (!host.empty()) {
    asio::ip::tcp::resolver resolver(shard.io());
    const auto found = resolver.resolve(host, std::to_string(port), error);
    if (error || found.empty())
      return fmt::format(
          "listeners: the host '{}' is not known ({}): write an address of this "
          "machine",
          host, error.message());
    endpoint = found.begin()->endpoint();
  }
  auto listener = std::make_unique<Listener>(Listener{name, port, Acceptor(shard.executor())});
  Acceptor& acceptor = listener->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error)
    acceptor.listen(static_cast<int>(broker_.config().integer("socket.listen.backlog.size")),
                    error);
  if (error)
    return fmt::format(
        "listeners: {}://{} cannot be listened on ({}): stop who uses it or choose "
        "another address",
        name, text_of(endpoint), error.message());
  listener->port = acceptor.local_endpoint(error).port();
  listeners_.push_back(std::move(listener));
  return std::nullopt;
}

std::optional<std::string> Server::start() {
  for (const Endpoint& one : broker_.config().listeners())
    if (auto problem = bind(one.listener, one.host, one.port)) return problem;
  for (const auto& one : listeners_) {
    ++loops_;
    asio::co_spawn(broker_.shard(0).executor(), accept_loop(one.get()),
                   [this](std::exception_ptr failure) {
                     log_failure("a listener", failure);
                     --loops_;
                   });
  }
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    ++loops_;
    Shard* const shard = &broker_.shard(i);
    asio::co_spawn(shard->executor(), sweep_loop(shard), [this](std::exception_ptr failure) {
      log_failure("the sweep of connections", failure);
      --loops_;
    });
  }
  return std::nullopt;
}

asio::awaitable<void> Server::accept_loop(Listener* listener) {
  base::Timer pause(co_await asio::this_coro::executor);
  while (listener->acceptor.is_open()) {
    Shard* const shard = &broker_.shard(next_shard_);
    auto [error, socket] =
        co_await listener->acceptor.async_accept(shard->executor(), no_exceptions);
    if (!listener->acceptor.is_open()) break;
    if (error) {
      // Out of descriptors, as a rule: going on at once would only spin.
      server_log().error("accepting a connection failed: {}", error.message());
      pause.expires_after(accept_pause);
      co_await pause.async_wait(no_exceptions);
      continue;
    }
    co_await await_turn();
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error || !admit(*listener, peer)) continue;  // the socket closes
    next_shard_ = (next_shard_ + 1) % broker_.shard_count();
    count_.fetch_add(1, std::memory_order_relaxed);
    asio::co_spawn(shard->executor(), run_connection(shard, std::move(socket), listener->name),
                   [this, address = peer.address()](std::exception_ptr failure) {
                     log_failure("a connection", failure);
                     addresses_.remove(address);
                     count_.fetch_sub(1, std::memory_order_relaxed);
                   });
  }
}

// Those that come meanwhile wait in the listener's backlog. A stop ends the wait.
asio::awaitable<void> Server::await_turn() {
  Shard& shard = broker_.shard(0);
  const SnapshotPtr catalog = broker_.catalog().snapshot();
  const std::int64_t rate = catalog->config().integer("max.connection.creation.rate");
  if (rate == std::numeric_limits<std::int32_t>::max()) co_return;
  const std::chrono::duration<double> size(broker_.config().integer("quota.window.size.seconds"));
  const auto windows = std::max<std::int64_t>(1, broker_.config().integer("quota.window.num") - 1);
  const auto now = base::Clock::now();
  creations_.settle(static_cast<double>(rate), size * windows, now);
  creations_.take(1);
  // Nobody waits longer than a window, as in Kafka, however far the rate was exceeded.
  const auto wait = std::min(creations_.debt(), size);
  const auto until = now + std::chrono::duration_cast<base::Clock::duration>(wait);
  if (until > now) ++waited_;
  if (waited_ > 0 && now >= waits_quiet_until_) {
    waits_quiet_until_ = now + connection_wait_log_interval;
    server_log().warn("connections come faster than max.connection.creation.rate={}: {} waited",
                      rate, std::exchange(waited_, 0));
  }
  while (!shard.stopping() && base::Clock::now() < until) co_await shard.stop_signal().wait(until);
}

// The limits may have been changed meanwhile; the acceptors run on shard 0.
bool Server::admit(const Listener& listener, const tcp::endpoint& peer) {
  const SnapshotPtr catalog = broker_.catalog().snapshot();
  const auto limit = [&](std::string_view name) {
    return static_cast<std::size_t>(catalog->config().integer(name));
  };
  FaultLog& faults = of_shards_[0]->faults;
  if (count_.load(std::memory_order_relaxed) >= limit("max.connections")) {
    faults.report(listener.name, "there are max.connections connections already");
    return false;
  }
  std::size_t most = limit("max.connections.per.ip");
  if (const std::string set = catalog->config().text("max.connections.per.ip.overrides");
      !set.empty()) {
    const auto overrides = parse_address_limits(set);
    const auto own = overrides->find(plain(peer.address()));
    if (own != overrides->end()) most = own->second;
  }
  if (!addresses_.add(peer.address(), most)) {
    faults.report(peer.address().to_string(), "has max.connections.per.ip connections already");
    return false;
  }
  return true;
}

asio::awaitable<void> Server::run_connection(Shard* shard, Connection::Socket socket,
                                             std::string listener) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) co_return;  // gone already
  socket.set_option(tcp::no_delay(true), error);
  socket.native_non_blocking(true, error);
  if (error) co_return;
  ConnectionInfo info;
  info.listener = std::move(listener);
  info.peer = text_of(peer);
  OfShard& mine = *of_shards_[shard->index()];
  Connection connection(broker_, *shard, std::move(socket), std::move(info), mine.faults);
  struct Entry {
    std::unordered_set<Connection*>& all;
    Connection* one;
    ~Entry() { all.erase(one); }
  };
  mine.connections.insert(&connection);
  const Entry entry{mine.connections, &connection};
  if (shard->stopping()) co_return;
  co_await connection.serve();
}

asio::awaitable<void> Server::sweep_loop(Shard* shard) {
  OfShard& mine = *of_shards_[shard->index()];
  while (!shard->stopping()) {
    co_await shard->stop_signal().wait(base::Clock::now() + sweep_interval);
    const auto now = base::Clock::now();
    for (Connection* one : mine.connections) one->sweep(now);
  }
}

template <class F>
void Server::on_every_connection(F f) {
  for (std::size_t i = 0; i < broker_.shard_count(); ++i) {
    OfShard* const mine = of_shards_[i].get();
    asio::post(broker_.shard(i).executor(), [mine, f] {
      for (Connection* one : mine->connections) f(*one);
    });
  }
}

bool Server::wait_until_empty(base::Clock::duration patience) const {
  const auto deadline = base::Clock::now() + patience;
  while (count_.load() > 0 || loops_.load() > 0) {
    if (base::Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

bool Server::stop() {
  asio::post(broker_.shard(0).executor(), [this] {
    for (const auto& one : listeners_) {
      boost::system::error_code ignored;
      one->acceptor.close(ignored);
    }
  });
  on_every_connection([](Connection& one) { one.close_when_idle(); });
  if (wait_until_empty(drain_max)) return true;
  server_log().warn("{} connections are closed in the middle of a request", connection_count());
  on_every_connection([](Connection& one) { one.close(); });
  return wait_until_empty(drain_max);
}

std::uint16_t Server::port(std::string_view listener) const {
  for (const auto& one : listeners_)
    if (one->name == listener) return one->port;
  return 0;
}

}  // namespace broker
