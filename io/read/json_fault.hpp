// Where a JSON text breaks off.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "io/file/source.hpp"

namespace attn::io {

/// Says `message` of the byte at `offset`; a comma with nothing behind it is called that, at its
/// own place. The text is taken to end at `end`. Errors: kind input, always.
[[noreturn]] void fail_in_json(const Source& source, std::size_t offset, const std::string& message,
                               std::size_t end = std::string_view::npos);

}  // namespace attn::io
