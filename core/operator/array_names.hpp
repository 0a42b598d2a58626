// Messages about unknown array names.
#pragma once

#include <string>
#include <string_view>

namespace attn {

/// "unknown array "probs"; here it is attention_weights": the array that other programs and papers
/// call so, else the nearest name, else all names.
std::string unknown_array(std::string_view name);

}  // namespace attn
