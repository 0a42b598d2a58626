// A kernel for another processor is a header with its vectors, a file for each type and a row here.
#include "core/kernels/dispatch.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace attn::kernels {

extern const EntryTable generic_table, avx2_table, avx512_table, neon_table;
extern const PairTable avx512_bf16_table, neon_bf16_table;

namespace {

#if defined(__x86_64__)
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() {
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

#if defined(__aarch64__)
bool has_neon_bf16() {
#if defined(__linux__)
    constexpr unsigned long bf16 = 1ul << 14;  // HWCAP2_BF16, which old headers lack
    return (getauxval(AT_HWCAP2) & bf16) != 0;
#else
    return false;
#endif
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
    {"avx512", has_avx512, &avx512_table, has_avx512_bf16, &avx512_bf16_table},
#else
    {"avx2", never, nullptr},
    {"avx512", never, nullptr},
#endif
#if defined(__aarch64__)
    {"neon", always, &neon_table, has_neon_bf16, &neon_bf16_table},
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
