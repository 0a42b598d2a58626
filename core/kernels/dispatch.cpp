// The table of fused kernels; see dispatch.hpp. A new kernel is one line here, a name in
// settings.hpp and a file with its vectors.
#include "core/kernels/dispatch.hpp"

#include "core/base/error.hpp"

namespace attn::kernels {

extern const Kernel generic_kernel;
#if defined(__x86_64__)
extern const Kernel avx2_kernel, avx512_kernel;
#elif defined(__aarch64__)
extern const Kernel neon_kernel;
#endif

namespace {

struct Row {
    const Kernel* kernel;
    bool (*supported)();
};

const Row table[] = {
    {&generic_kernel, [] { return true; }},
#if defined(__x86_64__)
    {&avx2_kernel, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
    {&avx512_kernel,
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     }},
#elif defined(__aarch64__)
    {&neon_kernel, [] { return true; }},
#endif
};

}  // namespace

const std::vector<const Kernel*>& supported() {
    static const auto all = [] {
        std::vector<const Kernel*> kernels;
        for (const Row& row : table)
            if (row.supported()) kernels.push_back(row.kernel);
        return kernels;
    }();
    return all;
}

const Kernel* find(KernelChoice choice) {
    if (choice == KernelChoice::reference) return nullptr;
    const std::vector<const Kernel*>& usable = supported();
    if (choice == KernelChoice::automatic) return usable.back();
    std::string names = "auto, reference";
    for (const Kernel* kernel : usable) {
        if (kernel->name == name_of(kernel_names, choice)) return kernel;
        names += std::string(", ") + kernel->name;
    }
    throw SettingError(ErrorKind::unsupported, "kernel",
                       "this processor cannot run it; expected one of " + names);
}

}  // namespace attn::kernels
