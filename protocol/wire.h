// Kafka's wire primitives. Reader and Writer have the same member names, so that the layout of a
// message is written once and serves both directions (see generate.py).
//
// Reader: a failure sticks. After the first short or invalid read every further read yields zero
// and consumes nothing, so the code that decodes needs no checks; its caller asks finished() once.
// What is decoded may cost at most `memory_factor` times the input plus `memory_allowance` bytes:
// counts are checked against the bytes that are left before anything is reserved, and unknown
// tagged fields are skipped, not kept. A peer can therefore not make a small request expensive.
// `base::Bytes` fields borrow from the input, which must outlive the decoded message.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"

namespace protocol {

// Record batches of one partition. On the way out they are either here (`bytes`), or elsewhere, for
// instance in a file: `deferred` is then their size, and the Writer leaves a splice for them.
struct Records {
  base::Bytes bytes;
  bool null = false;
  std::optional<std::uint32_t> deferred;
};

// std::span has no ==; these compare contents, not addresses.
inline bool same(base::Bytes a, base::Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
inline bool same(const std::optional<base::Bytes>& a, const std::optional<base::Bytes>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}
inline bool operator==(const Records& a, const Records& b) {
  return a.null == b.null && a.deferred == b.deferred && same(a.bytes, b.bytes);
}

// Kafka's limit for every string, whatever the prefix could say.
inline constexpr std::size_t string_bytes_max = 32767;

// The least that a string, and a length or count before bytes and arrays, takes on the wire.
constexpr std::size_t least_text(bool flexible) {
  return flexible ? 1 : 2;
}
constexpr std::size_t least_length(bool flexible) {
  return flexible ? 1 : 4;
}

template <std::integral T>
constexpr T big_endian(T v) {
  static_assert(std::endian::native == std::endian::little);
  using U = std::make_unsigned_t<T>;
  if constexpr (sizeof(T) == 1)
    return v;
  else if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bswap16(static_cast<U>(v)));
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(__builtin_bswap32(static_cast<U>(v)));
  else
    return static_cast<T>(__builtin_bswap64(static_cast<U>(v)));
}

class Reader {
 public:
  template <class T>
  using Ref = T&;
  static constexpr std::size_t memory_factor = 16;
  static constexpr std::size_t memory_allowance = 16 * 1024;

  Reader(base::Bytes in, bool flexible)
      : in_(in), memory_left_(in.size() * memory_factor + memory_allowance), flexible_(flexible) {}

  bool ok() const { return ok_; }
  // True when all was well and nothing is left over.
  bool finished() const { return ok_ && in_.empty(); }
  bool flexible() const { return flexible_; }
  void set_flexible(bool flexible) { flexible_ = flexible; }
  base::Bytes remaining() const { return in_; }
  void fail();

  template <std::integral T>
  void num(T& v) {
    if (in_.size() < sizeof(T)) {
      fail();
      v = T{};
      return;
    }
    if constexpr (std::same_as<T, bool>) {
      v = in_[0] != std::byte{0};
    } else {
      std::memcpy(&v, in_.data(), sizeof(T));
      v = big_endian(v);
    }
    in_ = in_.subspan(sizeof(T));
  }
  void num(double& v);
  void num(base::Uuid& v);
  void throttle_time(std::int32_t& v) { num(v); }
  std::uint32_t uvarint();

  void text(std::string& v);
  void text(std::optional<std::string>& v, bool nullable);
  void blob(base::Bytes& v);
  void blob(std::optional<base::Bytes>& v, bool nullable);
  void records(Records& v, bool nullable);

  // `least`: the least number of bytes that an element can take.
  template <class T, class F>
  void array(std::vector<T>& v, std::size_t least, F element) {
    elements(v, length(false), least, element);
  }
  template <class T, class F>
  void array(std::optional<std::vector<T>>& v, bool nullable, std::size_t least, F element) {
    const std::int64_t n = length(false);
    if (n < 0 && nullable) {
      v.reset();
    } else {
      elements(v.emplace(), n, least, element);
    }
  }
  // A nullable struct has a byte before it: negative is null.
  template <class T, class F>
  void nullable(std::optional<T>& v, bool may_be_null, F body) {
    std::int8_t present = 0;
    num(present);
    if (present < 0) {
      if (!may_be_null) fail();
      v.reset();
    } else {
      // Not emplace(): a nested struct was incomplete when std::optional asked whether that is
      // possible.
      body(v.emplace(T{}));
    }
  }
  template <class... Tags>
  void tags(Tags... known) {
    if (!flexible_) return;
    std::uint32_t count = uvarint();
    if (count > in_.size() / 2) return fail();  // a tag takes two bytes at least
    for (std::int64_t last = -1; count > 0 && ok_; --count) {
      const std::uint32_t number = uvarint();
      const base::Bytes body = take(uvarint());
      if (!ok_ || number <= last) return fail();
      last = number;
      const base::Bytes rest = std::exchange(in_, body);
      const bool was_known = (read_tag(known, number) || ...);
      if (was_known && !in_.empty()) fail();
      if (ok_) in_ = rest;
    }
  }

