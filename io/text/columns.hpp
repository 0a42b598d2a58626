// Cells of text as aligned columns.
#pragma once

#include <string>
#include <vector>

namespace attn::io {

using Cells = std::vector<std::vector<std::string>>;

/// One line per row; the first column is aligned left, the others right, two blanks between them.
/// Rows have as many cells as the first one.
std::string align_columns(const Cells& cells);

}  // namespace attn::io
