// CHECK: an invariant of our own code. It is always on, and a broken one aborts the process with
// the place and the condition. Data that is wrong on disk or on the wire is never a CHECK: it is a
// Result.
#pragma once

namespace base {

// Prints `file:line: CHECK failed: what` to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* what);

}  // namespace base

#define CHECK(condition)                                    \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::base::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
