// Errors of planning, at the setting or operand that is wrong.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace attn {

/// "what was found; what was expected", of kind usage.
[[noreturn]] inline void refuse(const std::string& key, const std::string& message) {
    throw SettingError(ErrorKind::usage, key, message);
}

}  // namespace attn