 private:
  // The prefix of a string (16 bits before flexible versions), or of bytes and arrays (32 bits).
  std::int64_t length(bool short_prefix);
  base::Bytes take(std::int64_t n);
  void charge(std::size_t bytes);
  void take_text(std::string& v, std::int64_t n);

  template <class T, class F>
  void elements(std::vector<T>& v, std::int64_t n, std::size_t least, F& element) {
    if (n < 0 || static_cast<std::uint64_t>(n) > in_.size() / least) return fail();
    charge(static_cast<std::size_t>(n) * sizeof(T));
    if (!ok_) return;
    v.resize(static_cast<std::size_t>(n));
    for (T& e : v) {
      if (!ok_) return;
      element(e);
    }
  }
  template <class Tag>
  bool read_tag(Tag& tag, std::uint32_t number) {
    if (!tag.present || tag.number != number) return false;
    tag.body(tag.value);
    return true;
  }

  base::Bytes in_;
  std::size_t memory_left_;
  bool flexible_;
  bool ok_ = true;
};

// Appends to a buffer that it borrows. Several things can be written one after the other: a header,
// then a message; encode() sets flexible() as the version wants it.
// A null where the version knows no null is written as empty, and a string above Kafka's limit is
// cut: both can come about from what a peer sent in another version, and must not end the process.
class Writer {
 public:
  template <class T>
  using Ref = const T&;
  // Where bytes that are sent from elsewhere belong: before byte `offset` of the buffer.
  struct Splice {
    std::size_t offset;
    std::uint32_t size;
  };

  explicit Writer(base::Buffer& out) : out_(out) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool flexible() const { return flexible_; }
  void set_flexible(bool flexible) { flexible_ = flexible; }
  const std::vector<Splice>& splices() const { return splices_; }
  // The size of the sum: the buffer and what its splices stand for.
  std::size_t size() const { return out_.size() + spliced_; }
  // Where in the buffer the four bytes of throttle_time_ms stand, if the message has it.
  std::optional<std::size_t> throttle_time_at() const { return throttle_time_at_; }

  template <std::integral T>
  void num(const T& v) {
    const T be = big_endian(v);
    append(&be, sizeof be);
  }
  void num(const bool& v) { out_.push_back(std::byte{v}); }
  void num(const double& v) { num(std::bit_cast<std::uint64_t>(v)); }
  void num(const base::Uuid& v) { append(v.bytes.data(), v.bytes.size()); }
  void throttle_time(const std::int32_t& v) {
    throttle_time_at_ = out_.size();
    num(v);
  }
  void uvarint(std::uint32_t v);

  void text(const std::string& v);
  void text(const std::optional<std::string>& v, bool nullable);
  void blob(const base::Bytes& v);
  void blob(const std::optional<base::Bytes>& v, bool nullable);
  void records(const Records& v, bool nullable);

  template <class T, class F>
  void array(const std::vector<T>& v, std::size_t, F element) {
    length(static_cast<std::int64_t>(v.size()), false);
    for (const T& e : v) element(e);
  }
  template <class T, class F>
  void array(const std::optional<std::vector<T>>& v, bool nullable, std::size_t least, F element) {
    if (v) {
      array(*v, least, element);
    } else {
      length(nullable ? -1 : 0, false);
    }
  }
  template <class T, class F>
  void nullable(const std::optional<T>& v, bool may_be_null, F body) {
    const bool null = !v && may_be_null;
    num(static_cast<std::int8_t>(null ? -1 : 1));
    if (!null) body(v ? *v : T{});
  }
  // `known` stand in ascending order of their numbers.
  template <class... Tags>
  void tags(Tags... known) {
    if (!flexible_) return;
    uvarint((0u + ... + (known.is_written() ? 1u : 0u)));
    (write_tag(known), ...);
  }

 private:
  template <class Tag>
  void write_tag(const Tag& tag) {
    if (!tag.is_written()) return;
    uvarint(tag.number);
    const Mark start = mark();
    tag.body(tag.value);
    prefix_size(start);
  }
  struct Mark {
    std::size_t bytes, total, splices;
  };
  Mark mark() const { return {out_.size(), size(), splices_.size()}; }
  // Puts the size of all that was written since `start` before it.
  void prefix_size(Mark start);
  void length(std::int64_t n, bool short_prefix);
  void append(const void* p, std::size_t n) {
    const auto* b = static_cast<const std::byte*>(p);
    out_.insert(out_.end(), b, b + n);
  }

  base::Buffer& out_;
  std::vector<Splice> splices_;
  std::optional<std::size_t> throttle_time_at_;
  std::size_t spliced_ = 0;
  bool flexible_ = false;
};

// One tagged field: its number, whether the version has it, where it lives, what it is when left
// out, and its layout.
template <class T, class F>
struct Tag {
  std::uint32_t number;
  bool present;
  T& value;
  std::remove_const_t<T> fallback;
  F body;
  bool is_written() const { return present && !(value == fallback); }
};
template <class T, class F>
Tag<T, F> tag(std::uint32_t number, bool present, T& value, std::remove_const_t<T> fallback,
              F body) {
  return {number, present, value, std::move(fallback), body};
}

}  // namespace protocol
