// Randomness, a seam: seeded in tests and simulation, from the system in the product.
#pragma once
#include <cstdint>
#include <random>

#include "protocol/base/ids.h"

namespace base {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  static Random from_system() {
    return Random((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}());
  }

  // In [0, below); below must be positive.
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  // Version 4, never one that begins with '-' when written (as Kafka takes care of, for command
  // lines).
  Uuid uuid();

 private:
  std::mt19937_64 engine_;
};

}  // namespace base
