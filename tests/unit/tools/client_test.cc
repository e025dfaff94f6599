// The client against a scripted peer on the loopback address.
#include "tools/client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "protocol/big_endian.h"
#include "protocol/header.h"
#include "protocol/messages/api_versions.gen.h"
#include "protocol/messages/create_topics.gen.h"
#include "protocol/messages/delete_topics.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "tools/topic_commands.h"

namespace {

using protocol::ApiKey;

base::Buffer receive(int descriptor, std::size_t size) {
  base::Buffer bytes(size);
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = recv(descriptor, bytes.data() + got, size - got, 0);
    if (n <= 0) return {};
    got += static_cast<std::size_t>(n);
  }
  return bytes;
}

// Accepts one connection and answers each request with what `answer` gives, header and body
// without the size; an empty answer hangs up.
class Peer {
 public:
  using Answer = std::function<base::Buffer(const protocol::RequestHeader&, base::Bytes body)>;

  explicit Peer(Answer answer) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener_, 1) == 0);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~Peer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::vector<tools::Address> address() const { return {{"127.0.0.1", port_}}; }

 private:
  void serve(const Answer& answer) {
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    while (true) {
      const base::Buffer prefix = receive(connection, 4);
      if (prefix.empty()) break;
      const auto request = receive(
          connection, static_cast<std::size_t>(protocol::load_be<std::int32_t>(prefix.data())));
      protocol::RequestHeader header;
      base::Bytes body;
      if (request.empty() || !protocol::decode(request, header, body)) break;
      base::Buffer reply = answer(header, body);
      if (reply.empty()) break;
      base::Buffer framed(4);
      protocol::store_be(framed.data(), static_cast<std::int32_t>(reply.size()));
      framed.insert(framed.end(), reply.begin(), reply.end());
      send(connection, framed.data(), framed.size(), MSG_NOSIGNAL);
    }
    close(connection);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

template <class Message>
base::Buffer reply(const protocol::RequestHeader& header, std::int16_t version,
                   const Message& message) {
  base::Buffer bytes;
  protocol::Writer writer(bytes);
  protocol::encode(writer, Message::api_key, version,
                   protocol::ResponseHeader{header.correlation_id});
  encode(writer, version, message);
  return bytes;
}

base::Buffer versions(const protocol::RequestHeader& header,
                      std::vector<protocol::ApiVersionsResponse::ApiKey> keys,
                      std::int16_t error = 0) {
  protocol::ApiVersionsResponse response;
  response.error_code = error;
  response.api_keys = std::move(keys);
  return reply(header, error == 0 ? header.api_version : std::int16_t{0}, response);
}

constexpr std::int16_t api_versions_key = static_cast<std::int16_t>(ApiKey::api_versions);
constexpr std::int16_t delete_topics_key = static_cast<std::int16_t>(ApiKey::delete_topics);

std::string failure(const std::function<void()>& run, tools::ExitCode code) {
  try {
    run();
  } catch (const tools::Failure& failed) {
    CHECK(failed.code() == code);
    return failed.what();
  }
  return "no failure";
}

}  // namespace

TEST_CASE("the highest version that both speak is used", "[tools]") {
  std::vector<std::int16_t> seen;
  const Peer peer([&](const protocol::RequestHeader& header, base::Bytes body) {
    CHECK(header.client_id == "calque");
    if (header.api_key == api_versions_key) return versions(header, {{delete_topics_key, 1, 5}});
    protocol::DeleteTopicsRequest request;
    CHECK(protocol::decode(body, header.api_version, request));
    CHECK(request.topic_names == std::vector<std::string>{"t"});
    seen.push_back(header.api_version);
    protocol::DeleteTopicsResponse response;
    response.responses.resize(1);
    response.responses[0].name = "t";
    return reply(header, header.api_version, response);
  });
  tools::Client client(peer.address(), "bootstrap-server");
  CHECK(client.serves(ApiKey::delete_topics, 5));
  CHECK_FALSE(client.serves(ApiKey::delete_topics, 6));
  protocol::DeleteTopicsRequest request;
  request.topic_names = {"t"};
  const auto response = client.call<protocol::DeleteTopicsResponse>(request);
  REQUIRE(response.responses.size() == 1);
  CHECK(response.responses[0].name == "t");
  client.call<protocol::DeleteTopicsResponse>(request, 3);
  CHECK(seen == std::vector<std::int16_t>{5, 3});
}

TEST_CASE("an old broker is asked again in version 0", "[tools]") {
  // As 2.1 does: version 0, UNSUPPORTED_VERSION, no keys.
  const Peer peer([](const protocol::RequestHeader& header, base::Bytes) {
    return header.api_version == 3 ? versions(header, {}, 35)
                                   : versions(header, {{delete_topics_key, 0, 3}});
  });
  const tools::Client client(peer.address(), "bootstrap-server");
  CHECK(client.version<protocol::DeleteTopicsRequest>() == 3);
}

