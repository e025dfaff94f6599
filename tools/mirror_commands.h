// `calque mirror …`.
#pragma once
#include <vector>

#include "tools/arguments.h"

namespace tools {

std::vector<Command> mirror_commands();

}  // namespace tools
