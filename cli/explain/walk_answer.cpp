// What the walk opens with: the keys that the query looks at most.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/explain/walk.hpp"

namespace attn::cli {
namespace {

/// Named until these many, or until this part of the whole.
constexpr std::size_t most_named = 5;
constexpr double nearly_all = 0.9;

/// Of more heads only those are told that are shown.
constexpr std::size_t most_told = 16;

std::string percent(double share) {
    if (share > 0 && share < 0.005) return "under 1 %";
    if (share > 0.995 && share < 0.9999995) return "over 99 %";
    return std::to_string(std::lround(100 * share)) + " %";
}

/// The label; with the number where another key is called the same.
std::string told_name(const Walk& walk, std::size_t key) {
    std::string name = walk.key_name(key);
    const std::string number = std::to_string(key);
    if (name == number) return "key " + number + " at";
    for (std::size_t other = 0; other < walk.plan.kv_len; ++other)
        if (other != key && walk.key_name(other) == name) return name + " (" + number + ")";
    return name;
}

/// "garden 86 %, it 5 % and 3 more 9 %".
std::string looked_at(const Walk& walk, std::size_t head) {
    const Row weights = walk.shares(head);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (std::isnan(total)) return "no key that can be named: its weights are nan";
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    while (!order.empty() && weights[order.back()] == 0) order.pop_back();
    std::string text;
    double told = 0;
    std::size_t named = 0;
    for (; named < order.size(); ++named) {
        const bool is_enough = named >= most_named || told >= nearly_all * total;
        if (is_enough && order.size() - named > 1) break;
        const double weight = weights[order[named]];
        text += (text.empty() ? "" : ", ") + told_name(walk, order[named]) + " " + percent(weight);
        told += weight;
    }
    if (named < order.size())
        text += " and " + std::to_string(order.size() - named) + " more " + percent(total - told);
    if (order.empty()) text = "nothing, every key is blocked";
    if (!walk.settings().sink.empty())
        text += std::string(order.empty() ? "; " : ", ") + "the sink keeps " + percent(1 - total);
    return text;
}

}  // namespace

void walk_answer(Walk& walk) {
    const Plan& g = walk.plan;
    const std::string label = walk.query_label();
    const std::size_t quote = label.find('"');
    const std::string who =
        (quote == std::string::npos ? "Query " + label : label.substr(quote)) + " looks at";
    const std::string before = g.dropout.p == 0 ? "" : ", before dropout";
    if (g.heads == 1) return walk.page->paragraph(who + before + ": " + looked_at(walk, 0) + ".");
    const bool all = g.heads <= most_told;
    std::vector<std::string> items;
    for (std::size_t head = all ? 0 : walk.first_head; head < (all ? g.heads : walk.end_head);
         ++head)
        items.push_back("head " + std::to_string(head) + ": " + looked_at(walk, head));
    walk.page->paragraph(who + before + ":");
    walk.page->list(items);
}

}  // namespace attn::cli
