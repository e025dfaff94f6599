// `calque sample …`: records that everybody can make again, for a first look, drills and tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/arguments.h"

namespace tools {

std::vector<Command> sample_commands();

// The n-th sample record. The key cycles through 1000 keys; the value depends on `number` and
// `value_bytes` alone.
std::string sample_key(std::int64_t number);
std::string sample_value(std::int64_t number, std::size_t value_bytes);

}  // namespace tools
