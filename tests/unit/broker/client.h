// A blocking client of one connection, and a broker in this process to talk to.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "protocol/base/bytes.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/header.h"
#include "protocol/wire.h"

namespace broker::test {

constexpr int socket_timeout_s = 20;

class Socket {
 public:
  // `from`: the last byte of the address of this side, 127.0.0.1 and so on.
  explicit Socket(std::uint16_t port, unsigned char from = 1)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    timeval timeout{socket_timeout_s, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }

  // False when the peer has closed.
  bool send(base::Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool receive(base::MutableBytes into) {
    while (!into.empty()) {
      const ssize_t n = ::recv(fd_, into.data(), into.size(), 0);
      if (n <= 0) return false;
      into = into.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool is_closed_by_peer() {
    std::byte one{};
    return ::recv(fd_, &one, 1, 0) <= 0 && errno != EAGAIN;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

inline base::Buffer framed(base::Bytes request) {
  base::Buffer out(4);
  protocol::store_be<std::int32_t>(out.data(), static_cast<std::int32_t>(request.size()));
  out.insert(out.end(), request.begin(), request.end());
  return out;
}

template <class Request>
base::Buffer encode_request(std::int16_t version, const Request& request,
                            std::int32_t correlation_id = 7) {
  base::Buffer out;
  protocol::Writer writer(out);
  protocol::RequestHeader header;
  header.api_key = static_cast<std::int16_t>(Request::api_key);
  header.api_version = version;
  header.correlation_id = correlation_id;
  header.client_id = "test";
  protocol::encode(writer, header);
  encode(writer, version, request);
  return framed(out);
}

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(port) {}
  Socket& socket() { return socket_; }

  // The bytes of one answer, without its size; empty when the peer closed.
  base::Buffer receive() {
    std::byte prefix[4];
    if (!socket_.receive(prefix)) return {};
    base::Buffer answer(static_cast<std::size_t>(protocol::load_be<std::int32_t>(prefix)));
    if (!socket_.receive(answer)) return {};
    return answer;
  }

  // The answer's bytes fields borrow from this client until its next call.
  template <class Response, class Request>
  Response call(std::int16_t version, const Request& request) {
    REQUIRE(socket_.send(encode_request(version, request)));
    answer_ = receive();
    REQUIRE(!answer_.empty());
    protocol::ResponseHeader header;
    base::Bytes body;
    REQUIRE(protocol::decode(answer_, Request::api_key, version, header, body));
    REQUIRE(header.correlation_id == 7);
    Response response;
    REQUIRE(decode(body, version, response));
    return response;
  }

 private:
  Socket socket_;
  base::Buffer answer_;
};

// A directory that goes away with it.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "calque-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Config config_for(const std::string& directory, std::vector<std::string> overrides = {}) {
  overrides.insert(
      overrides.begin(),
      {"node.id=1", "log.dirs=" + directory, "listeners=PLAINTEXT://127.0.0.1:0", "calque.shards=2",
       "mirror.state.topic.num.partitions=2", "calque.disk.reserve.bytes=0"});
  return Config::load("", overrides, {});
}

class Running {
 public:
  explicit Running(const Directory& directory, std::vector<std::string> overrides = {},
                   storage::FileSystem& files = storage::posix_file_system())
      : broker_(
            std::make_unique<Broker>(config_for(directory.path(), std::move(overrides)), files)) {
    const auto problem = broker_->start();
    INFO(problem.value_or(""));
    REQUIRE(!problem);
  }
  ~Running() { broker_->stop(); }

  Broker& operator*() { return *broker_; }
  Broker* operator->() { return broker_.get(); }
  std::uint16_t port() const { return broker_->bound_port("PLAINTEXT"); }

  // Runs a coroutine of the broker's on shard 0 and waits for it.
  template <class F>
  auto run(F f) {
    return boost::asio::co_spawn(broker_->shard(0).executor(), std::move(f),
                                 boost::asio::use_future)
        .get();
  }
  TopicPtr create(const std::string& name, std::int32_t partitions = 1,
                  std::map<std::string, std::string> configs = {}) {
    NewTopic topic;
    topic.name = name;
    topic.partitions = partitions;
    topic.configs = std::move(configs);
    auto made = run([this, &topic] { return broker_->catalog().create_topic(topic); });
    REQUIRE(made.has_value());
    return *made;
  }

 private:
  std::unique_ptr<Broker> broker_;
};

// A batch with these values, as a producer without idempotence sends it.
inline base::Buffer batch_of(const std::vector<std::string>& values,
                             protocol::BatchOptions options = {},
                             std::int64_t timestamp_ms = 1'000) {
  protocol::BatchBuilder builder(options);
  for (const std::string& value : values)
    builder.add(timestamp_ms++, std::nullopt, base::as_bytes(value));
  return std::move(builder).build();
}

}  // namespace broker::test
