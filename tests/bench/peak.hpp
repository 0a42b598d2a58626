// How fast a processor multiplies and adds with one instruction set, and how fast it reads memory.
#pragma once

#include <cstddef>

namespace attn::bench {

/// Fused multiply-adds (of the generic kernel: multiplications and additions) with nothing else in
/// the way: floating point operations done by `rounds` rounds.
struct Peak {
    const char* name;
    double (*float32)(std::size_t rounds);
};

extern const Peak generic_peak;
#if defined(__x86_64__)
extern const Peak avx2_peak, avx512_peak;
#elif defined(__aarch64__)
extern const Peak neon_peak;
#endif

}  // namespace attn::bench
