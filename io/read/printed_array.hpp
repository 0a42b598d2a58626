// Arrays as Python prints them.
#pragma once

#include <memory>
#include <string_view>

#include "io/file/source.hpp"

namespace attn::io {

/// Whether the text begins with tensor(, array( or Array(, or with a line that names such an array.
bool has_printed_opening(std::string_view text);

/// Whether the text is one: tensor([[...]]) of PyTorch, array([[...]]) of NumPy, Array([[...]]) of
/// JAX, or lists without commas between their elements, as NumPy's str() has them.
bool is_printed_array(std::string_view text);

/// The same array in JSON, of the same name and lines; arrays with names above them as an object.
/// What follows the numbers, such as a dtype,
/// is left out. Errors: kind input, for "..." in place of elements, and for words.
std::shared_ptr<const Source> json_of_printed_array(const Source& printed);

}  // namespace attn::io
