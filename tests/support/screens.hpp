// Screens in Markdown: a command after "$ ", and what it prints.
#pragma once

#include "tests/support/support.hpp"

namespace attn::test {

/// Calls use(command, printed) for each code block that begins with a command, which continues
/// after a backslash at the end of a line. Their number.
template <class Use>
std::size_t for_each_screen(const std::string& text, const Use& use) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("```\n$ ", at)) != std::string::npos; ++count) {
        const std::size_t start = at + 6;
        std::size_t line_end = text.find('\n', start);
        while (text[line_end - 1] == '\\') line_end = text.find('\n', line_end + 1);
        at = text.find("```", line_end);
        use(text.substr(start, line_end - start), text.substr(line_end + 1, at - line_end - 1));
        at += 3;
    }
    return count;
}

}  // namespace attn::test
