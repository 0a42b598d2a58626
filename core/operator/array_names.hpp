// What to say of a name that no array has.
#pragma once

#include <string>
#include <string_view>

namespace attn {

/// "unknown array "probs"; here it is attention_weights": what other programs and papers call by
/// this name, else the nearest name, else all names.
std::string unknown_array(std::string_view name);

}  // namespace attn
