// Ctrl-C as something that a wait can notice instead of the end of the process.
#pragma once

namespace tools {

// While one lives, SIGINT only sets a mark. At most one at a time.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;
};

bool interrupted();
// Throws Failure(interrupted) if Ctrl-C was pressed.
void check_interrupted();
// Sleeps at most so long; Ctrl-C ends it.
void sleep_ms(int milliseconds);

}  // namespace tools
