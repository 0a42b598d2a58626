// The start and end of an explanation: the keys that the query attends to most, and its new vector.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cli/explain/explanation.hpp"

namespace attn::cli {
namespace {

/// Keys are named up to this number, or up to this part of the total weight.
constexpr std::size_t max_named = 5;
constexpr double nearly_all = 0.9;

/// With more heads, only the shown ones are listed.
constexpr std::size_t max_heads_listed = 16;

std::string percent(double share) {
    if (!(share >= 0 && share < 100)) return "(" + setting_text(share) + ")";  // other programs
    if (share > 0 && share < 0.005) return "under 1 %";
    if (share > 0.995 && share < 0.9999995) return "over 99 %";
    return std::to_string(std::lround(100 * share)) + " %";
}

/// The label, with the index if another key has the same label; "key 3" if it has none.
std::string shown_name(const Explanation& e, std::size_t key) {
    const std::string number = std::to_string(key);
    std::string name = e.key_name(key);
    if (name == number) return "key " + number;
    for (std::size_t other = 0; other < e.plan.kv_len; ++other)
        if (other != key && e.key_name(other) == name) return name + " (" + number + ")";
    return name;
}

/// The keys whose weights are not 0, the largest first.
std::vector<std::size_t> by_size(const Row& weights) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t key) { return weights[key] == 0; });
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(weights[a]) > std::abs(weights[b]);
    });
    return order;
}

/// The named weights, largest first, and the sum of the others.
struct LargestWeights {
    explicit LargestWeights(const Row& weights)
        : total(std::accumulate(weights.begin(), weights.end(), 0.0)) {
        if (std::isnan(total)) return;
        keys = by_size(weights);
        double named = 0;
        std::size_t count = 0;
        while (count < keys.size() && (count < max_named && named < nearly_all * total))
            named += weights[keys[count++]];
        if (keys.size() - count < 2) return;
        others = keys.size() - count;
        for (std::size_t i = count; i < keys.size(); ++i) rest += weights[keys[i]];
        keys.resize(count);
    }

    double total, rest = 0;  // rest: sum of the others
    std::vector<std::size_t> keys;
    std::size_t others = 0;
};

/// A share that is rounded to 0 is still positive.
double share_of_sink(const Explanation& e, std::size_t head, double total) {
    const double share = e.arrays.has("exp_sink") ? e.arrays.row("exp_sink", head)[0] /
                                                        e.arrays.row("softmax_denominator", head)[0]
                                                  : 1 - total;
    return std::max(share, std::numeric_limits<double>::min());
}

/// "0.3142 of the value of garden, -0.2 of it": the weights need not sum to 1.
std::string amounts_text(const Explanation& e, std::size_t head) {
    const Row weights = e.shares(head);
    const std::vector<std::size_t> order = by_size(weights);
    std::string text;
    for (std::size_t i = 0; i < std::min(order.size(), max_named); ++i) {
        (text += i == 0 ? "" : ", ") += e.format.number(weights[order[i]]);
        (text += i == 0 ? " of the value of " : " of ") += shown_name(e, order[i]);
    }
    if (order.size() > max_named)
        text += " and less of " + std::to_string(order.size() - max_named) + " more";
    return text.empty() ? "nothing, every weight is 0" : text;
}

/// "garden 86 %, it 5 % and 3 more 9 %".
std::string shares_text(const Explanation& e, std::size_t head) {
    if (e.plan.config.rule) return amounts_text(e, head);
    const Row weights = e.shares(head);
    const LargestWeights largest(weights);
    if (std::isnan(largest.total)) return "no key that can be named: its weights are nan";
    std::string text;
    for (std::size_t key : largest.keys) {
        const bool has_name = e.key_name(key) != std::to_string(key);
        (text += text.empty() ? "" : ", ") += shown_name(e, key);
        (text += has_name ? " " : " at ") += percent(weights[key]);
    }
    if (largest.others != 0)
        text += " and " + std::to_string(largest.others) + " more " + percent(largest.rest);
    if (text.empty()) {
        const Row mask = e.arrays.row("mask", head);
        const bool masks_all = std::count(mask.begin(), mask.end(), 0.0) == std::ssize(mask);
        text = masks_all ? "nothing, every key is masked" : "nothing, every weight is 0";
    }
    // Renormalized weights include the sink's share.
    if (!e.plan.config.sink.empty() && e.plan.config.mask_method == MaskMethod::neg_inf &&
        !e.has_only_kept()) {
        text += largest.keys.empty() ? "; " : ", ";
        text += "the sink keeps " + percent(share_of_sink(e, head, largest.total));
    }
    return text;
}

}  // namespace

std::string answer_words(const Explanation& e) {
    if (e.plan.heads == 1) return shares_text(e, 0);
    const bool all = e.plan.heads <= max_heads_listed;
    std::string items;
    for (std::size_t head = all ? 0 : e.first_head; head < (all ? e.plan.heads : e.end_head);
         ++head)
        items += "- head " + std::to_string(head) + ": " + shares_text(e, head) + "\n";
    return items;
}

std::string shares_of_values(const Explanation& e) {
    const Row weights = e.shares(0);
    const LargestWeights largest(weights);
    std::string text;
    for (std::size_t key : largest.keys) {
        const bool is_first = text.empty(),
                   is_last = largest.others == 0 && key == largest.keys.back();
        if (!is_first) text += is_last ? " and " : ", ";
        text += percent(weights[key]);
        (text += is_first ? " of the value of " : " of that of ") += shown_name(e, key);
    }
    if (largest.others != 0)
        text +=
            " and " + percent(largest.rest) + " of " + std::to_string(largest.others) + " others";
    return text.empty() ? "zeros, since no value has a weight" : text;
}

}  // namespace attn::cli
