// What a message costs on this machine when nobody does anything with it: the floor of `latency`.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "protocol/big_endian.h"
#include "tests/bench/kload_link.h"

namespace kload {
namespace {

constexpr std::size_t prefix_bytes = 4;

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

void echo(const Target& target, const Options& options) {
  prctl(PR_SET_TIMERSLACK, 1);
  const int ticks_a_second = std::min(options.rate, 1000);
  const int records = std::max(1, options.rate / ticks_a_second);
  const auto ticks = static_cast<std::int64_t>(options.seconds * ticks_a_second);
  base::Buffer message(prefix_bytes + static_cast<std::size_t>(records * options.record_bytes));
  protocol::store_be<std::int32_t>(message.data(),
                                   static_cast<std::int32_t>(message.size() - prefix_bytes));
  Link link(target);
  std::vector<float> latencies;
  const auto began = Clock::now();
  const auto due = [began, ticks_a_second](std::int64_t tick) {
    return began + std::chrono::nanoseconds(1'000'000'000 / ticks_a_second * tick);
  };
  std::thread answers([&] {
    for (std::int64_t i = 0; i < ticks; ++i) {
      (void)link.receive();
      latencies.push_back(std::chrono::duration<float, std::milli>(Clock::now() - due(i)).count());
    }
  });
  for (std::int64_t i = 0; i < ticks; ++i) {
    std::this_thread::sleep_until(due(i));
    link.send(message);
  }
  answers.join();
  fmt::print(R"({{"records": {}, {}}})"
             "\n",
             ticks * records, percentiles(latencies));
}

}  // namespace kload
