#include "tests/unit/protocol/allocation_count.h"

#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CALQUE_ALLOCATOR_IS_TAKEN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CALQUE_ALLOCATOR_IS_TAKEN
#endif

#ifdef CALQUE_ALLOCATOR_IS_TAKEN

// AddressSanitizer's operators must stay paired, so there is only its count of what is alive.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();

std::size_t allocated_bytes() {
  return __sanitizer_get_current_allocated_bytes();
}

#else

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

#endif
