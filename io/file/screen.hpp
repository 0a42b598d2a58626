// The width of text for people.
#pragma once

#include <cstddef>
#include <string_view>

namespace attn::io {

/// `variable` is the environment variable COLUMNS, which takes precedence; `wide` is the width that
/// the terminal reports, 0 without a terminal: then 80. At most 10000.
std::size_t screen_columns(std::string_view variable, std::size_t wide);

/// The same for the file at this descriptor.
std::size_t screen_columns(int descriptor);

}  // namespace attn::io
