// Numbers of KIP-1279 (cluster mirroring). The KIP is unreleased, and its numbers collide with
// those that Kafka 4.4 uses for other things (API key 94, error 134), so whatever we send or accept
// of them is moved up by these offsets. When Kafka releases the KIP this file changes, and nothing
// else.
#pragma once
#include <cstdint>

namespace protocol {

inline constexpr std::int16_t mirror_api_key_offset = 1000;  // 94 is 1094 on the wire
inline constexpr std::int16_t mirror_error_offset = 1000;    // 136 is 1136

// Types of configuration resources and of ACL resources that stand for a mirror.
inline constexpr std::int8_t mirror_config_resource_type = 64;
inline constexpr std::int8_t mirror_acl_resource_type = 8;

}  // namespace protocol
