#include "cli/request/request.hpp"

#include "core/kernels/dispatch.hpp"

namespace attn::cli {

extern const char* const attn_version;  // write_version.cmake
extern const char* const attn_commit;

std::string version_text() {
#if defined(__clang__)
    const std::string compiler = "Clang " __clang_version__;
#else
    const std::string compiler = "GCC " __VERSION__;
#endif
    std::string names = "reference";
    for (const kernels::Kernel* kernel : kernels::supported())
        names += std::string(" ") + kernel->name;
    return std::string("attn ") + attn_version + "\ncommit: " + attn_commit +
           "\ncompiler: " + compiler + "\nkernels: " + names + "\n";
}

}  // namespace attn::cli
