// Copies JSON without interpreting it, so that numbers keep their digits.
#pragma once

#include <cstddef>
#include <string>

#include "io/file/source.hpp"

namespace attn::io {

/// The value in text[begin, end), without the blanks between its tokens. Numbers are not read: 1.0,
/// 1e400 and 2^70 stay as they are written. Brackets must be matched and of limited depth, as
/// JsonDocument's are. Errors: kind input for text that is not JSON.
std::string copy_json(const Source& source, std::size_t begin, std::size_t end);

}  // namespace attn::io