TEST_CASE("a broker that lacks an API gets a sentence", "[tools]") {
  const Peer peer([](const protocol::RequestHeader& header, base::Bytes) {
    return versions(header, {{delete_topics_key, 7, 9}});
  });
  tools::Client client(peer.address(), "source");
  using Catch::Matchers::Contains;
  CHECK_THAT(
      failure([&] { client.version<protocol::DeleteTopicsRequest>(); }, tools::ExitCode::failed),
      Contains("does not serve DeleteTopics in a version from 1 to 6") &&
          Contains("--source HOST:PORT"));
}

TEST_CASE("a peer that hangs up, lies or talks something else", "[tools]") {
  using Catch::Matchers::Contains;
  const auto connect_to = [](const Peer& peer) {
    return [&peer] { tools::Client(peer.address(), "bootstrap-server"); };
  };
  const Peer silent([](const protocol::RequestHeader&, base::Bytes) { return base::Buffer(); });
  CHECK_THAT(failure(connect_to(silent), tools::ExitCode::unreachable),
             Contains("the connection was closed by the other side"));
  const Peer stranger([](const protocol::RequestHeader& header, base::Bytes) {
    base::Buffer bytes = versions(header, {});
    bytes.resize(bytes.size() - 1);
    return bytes;
  });
  CHECK_THAT(failure(connect_to(stranger), tools::ExitCode::failed),
             Contains("is not one of Kafka's protocol"));
  const Peer confused([](const protocol::RequestHeader& header, base::Bytes) {
    protocol::RequestHeader other = header;
    other.correlation_id += 1;
    return versions(other, {});
  });
  CHECK_THAT(failure(connect_to(confused), tools::ExitCode::unreachable),
             Contains("belongs to another request"));
  const Peer short_answer(
      [](const protocol::RequestHeader&, base::Bytes) { return base::Buffer(2); });
  CHECK_THAT(failure(connect_to(short_answer), tools::ExitCode::failed),
             Contains("is not one of Kafka's protocol"));
}

TEST_CASE("the next address is tried, and all failures are told", "[tools]") {
  const Peer peer([](const protocol::RequestHeader& header, base::Bytes) {
    return versions(header, {{delete_topics_key, 1, 6}});
  });
  std::vector<tools::Address> addresses{{"127.0.0.1", 1}};
  CHECK(failure([&] { tools::Client(addresses, "source"); }, tools::ExitCode::unreachable) ==
        "cannot reach 127.0.0.1:1: connection refused; is the broker running? give another address "
        "with --source HOST:PORT");
  addresses.push_back(peer.address()[0]);
  CHECK(tools::Client(addresses, "source").address() == peer.address()[0]);
}

TEST_CASE("topics are made by the controller, which may have changed", "[tools]") {
  constexpr auto create_topics_key = static_cast<std::int16_t>(ApiKey::create_topics);
  constexpr auto metadata_key = static_cast<std::int16_t>(ApiKey::metadata);
  int controller_asked = 0, looks = 0;
  const auto created = [](const protocol::RequestHeader& header, std::int16_t error) {
    protocol::CreateTopicsResponse response;
    response.topics.resize(1);
    response.topics[0].name = "t";
    response.topics[0].error_code = error;
    return reply(header, header.api_version, response);
  };
  const std::vector<protocol::ApiVersionsResponse::ApiKey> keys = {{create_topics_key, 2, 2},
                                                                   {metadata_key, 1, 1}};
  const Peer controller([&](const protocol::RequestHeader& header, base::Bytes) {
    if (header.api_key == api_versions_key) return versions(header, keys);
    ++controller_asked;
    return created(header, 0);
  });
  const Peer bootstrap([&](const protocol::RequestHeader& header, base::Bytes) {
    if (header.api_key == api_versions_key) return versions(header, keys);
    if (header.api_key == create_topics_key) return created(header, 41);  // NOT_CONTROLLER
    protocol::MetadataResponse response;
    response.brokers.resize(1);
    response.brokers[0].node_id = 2;
    response.brokers[0].host = "127.0.0.1";
    response.brokers[0].port = controller.address()[0].port;
    response.controller_id = ++looks == 1 ? -1 : 2;
    return reply(header, header.api_version, response);
  });
  tools::Cluster cluster(bootstrap.address(), "bootstrap-server");
  tools::create_topic(cluster, "t", 1, {});
  CHECK(looks == 2);
  CHECK(controller_asked == 1);
}

TEST_CASE("error numbers have names, except where the mirror's collide", "[tools]") {
  CHECK(tools::error_text(3) == "UNKNOWN_TOPIC_OR_PARTITION");
  CHECK(tools::error_text(3, "no such topic") == "no such topic");
  CHECK(tools::error_text(137) == "error 137");
}
