// `attn plot RESULT ...`: pictures of existing results.
#pragma once

#include <string>
#include <vector>

#include "io/plot/heat_map.hpp"
#include "io/read/csv.hpp"

namespace attn::cli {

struct PlotRequest {
    std::vector<std::string> results;  ///< paths, or - for standard input; several are layers
    std::string output;                ///< a path; empty: the terminal
    std::string axes;                  ///< what the axes of other programs' arrays count, or empty
    std::vector<std::string> tokens, context_tokens;  ///< replace the results' own, or empty
    std::vector<std::string> arrays;                  ///< to draw; empty: the weights, else all
    std::vector<std::size_t> heads;                   ///< to draw; empty: all
    std::vector<std::size_t> layers;                  ///< to draw; empty: all
    std::string title;  ///< empty: derived from the array and the settings
    io::ColorScale scale = io::ColorScale::automatic;
    io::CsvStyle csv;
};

/// Draws a result in any format that attn writes, or the one array of a file; several results are
/// layers. Cells are masked by the result's own `mask`, or else by the rules of its config. `notes`
/// states how a file without a description is interpreted. `terminal_notes` holds usual matters
/// that only a terminal shows. Errors: kinds usage, input and io.
void plot(const PlotRequest& request, std::vector<std::string>& notes,
          std::vector<std::string>& terminal_notes);

}  // namespace attn::cli
