// A kernel for another processor is a header with its vectors, a file for each type and a row here.
#include "core/kernels/dispatch.hpp"

namespace attn::kernels {

extern const EntryTable generic_table, avx2_table, avx512_table, neon_table;

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
    {"generic", always, &generic_table},
#if defined(__x86_64__)
    {"avx2", has_avx2, &avx2_table},
    {"avx512", has_avx512, &avx512_table},
#else
    {"avx2", never, nullptr},
    {"avx512", never, nullptr},
#endif
#if defined(__aarch64__)
    {"neon", always, &neon_table},
#else
    {"neon", never, nullptr},
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
