// How wide the place is that text for people goes to.
#pragma once

#include <cstddef>
#include <string_view>

namespace attn::io {

/// `said` is the environment's COLUMNS, which wins; `wide` is what the terminal itself says, 0
/// where there is none: then 80. At most 10000.
std::size_t screen_columns(std::string_view said, std::size_t wide);

/// The same of what is open at this descriptor.
std::size_t screen_columns(int descriptor);

}  // namespace attn::io
