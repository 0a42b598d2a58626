// Refuses work that this machine has no memory for, before it starts.
#pragma once

#include <string>

namespace attn {

/// Throws where `bytes` is more than the machine's physical memory: kind input, `where` being what
/// asks for so much.
void require_memory(double bytes, const std::string& where, const std::string& purpose);

}  // namespace attn
