// `calque group …`.
#pragma once
#include <vector>

#include "tools/arguments.h"

namespace tools {

std::vector<Command> group_commands();

}  // namespace tools
