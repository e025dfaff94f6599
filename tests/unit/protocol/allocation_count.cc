#include "tests/unit/protocol/allocation_count.h"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocated = 0;
}

std::size_t allocated_bytes() {
  return allocated;
}

void* operator new(std::size_t bytes) {
  allocated += bytes;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
