#include "io/text/wrap.hpp"

#include <algorithm>
#include <cctype>

#include "io/text/display_width.hpp"

namespace attn::io {
namespace {

std::size_t word_end(std::string_view text, std::size_t from = 0) {
    return std::min(text.find(' ', from), text.size());
}

/// The end of the words at the start of `text` that a line of this width does not separate.
std::size_t unit_end(std::string_view text, std::size_t columns) {
    const auto is_number = [&](std::size_t at) {
        at = text.find_first_not_of("-[", at);
        return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    const std::size_t word = word_end(text);
    std::size_t end = word;
    if (!is_number(0) && is_number(end + 1)) end = word_end(text, end + 1);
    if (end + 1 < text.size() && text[end + 1] == '%') end = word_end(text, end + 1);
    return display_width(text.substr(0, end)) <= columns ? end : word;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    std::size_t from) {
    std::string words(text), lines;
    std::replace(words.begin(), words.end(), '\n', ' ');
    std::size_t column = from;
    const std::size_t first = std::min(words.find_first_not_of(' '), words.size());
    for (text = std::string_view(words).substr(first); !text.empty();) {
        const std::size_t end = unit_end(text, columns - std::min(indent, columns));
        const std::size_t width = display_width(text.substr(0, end));
        const bool is_first = text.size() == words.size() - first;
        const bool fits = is_first || column + 1 + width <= columns;
        if (!is_first) lines += fits ? " " : '\n' + std::string(indent, ' ');
        column = (fits ? column + (is_first ? 0 : 1) : indent) + width;
        lines += text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

}  // namespace attn::io
