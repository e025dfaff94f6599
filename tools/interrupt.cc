#include "tools/interrupt.h"

#include <csignal>
#include <ctime>

#include "tools/failure.h"

namespace tools {

namespace {

volatile std::sig_atomic_t pressed = 0;
struct sigaction before{};

}  // namespace

CatchInterrupt::CatchInterrupt() {
  pressed = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { pressed = 1; };
  // No SA_RESTART: a wait must return so that it can look at the mark.
  sigaction(SIGINT, &action, &before);
}

CatchInterrupt::~CatchInterrupt() {
  sigaction(SIGINT, &before, nullptr);
  pressed = 0;
}

bool interrupted() {
  return pressed != 0;
}

void check_interrupted() {
  if (interrupted()) throw Failure(ExitCode::interrupted, "interrupted");
}

void sleep_ms(int milliseconds) {
  const timespec time{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace tools
