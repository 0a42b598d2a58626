// Words of a command, and lines of a text.
#pragma once

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

/// Without their breaks.
Words lines_of(const std::string& text);

}  // namespace attn::test
