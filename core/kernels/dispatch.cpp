// A kernel for another processor is a header with its vectors, a file for each type and a row here.
#include "core/kernels/dispatch.hpp"

namespace attn::kernels {

extern const Entries<float> generic_float32, avx2_float32, avx512_float32, neon_float32;
extern const Entries<double> generic_float64, avx2_float64, avx512_float64, neon_float64;
extern const Draws generic_draws, avx2_draws, avx512_draws, neon_draws;

namespace {

#if defined(__x86_64__)
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

bool always() {
    return true;
}

/// Kernels for processors of another family than the build's.
bool never() {
    return false;
}

constexpr Kernel table[] = {
    {"generic", always, &generic_float32, &generic_float64, &generic_draws},
#if defined(__x86_64__)
    {"avx2", has_avx2, &avx2_float32, &avx2_float64, &avx2_draws},
    {"avx512", has_avx512, &avx512_float32, &avx512_float64, &avx512_draws},
#else
    {"avx2", never, nullptr, nullptr, nullptr},
    {"avx512", never, nullptr, nullptr, nullptr},
#endif
#if defined(__aarch64__)
    {"neon", always, &neon_float32, &neon_float64, &neon_draws},
#else
    {"neon", never, nullptr, nullptr, nullptr},
#endif
};

}  // namespace

std::span<const Kernel> all() {
    return table;
}

const std::vector<const Kernel*>& supported() {
    static const auto usable = [] {
        std::vector<const Kernel*> kernels;
        for (const Kernel& kernel : table)
            if (kernel.runs_here()) kernels.push_back(&kernel);
        return kernels;
    }();
    return usable;
}

}  // namespace attn::kernels
