// The listeners: accepts connections and gives them to the shards in turn.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "broker/address_counts.h"
#include "broker/connection.h"
#include "broker/fault_log.h"
#include "broker/quotas.h"

namespace broker {

class Server {
 public:
  explicit Server(Broker& broker);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds all listeners, then accepts; a sentence when an address is not to be had. Shards run.
  std::optional<std::string> start();
  // No new connections; those that are there end after the request under way. True when none is
  // left. Not from a shard's thread.
  bool stop();

  std::uint16_t port(std::string_view listener) const;
  std::size_t connection_count() const { return count_.load(std::memory_order_relaxed); }

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp,
                                                      boost::asio::io_context::executor_type>;
  struct Listener {
    std::string name;
    std::uint16_t port = 0;
    Acceptor acceptor;
  };
  struct OfShard {  // touched by that shard only
    std::unordered_set<Connection*> connections;
    FaultLog faults;
  };

  std::optional<std::string> bind(const std::string& name, const std::string& host,
                                  std::uint16_t port);
  boost::asio::awaitable<void> accept_loop(Listener* listener);
  // Waits while new connections come faster than max.connection.creation.rate.
  boost::asio::awaitable<void> await_turn();
  // Whether a new connection is within the limits; it is counted with its address then.
  bool admit(const Listener& listener, const boost::asio::ip::tcp::endpoint& peer);
  boost::asio::awaitable<void> run_connection(Shard* shard, Connection::Socket socket,
                                              std::string listener);
  boost::asio::awaitable<void> sweep_loop(Shard* shard);
  template <class F>
  void on_every_connection(F f);
  bool wait_until_empty(base::Clock::duration patience) const;

  Broker& broker_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<OfShard>> of_shards_;
  std::atomic<std::size_t> count_{0};
  AddressCounts addresses_;
  QuotaBucket creations_;   // shard 0, like the next two
  std::size_t waited_ = 0;  // for their turn, since that was last logged
  base::Clock::time_point waits_quiet_until_{};
  std::atomic<std::size_t> loops_{0};  // accept and sweep loops that still run
  std::size_t next_shard_ = 0;         // shard 0
};

}  // namespace broker
