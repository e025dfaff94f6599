// The command line as a whole: the table of all commands and what runs one.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "tools/arguments.h"

namespace tools {

const std::vector<Command>& commands();

// Runs what `words` (without the program's name) ask for and gives the exit code. Error sentences
// go to output.err, each one line that begins with "calque: ".
int run(std::span<const std::string> words, Output& output);

}  // namespace tools
