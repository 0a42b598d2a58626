// Returns unused memory to the system.
#pragma once

#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace attn {

/// Returns free memory of the heap to the system. glibc keeps blocks of several MiB for later
/// allocations of the same size, which may never come. Other C libraries return large blocks on
/// their own.
inline void return_free_memory() {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

}  // namespace attn
