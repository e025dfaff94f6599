// Fetch requests of the load generator, and what is checked of their answers.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "protocol/batch.h"
#include "tests/bench/kload_link.h"

namespace kload {

struct Position {
  std::int32_t partition = 0;
  std::int64_t offset = 0, end = 0;
};

base::Buffer fetch_frame(const Target& target, const std::vector<Position>& positions,
                         std::int32_t max_wait_ms);

// Hands on each batch of the answer, and moves the position behind it.
void walk_fetched(base::Bytes answer, std::vector<Position>& positions,
                  const std::function<void(const protocol::BatchInfo&, base::Bytes batch)>& each);

}  // namespace kload
