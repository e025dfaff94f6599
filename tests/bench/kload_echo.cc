// Sends back what comes: a broker that does nothing, for the floor of `latency`.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "protocol/big_endian.h"
#include "tests/bench/kload_link.h"

namespace kload {
namespace {

bool read_all(int from, base::MutableBytes into) {
  while (!into.empty()) {
    const ssize_t n = recv(from, into.data(), into.size(), 0);
    if (n <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

void send_back(int link) {
  base::Buffer buffer(1 << 20);
  for (;;) {
    if (!read_all(link, base::MutableBytes(buffer).first(prefix_bytes))) return;
    const auto size = static_cast<std::size_t>(protocol::load_be<std::int32_t>(buffer.data()));
    if (size > buffer.size() - prefix_bytes) die("a message that is too large to be sent back");
    if (!read_all(link, base::MutableBytes(buffer).subspan(prefix_bytes, size))) return;
    if (send(link, buffer.data(), prefix_bytes + size, MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace

void serve_echo() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    die("cannot listen");
  fmt::print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  for (;;) {
    const int link = accept(listener, nullptr, nullptr);
    if (link < 0) die("cannot accept");
    const int one = 1;
    setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    send_back(link);
    close(link);
  }
}

}  // namespace kload
