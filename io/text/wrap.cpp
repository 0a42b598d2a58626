#include "io/text/wrap.hpp"

#include <algorithm>

#include "io/text/display_width.hpp"

namespace attn::io {

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    std::size_t from) {
    std::string lines;
    std::size_t column = from;
    bool is_first = true;
    constexpr std::string_view blanks = " \n";
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
        if (text.empty()) return lines;
        const std::string_view word = text.substr(0, text.find_first_of(blanks));
        text.remove_prefix(word.size());
        const std::size_t width = display_width(word);
        if (!is_first && column + 1 + width > columns) {
            lines += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (!is_first) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += width;
        is_first = false;
    }
}

}  // namespace attn::io
