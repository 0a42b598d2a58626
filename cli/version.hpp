// What `attn --version` says.
#pragma once

#include <string>

namespace attn::cli {

/// Version, compiler and the kernels of this build, one line each.
std::string version_text();

}  // namespace attn::cli
