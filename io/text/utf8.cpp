// Characters of UTF-8 texts; see utf8.hpp.
#include "io/text/utf8.hpp"

namespace attn::io {

std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
        return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const bool second = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
        return second && follows(2, 0x80, 0xbf) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const bool second = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
        return second && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
    }
    return 0;
}

char32_t take_character(std::string_view& text) {
    const std::size_t size = character_size(text);
    if (size == 0) {
        text.remove_prefix(1);
        return replacement;
    }
    const auto first = static_cast<unsigned char>(text.front());
    char32_t code = size == 1 ? first : first & (0x7fu >> size);
    for (std::size_t i = 1; i < size; ++i)
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    text.remove_prefix(size);
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

bool is_control(char32_t code) {
    const auto is_in = [code](char32_t first, char32_t last) {
        return code >= first && code <= last;
    };
    return code < 0x20 || is_in(0x7f, 0x9f) || code == 0x061c || is_in(0x200e, 0x200f) ||
           is_in(0x2028, 0x202e) || is_in(0x2066, 0x2069);
}

std::string printable(std::string_view text) {
    std::string line;
    while (!text.empty()) {
        const char32_t code = take_character(text);
        append_utf8(line, is_control(code) ? U'?' : code);
    }
    return line;
}

}  // namespace attn::io
