// A blocking TCP connection with deadlines, for one command at a time.
#pragma once
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "protocol/base/bytes.h"
#include "tools/address.h"

namespace tools {

// `what()` says what happened, as the end of a sentence: "connection refused".
class SocketError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Failure(interrupted) from any wait after Ctrl-C, if somebody catches Ctrl-C (interrupt.h).
class Socket {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Tries each address that the host's name stands for.
  static Socket connect(const Address& address, Deadline deadline);
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;

  void send(base::Bytes bytes, Deadline deadline);
  // Fills all of `into`.
  void receive(base::MutableBytes into, Deadline deadline);

 private:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace tools
