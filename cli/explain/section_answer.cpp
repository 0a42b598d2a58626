// The start and end of an explanation: the keys that the query attends to most, and its new vector.
#include <algorithm>
#include <cmath>
#include <iterator>
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

bool has_name(const Explanation& e, std::size_t key) {
    return e.key_name(key) != std::to_string(key);
}

/// The label, with the index if another key has the same label; "key 3" if it has none.
std::string shown_name(const Explanation& e, std::size_t key) {
    const std::string number = std::to_string(key);
    if (!has_name(e, key)) return "key " + number;
    std::string name = e.key_name(key);
    for (std::size_t other = 0; other < e.plan.kv_len; ++other)
        if (other != key && e.key_name(other) == name) return name + " (" + number + ")";
    return name;
}

/// The named weights, largest first, and the sum of the others.
struct LargestWeights {
    explicit LargestWeights(const Row& weights)
        : total(std::accumulate(weights.begin(), weights.end(), 0.0)) {
        if (std::isnan(total)) return;
        std::vector<std::size_t> order(weights.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
        while (!order.empty() && weights[order.back()] == 0) order.pop_back();
        double named = 0;
        for (std::size_t key : order) {
            const bool is_enough = keys.size() >= max_named || named >= nearly_all * total;
            if (others == 0 && is_enough && order.size() - keys.size() > 1)
                others = order.size() - keys.size();
            if (others == 0) keys.push_back(key);
            (others == 0 ? named : rest) += weights[key];
        }
    }

    double total, rest = 0;  // rest: sum of the others
    std::vector<std::size_t> keys;
    std::size_t others = 0;
};

/// A share that is rounded to 0 is still positive.
double share_of_sink(const Explanation& e, std::size_t head, double total) {
    const double share = e.arrays.has("exp_sink") ? e.arrays.number("exp_sink", head) /
                                                        e.arrays.number("softmax_denominator", head)
                                                  : 1 - total;
    return std::max(share, std::numeric_limits<double>::min());
}

/// "0.3142 of the value of garden, -0.2 of it": the weights need not sum to 1.
std::string amounts_text(const Explanation& e, std::size_t head) {
    const Row weights = e.shares(head);
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(weights[a]) > std::abs(weights[b]);
    });
    std::string text;
    std::size_t named = 0;
    for (std::size_t key : order) {
        if (weights[key] == 0) continue;
        if (++named > max_named) continue;
        text += (text.empty() ? "" : ", ") + e.format.number(weights[key]) +
                (named == 1 ? " of the value of " : " of ") + shown_name(e, key);
    }
    if (named > max_named) text += " and less of " + std::to_string(named - max_named) + " more";
    return text.empty() ? "nothing, every weight is 0" : text;
}

/// "garden 86 %, it 5 % and 3 more 9 %".
std::string shares_text(const Explanation& e, std::size_t head) {
    if (e.plan.rule) return amounts_text(e, head);
    const Row weights = e.shares(head);
    const LargestWeights largest(weights);
    if (std::isnan(largest.total)) return "no key that can be named: its weights are nan";
    std::string text;
    for (std::size_t key : largest.keys)
        text += (text.empty() ? "" : ", ") + shown_name(e, key) +
                (has_name(e, key) ? " " : " at ") + percent(weights[key]);
    if (largest.others != 0)
        text += " and " + std::to_string(largest.others) + " more " + percent(largest.rest);
    if (text.empty()) {
        const Row mask = e.arrays.row("mask", head);
        const bool masks_all = std::count(mask.begin(), mask.end(), 0.0) == std::ssize(mask);
        text = masks_all ? "nothing, every key is masked" : "nothing, every weight is 0";
    }
    // Renormalized weights include the sink's share.
    if (!e.settings().sink.empty() && e.settings().mask_method == MaskMethod::neg_inf &&
        !e.has_only_kept())
        text += std::string(largest.keys.empty() ? "; " : ", ") + "the sink keeps " +
                percent(share_of_sink(e, head, largest.total));
    return text;
}

/// "86 % of the value of garden, 5 % of that of it and 9 % of 3 others".
std::string mixed_of(const Explanation& e) {
    if (e.plan.dropout.p != 0) return "the values times the weights that dropout leaves";
    if (e.plan.rule)
        return "the state after its step, read by its query" +
               std::string(e.plan.operands.past_state.empty() ? "" : ", what came before included");
    const Row weights = e.shares(0);
    const LargestWeights largest(weights);
    std::string text;
    for (std::size_t key : largest.keys) {
        const bool is_last = largest.others == 0 && key == largest.keys.back();
        text += (text.empty() ? ""
                 : is_last    ? " and "
                              : ", ") +
                percent(weights[key]) + (text.empty() ? " of the value of " : " of that of ") +
                shown_name(e, key);
    }
    if (largest.others != 0)
        text +=
            " and " + percent(largest.rest) + " of " + std::to_string(largest.others) + " others";
    return text.empty() ? "zeros, since no value has a weight" : text;
}

std::string called(const Explanation& e) {
    return e.labels.queries.empty() ? e.query_name() : "\"" + e.query_name() + "\"";
}

}  // namespace

void write_answer(Explanation& e) {
    const Plan& g = e.plan;
    std::string who = called(e);
    if (who.starts_with('q')) who[0] = 'Q';
    const std::string when = g.dropout.p == 0    ? ""
                             : e.has_only_kept() ? ", before dropout, of the keys that it kept"
                                                 : ", before dropout";
    const std::string start = who + (g.rule ? " takes" : " looks at") + when + ":";
    if (g.heads == 1) return e.page->paragraph(start + " " + shares_text(e, 0) + ".");
    const bool all = g.heads <= max_heads_listed;
    std::vector<std::string> items;
    for (std::size_t head = all ? 0 : e.first_head; head < (all ? g.heads : e.end_head); ++head)
        items.push_back("head " + std::to_string(head) + ": " + shares_text(e, head));
    e.page->paragraph(start);
    e.page->list(items);
}

std::string ending_words(const Explanation& e) {
    const Plan& g = e.plan;
    const bool is_concatenated = g.projects || g.packed;
    const std::string heads = std::to_string(g.heads) + " heads";
    const std::string made = g.heads == 1      ? mixed_of(e)
                             : is_concatenated ? "what its " + heads + " have made, side by side"
                                               : "one for each of " + heads;
    return "This is the new vector of " + called(e) + ": " + made +
           (g.parameters.out_proj ? ", projected by W_out." : ".");
}

}  // namespace attn::cli
