// Memory that nothing uses.
#pragma once

#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace attn {

/// Gives the system what is free in the heap: glibc keeps blocks of some MiB each for the next ones
/// like them, which then may not come. Other C libraries give large blocks back by themselves.
inline void return_free_memory() {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

}  // namespace attn
