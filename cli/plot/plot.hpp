// `attn plot RESULT ...`: pictures of a result that is computed already.
#pragma once

#include <string>
#include <vector>

#include "io/plot/heat_map.hpp"
#include "io/read/csv.hpp"

namespace attn::cli {

struct PlotRequest {
    std::vector<std::string> results;  ///< paths, or - for standard input; several: layers
    std::string output;                ///< a path; empty: the terminal
    std::string axes;                  ///< what the axes of other programs' arrays count, or empty
    std::vector<std::string> tokens, context_tokens;  ///< instead of the results' own, or empty
    std::vector<std::string> arrays;  ///< that are drawn; empty: the weights, else all
    std::vector<std::size_t> heads;   ///< that are drawn; empty: all
    std::string title;                ///< empty: what the array and the settings say
    io::ColorScale scale = io::ColorScale::automatic;
    io::CsvStyle csv;
};

/// Draws a result in any format that attn writes, or the one array of a file; several as layers.
/// Cells are blocked where the result's own `mask` says so, else where its config does and the
/// weight is 0. What a file is taken for that does not say it goes to `notes`, what is
/// usual and worth a note on a terminal only to `terminal_notes`. Errors: kinds usage,
/// input and io.
void plot(const PlotRequest& request, std::vector<std::string>& notes,
          std::vector<std::string>& terminal_notes);

}  // namespace attn::cli
