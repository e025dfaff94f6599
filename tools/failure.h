// How a command of the command line ends. Inside tools/ a command that cannot go on throws Failure;
// run() catches it, prints the sentence and returns the code. Nothing below tools/ throws it.
#pragma once
#include <stdexcept>
#include <string>

namespace tools {

// Documented in docs/cli.md; scripts depend on the numbers.
enum class ExitCode : int {
  ok = 0,
  failed = 1,       // the broker refused, a file is invalid, two sides differ
  usage = 2,        // the command line itself is wrong; nothing was done
  unreachable = 3,  // no broker answered at the given address
  timed_out = 4,    // --wait gave up; what was asked for goes on
  interrupted = 130,
};

// `what()` is one sentence for the operator that says what to do.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace tools
