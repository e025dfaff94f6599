// Which random worlds a simulation runs: SEED=n only that one, SEEDS=n so many.
#pragma once
#include <cstdint>
#include <cstdlib>

struct Seeds {
  std::uint64_t first = 1, last = 0;
};

inline Seeds seeds(std::uint64_t otherwise) {
  const auto number_from = [](const char* name, std::uint64_t fallback) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
  };
  const std::uint64_t only = number_from("SEED", 0);
  if (only != 0) return {only, only};
  return {1, number_from("SEEDS", otherwise)};
}
