// Errors in JSON text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "io/file/source.hpp"

namespace attn::io {

/// Reports `message` at the byte at `offset`; a trailing comma is reported as such, at its own
/// location. The text is treated as ending at `end`. Always throws, kind input.
[[noreturn]] void fail_in_json(const Source& source, std::size_t offset, const std::string& message,
                               std::size_t end = std::string_view::npos);

}  // namespace attn::io
