// Texts that stand in pictures; see label_text.hpp.
#include "io/plot/label_text.hpp"

#include "io/display_width.hpp"

namespace attn::io {
namespace {

constexpr char32_t replacement = 0xfffd;

/// Surrogates and the two code points that are no characters are not allowed in XML.
bool is_character(char32_t code) {
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) && code != 0xfffe && code != 0xffff;
}

char32_t shown(char32_t code) {
    if (code < 0x20) return 0x2400 + code;
    if (code == 0x7f) return 0x2421;
    if (code >= 0x80 && code < 0xa0) return replacement;
    return code;
}

void append_utf8(std::string& text, char32_t code) {
    const auto append = [&](char32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return append(code);
    if (code < 0x800) {
        append(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        append(0xe0 | code >> 12);
        append(0x80 | (code >> 6 & 0x3f));
    } else {
        append(0xf0 | code >> 18);
        append(0x80 | (code >> 12 & 0x3f));
        append(0x80 | (code >> 6 & 0x3f));
    }
    append(0x80 | (code & 0x3f));
}

}  // namespace

char32_t take_character(std::string_view& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    char32_t code = length == 1 ? first : first & (0x7fu >> length);
    bool is_whole = length != 0 && length <= text.size();
    for (std::size_t i = 1; is_whole && i < length; ++i) {
        is_whole = (byte(i) & 0xc0) == 0x80;
        code = code << 6 | (byte(i) & 0x3fu);
    }
    const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (!is_whole || is_overlong) {
        text.remove_prefix(1);
        return replacement;
    }
    text.remove_prefix(length);
    return is_character(code) ? code : replacement;
}

std::string label_text(std::string_view text, std::size_t columns) {
    std::string label, short_label;
    std::size_t width = 0;
    while (!text.empty()) {
        std::string one;
        append_utf8(one, shown(take_character(text)));
        width += display_width(one);
        if (width > columns) return short_label + "…";
        label += one;
        if (width < columns) short_label = label;
    }
    return label;
}

}  // namespace attn::io
