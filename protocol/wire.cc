#include "protocol/wire.h"

#include <limits>

#include "protocol/base/check.h"

namespace protocol {
namespace {

// The longest prefix of `v` that the limit allows and that ends no character in its middle.
std::size_t cut_length(const std::string& v) {
  if (v.size() <= string_bytes_max) return v.size();
  std::size_t n = string_bytes_max;
  while (n > 0 && (static_cast<unsigned char>(v[n]) & 0xc0) == 0x80) --n;
  return n;
}

}  // namespace

void Reader::fail() {
  ok_ = false;
  in_ = {};
}

void Reader::num(double& v) {
  std::uint64_t bits = 0;
  num(bits);
  v = std::bit_cast<double>(bits);
}

void Reader::num(base::Uuid& v) {
  const base::Bytes bytes = take(static_cast<std::int64_t>(v.bytes.size()));
  if (ok_) std::memcpy(v.bytes.data(), bytes.data(), bytes.size());
}

std::uint32_t Reader::uvarint() {
  std::uint32_t v = 0;
  for (int shift = 0; shift <= 28; shift += 7) {
    std::uint8_t b = 0;
    num(b);
    if (shift == 28 && b > 0x0f) break;  // more than 32 bits
    v |= static_cast<std::uint32_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) return v;
  }
  fail();
  return 0;
}

std::int64_t Reader::length(bool short_prefix) {
  if (flexible_) return static_cast<std::int64_t>(uvarint()) - 1;
  if (short_prefix) {
    std::int16_t n = 0;
    num(n);
    return n;
  }
  std::int32_t n = 0;
  num(n);
  return n;
}

base::Bytes Reader::take(std::int64_t n) {
  if (n < 0 || static_cast<std::uint64_t>(n) > in_.size()) {
    fail();
    return {};
  }
  const base::Bytes out = in_.first(static_cast<std::size_t>(n));
  in_ = in_.subspan(static_cast<std::size_t>(n));
  return out;
}

void Reader::charge(std::size_t bytes) {
  if (bytes > memory_left_) return fail();
  memory_left_ -= bytes;
}

void Reader::take_text(std::string& v, std::int64_t n) {
  if (n > static_cast<std::int64_t>(string_bytes_max)) return fail();
  const base::Bytes bytes = take(n);
  charge(2 * bytes.size());  // the room that std::string takes may be twice what it needs
  if (ok_) v.assign(base::as_text(bytes));
}

void Reader::text(std::string& v) {
  take_text(v, length(true));
}

void Reader::text(std::optional<std::string>& v, bool nullable) {
  const std::int64_t n = length(true);
  if (n < 0 && nullable) {
    v.reset();
  } else {
    take_text(v.emplace(), n);
  }
}

void Reader::blob(base::Bytes& v) {
  v = take(length(false));
}

void Reader::blob(std::optional<base::Bytes>& v, bool nullable) {
  const std::int64_t n = length(false);
  if (n < 0 && nullable) {
    v.reset();
  } else {
    v = take(n);
  }
}

void Reader::records(Records& v, bool nullable) {
  const std::int64_t n = length(false);
  v.null = n < 0 && nullable;
  v.bytes = v.null ? base::Bytes{} : take(n);
}

void Writer::uvarint(std::uint32_t v) {
  while (v >= 0x80) {
    out_.push_back(static_cast<std::byte>(v | 0x80));
    v >>= 7;
  }
  out_.push_back(static_cast<std::byte>(v));
}

void Writer::length(std::int64_t n, bool short_prefix) {
  CHECK(n < std::numeric_limits<std::int32_t>::max());
  if (flexible_) {
    uvarint(static_cast<std::uint32_t>(n + 1));
  } else if (short_prefix) {
    num(static_cast<std::int16_t>(n));
  } else {
    num(static_cast<std::int32_t>(n));
  }
}

void Writer::text(const std::string& v) {
  const std::size_t n = cut_length(v);
  length(static_cast<std::int64_t>(n), true);
  append(v.data(), n);
}

void Writer::text(const std::optional<std::string>& v, bool nullable) {
  if (v) {
    text(*v);
  } else {
    length(nullable ? -1 : 0, true);
  }
}

void Writer::blob(const base::Bytes& v) {
  length(static_cast<std::int64_t>(v.size()), false);
  append(v.data(), v.size());
}

void Writer::blob(const std::optional<base::Bytes>& v, bool nullable) {
  if (v) {
    blob(*v);
  } else {
    length(nullable ? -1 : 0, false);
  }
}

void Writer::records(const Records& v, bool nullable) {
  if (v.deferred) {
    length(*v.deferred, false);
    splices_.push_back({out_.size(), *v.deferred});
    spliced_ += *v.deferred;
  } else if (v.null) {
    length(nullable ? -1 : 0, false);
  } else {
    blob(v.bytes);
  }
}

void Writer::prefix_size(Mark start) {
  base::Buffer prefix;
  Writer writer(prefix);
  writer.uvarint(static_cast<std::uint32_t>(size() - start.total));
  out_.insert(out_.begin() + static_cast<std::ptrdiff_t>(start.bytes), prefix.begin(),
              prefix.end());
  for (std::size_t i = start.splices; i < splices_.size(); ++i) {
    splices_[i].offset += prefix.size();
  }
}

}  // namespace protocol
