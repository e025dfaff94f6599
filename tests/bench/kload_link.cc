#include "tests/bench/kload_link.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "protocol/big_endian.h"
#include "protocol/messages/list_offsets.gen.h"

namespace kload {

void die(const std::string& text) {
  std::fprintf(stderr, "kload: %s\n", text.c_str());
  std::exit(1);
}

Link::Link(const Target& target) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
  const int one = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(target.port);
  if (inet_pton(AF_INET, target.host.c_str(), &address.sin_addr) != 1 ||
      connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    die(fmt::format("cannot connect to {}:{}", target.host, target.port));
}

Link::~Link() {
  close(descriptor_);
}

void Link::send(base::Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) die("the broker closed the connection");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

namespace {

std::size_t size_of(const std::byte* prefix) {
  const auto size = static_cast<std::uint32_t>(protocol::load_be<std::int32_t>(prefix));
  if (size > std::uint32_t{1} << 30) die("an answer of more than 1 GiB");
  return size;
}

}  // namespace

base::Bytes Link::receive() {
  const auto fill = [this](std::byte* into, std::size_t size) {
    for (std::size_t have = 0; have < size;) {
      const ssize_t n = recv(descriptor_, into + have, size - have, 0);
      if (n <= 0) die("the broker closed the connection");
      have += static_cast<std::size_t>(n);
    }
  };
  std::byte prefix[prefix_bytes];
  fill(prefix, sizeof prefix);
  const std::size_t size = size_of(prefix);
  if (buffer_.size() < size) buffer_.resize(size);
  fill(buffer_.data(), size);
  return base::Bytes(buffer_).first(size);
}

std::optional<base::Bytes> Link::try_receive() {
  for (;;) {
    const std::size_t wanted =
        have_ < prefix_bytes ? prefix_bytes : prefix_bytes + size_of(buffer_.data());
    if (have_ >= prefix_bytes && have_ == wanted) {
      have_ = 0;
      return base::Bytes(buffer_).subspan(prefix_bytes, wanted - prefix_bytes);
    }
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const ssize_t n = recv(descriptor_, buffer_.data() + have_, wanted - have_, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (n <= 0) die("the broker closed the connection");
    have_ += static_cast<std::size_t>(n);
  }
}

base::Bytes body_of(base::Bytes answer, protocol::ApiKey key, std::int16_t version) {
  protocol::ResponseHeader header;
  base::Bytes body;
  if (!decode(answer, key, version, header, body)) die("an answer that cannot be read");
  return body;
}

std::vector<std::int64_t> log_ends(const Target& target, int partitions) {
  protocol::ListOffsetsRequest request;
  request.replica_id = -1;
  auto& topic = request.topics.emplace_back();
  topic.name = target.topic;
  for (int p = 0; p < partitions; ++p) {
    auto& one = topic.partitions.emplace_back();
    one.partition_index = p;
    one.timestamp = -1;
  }
  Link link(target);
  link.send(frame(list_offsets_version, request));
  protocol::ListOffsetsResponse response;
  if (!decode(body_of(link.receive(), protocol::ApiKey::list_offsets, list_offsets_version),
              list_offsets_version, response) ||
      response.topics.size() != 1)
    die("an answer to ListOffsets that cannot be read");
  std::vector<std::int64_t> ends(static_cast<std::size_t>(partitions));
  for (const auto& one : response.topics[0].partitions) {
    if (one.error_code != 0) die(fmt::format("ListOffsets: error {}", one.error_code));
    ends.at(static_cast<std::size_t>(one.partition_index)) = one.offset;
  }
  return ends;
}

std::string percentiles(std::vector<float>& ms) {
  if (ms.empty()) die("nothing was measured");
  std::ranges::sort(ms);
  const auto at = [&ms](double share) {
    return ms[static_cast<std::size_t>(share * static_cast<double>(ms.size() - 1))];
  };
  return fmt::format(R"("p50": {:.3f}, "p99": {:.3f}, "p999": {:.3f}, "max": {:.3f})", at(0.5),
                     at(0.99), at(0.999), ms.back());
}

}  // namespace kload
