#include "core/base/did_you_mean.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace attn {
namespace {

/// Optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

std::string plain(std::string_view word) {
    std::string text(word.substr(0, 64));  // longer than any name; bounds the work
    for (char& c : text)
        c = c == '_' ? '-' : (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
    return text;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string meant = plain(word);
    const bool is_long = meant.size() > 3;
    std::string best;
    // One edit in a short name, another for every four letters of a longer one; none in a single
    // letter.
    const std::size_t max_edits = meant.size() < 2 ? 0 : std::max<std::size_t>(1, meant.size() / 4);
    std::pair<std::size_t, std::size_t> nearest{max_edits + 1, 0};
    for (const std::string& candidate : candidates) {
        const std::string known = plain(candidate);
        // "weights" is more likely a part of a name than a typo.
        const std::size_t edits = distance(meant, known);
        std::size_t d = edits;
        // One or more of the words that make up the name, separated by '-'.
        if (known.size() > 3 && ("-" + meant + "-").find("-" + known + "-") != std::string::npos)
            d = std::min<std::size_t>(d, 2);
        if (is_long && known.find(meant) != std::string::npos) d = std::min<std::size_t>(d, 1);
        if (std::pair(d, edits) < nearest) {
            best = candidate;
            nearest = {d, edits};
        }
    }
    return best;
}

std::string nearest_divisors(std::uint64_t width, std::uint64_t heads) {
    std::uint64_t below = 1, above = width;
    for (std::uint64_t i = 1; i * i <= width; ++i) {
        if (width % i != 0) continue;
        for (std::uint64_t divisor : {i, width / i}) {
            if (divisor < heads) below = std::max(below, divisor);
            if (divisor > heads) above = std::min(above, divisor);
        }
    }
    if (heads > width) return std::to_string(width);
    return std::to_string(below) + " or " + std::to_string(above);
}

std::string nearest_multiples(std::uint64_t width, std::uint64_t heads) {
    const std::uint64_t below = width - width % heads;
    return (below == 0 ? "" : std::to_string(below) + " or ") + std::to_string(below + heads);
}

}  // namespace attn
