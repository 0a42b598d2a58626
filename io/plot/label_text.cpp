// Texts that stand in pictures; see label_text.hpp.
#include "io/plot/label_text.hpp"

#include "io/text/display_width.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// Two code points of UTF-8 are not allowed in XML.
bool is_character(char32_t code) {
    return code != 0xfffe && code != 0xffff;
}

char32_t shown(char32_t code) {
    if (code < 0x20) return 0x2400 + code;
    if (code == 0x7f) return 0x2421;
    return is_control(code) || !is_character(code) ? replacement : code;
}

}  // namespace

std::string label_text(std::string_view text, std::size_t columns) {
    constexpr std::size_t most_marks = 8;  // above one letter; some texts stack thousands
    std::string label, short_label;
    std::size_t width = 0, marks = 0;
    while (!text.empty()) {
        std::string one;
        append_utf8(one, shown(take_character(text)));
        const std::size_t more = display_width(one);
        marks = more == 0 ? marks + 1 : 0;
        if (marks > most_marks) continue;
        width += more;
        if (width > columns) return short_label + "…";
        label += one;
        if (width < columns) short_label = label;
    }
    return label;
}

}  // namespace attn::io
