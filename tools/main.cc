#include <unistd.h>

#include <csignal>
#include <iostream>

#include "tools/command_line.h"

int main(int argc, char** argv) {
  // A reader that went away is an error of the write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  tools::Output output{std::cout, std::cerr, isatty(STDERR_FILENO) != 0};
  return tools::run(words, output);
}
