#include "cli/request/request.hpp"

#include "core/kernels/dispatch.hpp"

namespace attn::cli {

std::string version_text() {
#if defined(__clang__)
    const std::string compiler = "Clang " __clang_version__;
#else
    const std::string compiler = "GCC " __VERSION__;
#endif
    std::string names = "reference";
    for (const kernels::Kernel* kernel : kernels::supported())
        names += std::string(" ") + kernel->name;
    return "attn " ATTN_VERSION "\ncompiler: " + compiler + "\nkernels: " + names + "\n";
}

}  // namespace attn::cli
