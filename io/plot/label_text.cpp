#include "io/plot/text_line.hpp"

#include "io/text/display_width.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
std::string label_text(std::string_view text, std::size_t columns) {
    constexpr std::size_t max_marks = 8;  // per letter; some texts stack thousands
    std::string label, short_label;
    std::size_t width = 0, marks = 0;
    const std::string shown = printable(text);
    for (std::string_view rest = shown; !rest.empty();) {
        std::string one;
        append_utf8(one, take_character(rest));
        const std::size_t more = display_width(one);
        marks = more == 0 ? marks + 1 : 0;
        if (marks > max_marks) continue;
        width += more;
        if (width > columns) return short_label + "…";
        label += one;
        if (width < columns) short_label = label;
    }
    return label;
}

}  // namespace attn::io
