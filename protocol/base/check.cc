#include "protocol/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace base {

void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace base
