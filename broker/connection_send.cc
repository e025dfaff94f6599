// How a connection writes its answers: small ones in one call, large regions of files without a
// copy.
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <limits>
#include <memory>

#include "broker/bounds.h"
#include "broker/connection.h"
#include "protocol/base/check.h"
#include "protocol/big_endian.h"

namespace broker {

namespace asio = boost::asio;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

iovec as_iovec(base::Bytes bytes) {
  // sendmsg() does not write through it.
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

asio::awaitable<bool> Connection::send(const Response& response) {
  const std::uint64_t total = response.size_bytes();
  if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) co_return false;
  send_deadline_ = transfer_deadline(total);
  if (!response.slices.empty() && total <= assembled_bytes_max)
    co_return co_await send_assembled(response, static_cast<std::size_t>(total));
  std::array<std::byte, 4> prefix{};
  protocol::store_be<std::int32_t>(prefix.data(), static_cast<std::int32_t>(total));

  const base::Bytes all = response.bytes;
  base::Bytes before = prefix;
  std::size_t sent = 0;
  for (std::size_t i = 0; i < response.slices.size(); ++i) {
    const std::size_t until = response.splices[i].offset;
    if (!co_await send_bytes(before, all.subspan(sent, until - sent), true)) co_return false;
    before = base::Bytes();
    sent = until;
    if (!co_await send_file(response.slices[i])) co_return false;
  }
  if (!co_await send_bytes(before, all.subspan(sent), false)) co_return false;
  send_deadline_ = base::Clock::time_point::max();
  co_return true;
}

// Copies a small answer together: one call instead of two and one for each region of a file.
asio::awaitable<bool> Connection::send_assembled(const Response& response, std::size_t total) {
  const auto whole =
      std::make_unique_for_overwrite<std::byte[]>(RequestBuffer::prefix_bytes + total);
  std::byte* to = whole.get();
  protocol::store_be<std::int32_t>(to, static_cast<std::int32_t>(total));
  to += RequestBuffer::prefix_bytes;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < response.slices.size(); ++i) {
    const storage::FileSlice& slice = response.slices[i];
    const std::size_t until = response.splices[i].offset;
    to = std::copy_n(response.bytes.data() + copied, until - copied, to);
    copied = until;
    // Nothing was sent yet, but a file that was cut meanwhile is no error that a client knows.
    if (slice.file->pread({to, slice.size}, slice.position).has_error()) co_return false;
    to += slice.size;
  }
  to = std::copy_n(response.bytes.data() + copied, response.bytes.size() - copied, to);
  const base::Bytes all(whole.get(), to);
  if (!co_await send_bytes(all, base::Bytes(), false)) co_return false;
  send_deadline_ = base::Clock::time_point::max();
  co_return true;
}

// In as few pieces as it goes: each costs a system call, and wakes the peer.
asio::awaitable<bool> Connection::send_all(const std::vector<Response>& responses) {
  if (responses.size() == 1) {
    const Response& only = responses.front();
    co_return only.none || co_await send(only);
  }
  base::Buffer all;
  for (const Response& one : responses) {
    if (one.none) continue;
    CHECK(one.slices.empty());
    const std::size_t at = all.size();
    all.resize(at + RequestBuffer::prefix_bytes);
    protocol::store_be<std::int32_t>(all.data() + at, static_cast<std::int32_t>(one.bytes.size()));
    all.insert(all.end(), one.bytes.begin(), one.bytes.end());
  }
  send_deadline_ = transfer_deadline(all.size());
  if (!co_await send_bytes(all, base::Bytes(), false)) co_return false;
  send_deadline_ = base::Clock::time_point::max();
  co_return true;
}

asio::awaitable<bool> Connection::send_bytes(base::Bytes first, base::Bytes second, bool more) {
  while (!first.empty() || !second.empty()) {
    std::array<iovec, 2> parts = {as_iovec(first), as_iovec(second)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, flags);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) co_return false;
      const auto [error] = co_await socket_.async_wait(Socket::wait_write, as_result);
      if (error) co_return false;
      continue;
    }
    const auto of_first = std::min(first.size(), static_cast<std::size_t>(count));
    first = first.subspan(of_first);
    second = second.subspan(static_cast<std::size_t>(count) - of_first);
  }
  co_return true;
}

asio::awaitable<bool> Connection::send_file(const storage::FileSlice& slice) {
  const int file = slice.file->descriptor();
  if (file < 0 || slice.size < sendfile_bytes_min) {
    base::Buffer copy(slice.size);
    // The file may have been cut meanwhile; the size is announced already, so only closing is left.
    if (slice.file->pread(copy, slice.position).has_error()) co_return false;
    co_return co_await send_bytes(copy, base::Bytes(), true);
  }
  auto position = static_cast<off_t>(slice.position);
  std::size_t left = slice.size;
  while (left > 0) {
    const ssize_t count = ::sendfile(socket_.native_handle(), file, &position, left);
    if (count > 0) {
      left -= static_cast<std::size_t>(count);
    } else if (count == 0) {
      co_return false;  // the file was cut meanwhile
    } else if (errno == EAGAIN) {
      const auto [error] = co_await socket_.async_wait(Socket::wait_write, as_result);
      if (error) co_return false;
    } else if (errno != EINTR) {
      co_return false;
    }
  }
  co_return true;
}

}  // namespace broker
