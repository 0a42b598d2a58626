// Refuses work that this machine has no memory for, before it starts.
#pragma once

#include <string>

namespace attn {

/// Throws a SettingError of kind input where `bytes` is more than the machine's physical memory;
/// `where` is the key of what asks for so much.
void require_memory(double bytes, const std::string& where, const std::string& purpose);

}  // namespace attn
