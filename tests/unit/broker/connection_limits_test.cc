// How many connections there may be, and how fast they may come.
#include <memory>
#include <string>
#include <thread>

#include "broker/address_counts.h"
#include "protocol/messages/metadata.gen.h"
#include "tests/unit/broker/client.h"

namespace broker::test {

TEST_CASE("connections beyond max.connections are closed, idle ones after their time") {
  Directory directory;
  Running broker(directory, {"max.connections=2", "connections.max.idle.ms=1500"});
  Client first(broker.port());
  Client second(broker.port());
  protocol::MetadataRequest asked;
  asked.topics.reset();
  first.call<protocol::MetadataResponse>(1, asked);
  second.call<protocol::MetadataResponse>(1, asked);
  Socket third(broker.port());
  CHECK(third.is_closed_by_peer());
  CHECK(first.socket().is_closed_by_peer());
  CHECK(second.socket().is_closed_by_peer());
  // Their places are free again, once the broker has seen to it.
  for (int i = 0; i < 100 && broker->catalog().snapshot(); ++i) {
    Socket again(broker.port());
    again.send(encode_request(1, asked));
    std::byte prefix[4];
    if (again.receive(prefix)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  FAIL("no connection was let in again");
}

TEST_CASE("connections beyond max.connection.creation.rate wait, and all are let in") {
  Directory directory;
  // What a window of one second allows comes at once, the rest at the rate.
  Running broker(directory, {"max.connection.creation.rate=10", "quota.window.num=2"});
  const auto began = base::Clock::now();
  std::vector<std::unique_ptr<Client>> clients;
  protocol::MetadataRequest asked;
  asked.topics.reset();
  const base::Buffer request = encode_request(1, asked);
  for (int i = 0; i < 25; ++i) {
    clients.push_back(std::make_unique<Client>(broker.port()));
    REQUIRE(clients.back()->socket().send(request));
  }
  for (const auto& one : clients) REQUIRE_FALSE(one->receive().empty());
  CHECK(base::Clock::now() - began > std::chrono::milliseconds(1'300));
}

TEST_CASE("a stop does not wait for connections that wait for their turn") {
  Directory directory;
  auto broker = std::make_unique<Running>(
      directory, std::vector<std::string>{"max.connection.creation.rate=1", "quota.window.num=2",
                                          "quota.window.size.seconds=30"});
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < 40; ++i) sockets.push_back(std::make_unique<Socket>(broker->port()));
  const auto began = base::Clock::now();
  broker.reset();
  CHECK(base::Clock::now() - began < std::chrono::seconds(4));
}

TEST_CASE("an address has max.connections.per.ip connections, others have theirs") {
  Directory directory;
  Running broker(directory, {"max.connections.per.ip=3"});
  protocol::MetadataRequest asked;
  asked.topics.reset();
  const auto is_let_in = [&](Socket& socket) {
    std::byte prefix[4];
    return socket.send(encode_request(1, asked)) && socket.receive(prefix);
  };
  std::vector<std::unique_ptr<Socket>> all;
  for (unsigned char from = 1; from <= 3; ++from)
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Socket>(broker.port(), from));
      CHECK(is_let_in(*all.back()));
    }
  Socket fourth(broker.port(), 2);
  CHECK(fourth.is_closed_by_peer());
  // A place that becomes free is given to the next, and the limit changes at run time.
  all.erase(all.begin() + 3);
  bool again = false;
  for (int i = 0; i < 100 && !again; ++i) {
    Socket next(broker.port(), 2);
    again = is_let_in(next);
    if (!again) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(again);
  const auto raised = [](const ConfigValues&) -> std::optional<ConfigValues> {
    return ConfigValues{{"max.connections.per.ip", "5"}};
  };
  REQUIRE(broker.run([&] { return broker->catalog().alter_broker(false, raised); }).has_value());
  Socket more(broker.port(), 1);
  CHECK(is_let_in(more));
  // Single addresses may have limits of their own.
  const auto overridden = [](const ConfigValues&) -> std::optional<ConfigValues> {
    return ConfigValues{{"max.connections.per.ip", "5"},
                        {"max.connections.per.ip.overrides", "127.0.0.3:3,127.0.0.4:1"}};
  };
  REQUIRE(
      broker.run([&] { return broker->catalog().alter_broker(false, overridden); }).has_value());
  CHECK(Socket(broker.port(), 3).is_closed_by_peer());
  Socket alone(broker.port(), 4);
  CHECK(is_let_in(alone));
  CHECK(Socket(broker.port(), 4).is_closed_by_peer());
  Socket fifth(broker.port(), 1);
  CHECK(is_let_in(fifth));
}

TEST_CASE("limits of single addresses are read, and what is none is refused") {
  const auto limits = parse_address_limits(" 10.0.0.1:5, ::1:7,[2001:db8::1]:0,::ffff:10.0.0.2:9,");
  REQUIRE(limits);
  const auto of = [&](const char* text) { return limits->at(boost::asio::ip::make_address(text)); };
  CHECK(limits->size() == 4);
  CHECK(of("10.0.0.1") == 5);
  CHECK(of("::1") == 7);
  CHECK(of("2001:db8::1") == 0);
  CHECK(of("10.0.0.2") == 9);
  CHECK(parse_address_limits("")->empty());
  for (const char* bad : {"10.0.0.1", "10.0.0.1:", "10.0.0.1:-1", "10.0.0.1:5x", "host:5", ":5",
                          "10.0.0.1:99999999999"})
    CHECK_FALSE(parse_address_limits(bad));
  const Setting* const setting = find_setting("max.connections.per.ip.overrides");
  CHECK(value_problem(*setting, "host:5").has_value());
  CHECK_FALSE(value_problem(*setting, "10.0.0.1:5").has_value());
}

TEST_CASE("addresses are counted by client, whatever the family of the listener") {
  AddressCounts counts;
  const auto v4 = boost::asio::ip::make_address("10.0.0.1");
  const auto mapped = boost::asio::ip::make_address("::ffff:10.0.0.1");
  const auto v6 = boost::asio::ip::make_address("2001:db8::1");
  CHECK_FALSE(counts.add(v4, 0));
  CHECK(counts.addresses() == 0);
  CHECK(counts.add(v4, 2));
  CHECK(counts.add(mapped, 2));
  CHECK_FALSE(counts.add(v4, 2));
  CHECK(counts.add(v6, 1));
  CHECK(counts.addresses() == 2);
  counts.remove(v4);
  CHECK(counts.add(mapped, 2));
  counts.remove(mapped);
  counts.remove(v4);
  counts.remove(v6);
  CHECK(counts.addresses() == 0);
}

}  // namespace broker::test
