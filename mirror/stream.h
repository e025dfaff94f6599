// The way to a source: a byte stream, one of the seams that simulation replaces at link time (the
// product links tcp_stream.cc).
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/base/clock.h"
#include "protocol/base/result.h"

namespace mirror {

// One connection. Used on its executor's thread only; one read and one write at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte; an error at the peer's end of stream.
  virtual boost::asio::awaitable<base::Result<std::size_t>> read_some(base::MutableBytes into) = 0;
  virtual boost::asio::awaitable<base::Result<void>> write(base::Bytes bytes) = 0;
  // Reads and writes under way end with an error. May be called any number of times.
  virtual void close() = 0;
};

// Resolves and tries each address in turn, all within `timeout`.
boost::asio::awaitable<base::Result<std::unique_ptr<Stream>>> connect_stream(
    boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
    base::Clock::duration timeout);

}  // namespace mirror
