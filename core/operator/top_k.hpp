// The keys of a query's highest scores: --top-k.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace attn {

/// Of the keys that are not 0 in `kept`, keeps the `count` of the highest scores, and sets the
/// others to 0. Of equal scores the first ones are kept; NaN is the highest, as in torch.topk.
template <class T, class Flag>
void keep_highest(std::span<const T> scores, std::span<Flag> kept, std::size_t count) {
    std::vector<std::size_t> keys;
    for (std::size_t k = 0; k < scores.size(); ++k)
        if (kept[k] != Flag{0}) keys.push_back(k);
    if (keys.size() <= count) return;
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(keys.begin(), end, keys.end(), [&](std::size_t a, std::size_t b) {
        const bool a_is_nan = std::isnan(scores[a]), b_is_nan = std::isnan(scores[b]);
        if (a_is_nan != b_is_nan) return a_is_nan;
        return scores[a] > scores[b] || (!(scores[a] < scores[b]) && a < b);
    });
    std::for_each(end, keys.end(), [&](std::size_t k) { kept[k] = Flag{0}; });
}

}  // namespace attn
