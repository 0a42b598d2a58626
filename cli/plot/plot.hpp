// `attn plot RESULT`: pictures of a result that is computed already.
#pragma once

#include <string>
#include <vector>

#include "io/plot/heat_map.hpp"

namespace attn::cli {

struct PlotRequest {
    std::string result;               ///< a path, or - for standard input
    std::string output;               ///< a path; empty: the terminal
    std::vector<std::string> arrays;  ///< that are drawn; empty: the weights, else all
    io::ColorScale scale = io::ColorScale::automatic;
};

/// Draws a result in any format that attn writes, or the one matrix of a file. Cells are blocked
/// where the result's own `mask` says so, else where its config does and the weight is 0. Errors:
/// kinds usage, input and io.
void plot(const PlotRequest& request);

}  // namespace attn::cli
