// The identities that everybody speaks of. Absent is std::optional; -1 for "absent" exists only on
// the wire and in Kafka's file formats.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace base {

using Offset = std::int64_t;       // of a record in a partition
using LeaderEpoch = std::int32_t;  // generation of a partition's leader
using ProducerId = std::int64_t;
using ProducerEpoch = std::int16_t;
using NodeId = std::int32_t;

// 16 bytes, written as Kafka does: URL-safe base64 without padding, 22 characters.
struct Uuid {
  std::array<std::byte, 16> bytes{};
  auto operator<=>(const Uuid&) const = default;
  bool is_zero() const { return *this == Uuid{}; }
  std::string to_string() const;
  static std::optional<Uuid> parse(std::string_view text);
};

struct TopicPartition {
  Uuid topic_id;
  std::int32_t partition = 0;
  auto operator<=>(const TopicPartition&) const = default;
};

}  // namespace base

template <>
struct std::hash<base::Uuid> {
  std::size_t operator()(const base::Uuid& id) const noexcept {
    std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
    for (std::byte b : id.bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
};
template <>
struct std::hash<base::TopicPartition> {
  std::size_t operator()(const base::TopicPartition& tp) const noexcept {
    return std::hash<base::Uuid>{}(tp.topic_id) * 31 + static_cast<std::size_t>(tp.partition);
  }
};
