#include "protocol/base/random.h"

namespace base {

Uuid Random::uuid() {
  for (;;) {
    Uuid id;
    for (std::byte& b : id.bytes) b = static_cast<std::byte>(engine_() & 255);
    id.bytes[6] = (id.bytes[6] & std::byte{0x0f}) | std::byte{0x40};
    id.bytes[8] = (id.bytes[8] & std::byte{0x3f}) | std::byte{0x80};
    if (id.to_string().front() != '-') return id;
  }
}

}  // namespace base
