#include "io/text/columns.hpp"

#include <algorithm>

#include "io/text/display_width.hpp"

namespace attn::io {

std::string align_columns(const Cells& cells) {
    std::vector<std::size_t> widths(cells.empty() ? 0 : cells[0].size(), 0);
    for (const auto& row : cells)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], display_width(row[i]));
    std::string text;
    for (const auto& row : cells) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string space(widths[i] - display_width(row[i]), ' ');
            text += i == 0 ? row[i] + space : "  " + space + row[i];
        }
        text += '\n';
    }
    return text;
}

}  // namespace attn::io
