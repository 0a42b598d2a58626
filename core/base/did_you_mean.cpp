// The known word that a mistyped one was probably meant to be; see did_you_mean.hpp.
#include "core/base/did_you_mean.hpp"

#include <algorithm>

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

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    word = word.substr(0, 64);  // longer than any name; bounds the work
    std::string best;
    std::size_t best_distance = static_cast<std::size_t>(-1);
    for (const std::string& candidate : candidates) {
        // "weights" is rather a piece of a name than a slip.
        const bool piece = word.size() > 3 && candidate.find(word) != std::string::npos;
        const std::size_t d = piece ? 1 : distance(word, candidate);
        if (d < best_distance) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}

}  // namespace attn
