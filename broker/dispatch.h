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
  TogetherHandler together = nullptr;
};

// By ascending key.
std::span<const Served> served_apis();

// Nullptr: not served, or not in this version. As Kafka does, the connection then ends; only
// ApiVersions itself is answered in every version (A01).
Handler find_handler(std::int16_t key, std::int16_t version);
// Nullptr: requests of this API are handled one after the other.
TogetherHandler find_together(std::int16_t key);

}  // namespace broker
