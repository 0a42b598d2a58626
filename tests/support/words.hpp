// Words of a command, lines of a text, and whether a text holds another.
#pragma once

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace attn::test {

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The same where the second are in braces.
inline Words with(const Words& words, const Words& more) {
    return words + more;
}

/// Those of a line, between blanks.
inline Words words_in(const std::string& line) {
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
}

/// "--d-out" of the key "d_out".
inline std::string flag_of_key(std::string key) {
    std::replace(key.begin(), key.end(), '_', '-');
    return "--" + key;
}

/// Without their breaks.
Words lines_of(const std::string& text);

/// The lines of a picture on a terminal that begin with one of these labels.
inline Words rows_of(const std::string& picture, const Words& labels) {
    Words rows = lines_of(picture);
    std::erase_if(rows, [&](const std::string& line) {
        return std::none_of(labels.begin(), labels.end(), [&](const std::string& label) {
            return line.starts_with(label + " ");
        });
    });
    return rows;
}

/// "key 1 to 3" or "key 2", as pictures name their cells.
struct Range {
    std::size_t first, last;
};
inline Range range_in(const std::string& text) {
    const std::size_t first = std::stoul(text.substr(text.find(' ') + 1)), to = text.find(" to ");
    return {first, to == std::string::npos ? first : std::stoul(text.substr(to + 4))};
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

inline std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
    return count;
}

}  // namespace attn::test
