// The lines of a text, without a string stream: those catch std::bad_alloc and end early.
#pragma once

#include <string_view>
#include <vector>

namespace attn::io {

/// Each line without its line feed; a last one that has none counts.
inline std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

}  // namespace attn::io
