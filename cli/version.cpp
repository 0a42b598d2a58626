// What `attn --version` says; see version.hpp.
#include "cli/version.hpp"

namespace attn::cli {

std::string version_text() {
#if defined(__clang__)
    const std::string compiler = "Clang " __clang_version__;
#else
    const std::string compiler = "GCC " __VERSION__;
#endif
    return "attn " ATTN_VERSION "\ncompiler: " + compiler + "\nkernels: reference\n";
}

}  // namespace attn::cli
