// Dropout masks that other draws make.
#pragma once

#include <string>
#include <vector>

namespace attn {

struct Problem;

struct OtherDropout {
    std::string words;  ///< "another kernel: flash"
    std::string flag;   ///< with which attn draws it; or empty
    std::vector<char> kept;
};

/// Sets other_dropouts: the masks of other devices, kernels and calls, each once.
void draw_other_dropouts(Problem& problem);

}  // namespace attn
