// How much memory this thread asked for, whether or not it gave it back. The test program's own
// operator new counts.
#pragma once
#include <cstddef>

std::size_t allocated_bytes();
