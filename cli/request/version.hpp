// The output of `attn --version`.
#pragma once

#include <string>

namespace attn::cli {

/// The version, the compiler, and the kernels that this processor supports, one line each. The last
/// kernel is the one that auto uses for large work.
std::string version_text();

}  // namespace attn::cli
