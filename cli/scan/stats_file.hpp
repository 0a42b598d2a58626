// A file of statistics: JSON that is plotted and compared as arrays, with the sums that are joined.
#pragma once

#include <string>

#include "cli/scan/scan_stats.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// One line. Equal statistics give equal bytes.
std::string stats_text(const ScanStats& stats);

/// Errors: kind input for anything that stats_text() does not write.
ScanStats read_stats(const io::InputFile& file);

}  // namespace attn::cli
