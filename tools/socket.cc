#include "tools/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "tools/interrupt.h"

namespace tools {

namespace {

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

// Waits until the socket can be read or written.
void wait_for(int descriptor, short events, Socket::Deadline deadline) {
  while (true) {
    check_interrupted();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw SocketError("no answer in time");
    pollfd entry{descriptor, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<long long>(left.count(), 60'000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw SocketError(reason(errno));
  }
}

// A connected descriptor, or the reason as a negative number.
int connect_to(const addrinfo& info, Socket::Deadline deadline) {
  const int descriptor =
      socket(info.ai_family, info.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info.ai_protocol);
  if (descriptor < 0) return -errno;
  int error = 0;
  if (connect(descriptor, info.ai_addr, info.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      try {
        wait_for(descriptor, POLLOUT, deadline);
      } catch (...) {
        close(descriptor);
        throw;
      }
      socklen_t size = sizeof error;
      getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return descriptor;
  }
  close(descriptor);
  return -error;
}

}  // namespace

Socket Socket::connect(const Address& address, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failed != 0) throw SocketError(gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  int error = ECONNREFUSED;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    const int descriptor = connect_to(*info, deadline);
    if (descriptor >= 0) return Socket(descriptor);
    error = -descriptor;
  }
  throw SocketError(reason(error));
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::send(base::Bytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(descriptor_, POLLOUT, deadline);
    } else {
      throw SocketError(reason(errno));
    }
  }
}

void Socket::receive(base::MutableBytes into, Deadline deadline) {
  while (!into.empty()) {
    const ssize_t got = recv(descriptor_, into.data(), into.size(), 0);
    if (got > 0) {
      into = into.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      throw SocketError("the connection was closed by the other side");
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(descriptor_, POLLIN, deadline);
    } else {
      throw SocketError(reason(errno));
    }
  }
}

}  // namespace tools
