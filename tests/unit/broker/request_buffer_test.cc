// The buffer between a socket and its requests, without a socket.
#include "broker/request_buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>

#include "protocol/base/random.h"
#include "protocol/big_endian.h"
#include "tests/lib/seeds.h"

namespace broker::test {
namespace {

// The bytes of a request of this size as they are sent; each request has bytes of its own.
base::Buffer sent(std::size_t size, std::size_t number) {
  base::Buffer out(RequestBuffer::prefix_bytes);
  protocol::store_be<std::int32_t>(out.data(), static_cast<std::int32_t>(size));
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(number * 31 + i));
  return out;
}

// Writes as much of `bytes` as there is room for; gives the rest.
base::Bytes fill(RequestBuffer& buffer, base::Bytes bytes, bool ahead) {
  const base::MutableBytes room = buffer.room(ahead);
  const std::size_t count = std::min(room.size(), bytes.size());
  std::copy_n(bytes.begin(), count, room.begin());
  buffer.add(count);
  return bytes.subspan(count);
}

bool same(base::Bytes a, base::Bytes b) {
  return std::ranges::equal(a, b);
}

}  // namespace

TEST_CASE("before memory is reserved there is room for the size of a request") {
  RequestBuffer buffer;
  CHECK(buffer.capacity() == 0);
  CHECK(buffer.empty());
  const base::Buffer bytes = sent(100, 1);
  CHECK(buffer.room(false).size() == 4);
  CHECK(buffer.room(true).size() == 4);
  base::Bytes rest = fill(buffer, base::Bytes(bytes).first(3), false);
  CHECK(rest.empty());
  CHECK_FALSE(buffer.announced());
  CHECK(buffer.room(false).size() == 1);
  rest = fill(buffer, base::Bytes(bytes).subspan(3), false);
  CHECK(rest.size() == 100);
  REQUIRE(buffer.announced() == 100);
  CHECK_FALSE(buffer.whole());
  buffer.reserve(104);
  CHECK(buffer.capacity() >= 104);
  CHECK(buffer.room(false).size() == 100);
  rest = fill(buffer, rest, false);
  REQUIRE(buffer.whole());
  CHECK(same(buffer.front(), base::Bytes(bytes).subspan(4)));
  CHECK(same(buffer.take(), base::Bytes(bytes).subspan(4)));
  CHECK(buffer.empty());
  buffer.drop();
  CHECK(buffer.capacity() == 0);
}

TEST_CASE("a size that is none is told and is no whole request") {
  for (const std::int32_t size : {0, -1, -2'147'483'647 - 1}) {
    RequestBuffer buffer;
    base::Buffer bytes(4);
    protocol::store_be<std::int32_t>(bytes.data(), size);
    fill(buffer, bytes, false);
    CHECK(buffer.announced() == size);
    CHECK_FALSE(buffer.whole());
  }
}

TEST_CASE("requests that came together are taken one by one and stay where they are") {
  RequestBuffer buffer;
  buffer.reserve(4096);
  base::Buffer all;
  for (std::size_t i = 0; i < 5; ++i) {
    const base::Buffer one = sent(100 + i, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  const base::Buffer part = sent(3000, 9);
  all.insert(all.end(), part.begin(), part.begin() + 50);
  CHECK(fill(buffer, all, true).empty());
  std::vector<base::MutableBytes> taken;
  while (buffer.whole()) taken.push_back(buffer.take());
  REQUIRE(taken.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(same(taken[i], base::Bytes(sent(100 + i, i)).subspan(4)));
  CHECK(buffer.announced() == 3000);
  CHECK_FALSE(buffer.empty());
  // The rest of the sixth finds room once those before it are no longer needed.
  buffer.reserve(3004);
  CHECK(buffer.room(false).size() == 3004 - 50);
  fill(buffer, base::Bytes(part).subspan(50), false);
  CHECK(same(buffer.take(), base::Bytes(part).subspan(4)));
}

TEST_CASE("any stream in any pieces gives its requests", "[property]") {
  const Seeds all = seeds(300);
  for (std::uint64_t seed = all.first; seed <= all.last; ++seed) {
    CAPTURE(seed);
    base::Random random(seed);
    std::deque<base::Buffer> expected;
    base::Buffer stream;
    for (std::size_t i = 0; i < 40; ++i) {
      expected.push_back(sent(1 + random.below(random.chance(20) ? 20'000 : 300), i));
      stream.insert(stream.end(), expected.back().begin(), expected.back().end());
    }
    RequestBuffer buffer;
    base::Bytes rest = stream;
    bool ahead = false;
    while (!expected.empty()) {
      if (buffer.whole()) {
        const base::Buffer wanted = std::move(expected.front());
        expected.pop_front();
        REQUIRE(same(buffer.take(), base::Bytes(wanted).subspan(4)));
        if (buffer.empty() && random.chance(10)) {
          buffer.drop();
          ahead = false;
        }
        continue;
      }
      if (const auto size = buffer.announced()) {
        buffer.reserve(4 + static_cast<std::size_t>(*size));
        ahead = ahead || random.chance(50);
      }
      const base::MutableBytes room = buffer.room(ahead);
      REQUIRE_FALSE(room.empty());
      const std::size_t count =
          std::min({rest.size(), room.size(), std::size_t{1} + random.below(9'000)});
      std::copy_n(rest.begin(), count, room.begin());
      buffer.add(count);
      rest = rest.subspan(count);
      if (ahead && count == room.size() && random.chance(30)) buffer.reserve(buffer.capacity() * 2);
    }
    CHECK(rest.empty());
    CHECK(buffer.empty());
  }
}

}  // namespace broker::test
