// Messages about unknown array names.
#pragma once

#include <string>
#include <vector>

namespace attn::cli {

/// Errors: SettingError of kind usage at `emit`, for a name that no array has: which array other
/// programs and papers call so, else the nearest name, else all names.
void check_array_names(const std::vector<std::string>& emit);

}  // namespace attn::cli
