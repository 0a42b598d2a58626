// Words of a command, and lines of a text.
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

}  // namespace attn::test
