// The inputs built into the program: `--example NAME`.
#pragma once

#include "io/read/number_array.hpp"

namespace attn::io {

struct Example {
    NumberArray inputs;                            ///< empty if the example is text
    std::vector<std::string> tokens;               ///< one per row, or empty
    std::string text;                              ///< for `--text`, or empty
    NumberArray query = {}, key = {}, value = {};  ///< for `attn sdpa`, or empty
};

/// Names in the order of help. `find_example` takes one of them.
inline constexpr std::string_view example_names = "journey|journey-twice|pair|sentence|softmax",
                                  layer_example_names = "journey|journey-twice|pair|sentence";
Example find_example(std::string_view name);

}  // namespace attn::io
