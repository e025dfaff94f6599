// Which APIs are served, in which versions, by which handler.
#pragma once
#include <cstdint>
#include <span>

#include "broker/handler.h"

namespace broker {

struct Served {
  protocol::ApiKey key;
  Handler handle;
  bool advertised = true;  // listed in ApiVersions to everybody; if not, to our own clients only
};

// By ascending key.
std::span<const Served> served_apis();

// Nullptr: not served, or not in this version. As Kafka does, the connection then ends; only
// ApiVersions itself is answered in every version (A01).
Handler find_handler(std::int16_t key, std::int16_t version);

}  // namespace broker
