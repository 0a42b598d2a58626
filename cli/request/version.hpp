// What `attn --version` says.
#pragma once

#include <string>

namespace attn::cli {

/// Version, compiler and the kernels that this processor can run, one line each, the one that auto
/// takes for large work last.
std::string version_text();

}  // namespace attn::cli
