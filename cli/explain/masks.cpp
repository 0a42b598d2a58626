// One head of the explanation: which keys are masked, and by which rules.
#include <algorithm>

#include "cli/explain/explanation.hpp"
#include "core/layer/mask_rows.hpp"

namespace attn::cli {
namespace {

/// `2 of 6 keys: 2 "starts" to 3 "with"`: those at which `allowed` is 0.
std::string counted_keys(const HeadView& h, const Row& allowed) {
    std::string text = std::to_string(std::count(allowed.begin(), allowed.end(), 0.0));
    (text += " of ") += std::to_string(allowed.size()) + " keys";
    std::size_t runs = 0;
    for (std::size_t key = 0; key < allowed.size(); ++key) {
        if (allowed[key] != 0) continue;
        const std::size_t first = key;
        while (key + 1 < allowed.size() && allowed[key + 1] == 0) ++key;
        text += runs == 0 ? ": " : ", ";
        if (++runs > h.e.format.most()) return text + "...";
        text += h.e.key_label(first);
        if (key != first) text += " to " + h.e.key_label(key);
    }
    return text;
}

/// "p", "p - 2" or "p + 2": the end of a window.
std::string end_of_window(char sign, std::int64_t width) {
    return width == 0 ? "p" : std::string("p ") + sign + " " + std::to_string(width);
}

/// A rule that masks keys: the array of allowed keys, and the operand that it comes from.
struct Rule {
    ArrayId allowed;
    std::string operand;
};

std::vector<Rule> rules_of(const HeadView& h) {
    const Explanation& e = h.e;
    std::vector<Rule> rules;
    for (std::size_t i = 0; i < e.source.additive_masks.size(); ++i)
        rules.push_back({allowed_by_biases[i], e.operand_source(e.source.additive_masks[i])});
    for (const MaskRow& rule : mask_rows())
        rules.push_back({rule.allowed, e.operand_source(rule.key)});
    std::erase_if(rules, [&](const Rule& rule) { return !h.has(rule.allowed.row().name); });
    return rules;
}

void write_rule(HeadView& h, const Rule& rule, const Row& allowed) {
    const Plan& g = h.plan;
    const auto masked = std::count(allowed.begin(), allowed.end(), 0.0);
    Words words{.conditions = {{"keeps_true", g.keeps_true()},
                               {"masks_none", masked == 0},
                               {"masks_all", masked == std::ssize(allowed)}},
                .values = {{"OPERAND", rule.operand}, {"KEYS", counted_keys(h, allowed)}}};
    if (!g.config.window.empty()) {
        words.conditions["has_left"] = g.config.window[0] >= 0;
        words.conditions["has_right"] = g.config.window[1] >= 0;
        words.values["FIRST"] = end_of_window('-', g.config.window[0]);
        words.values["LAST"] = end_of_window('+', g.config.window[1]);
    }
    if (!g.config.kv_lengths.empty())
        words.values["LENGTH"] = text_of(g.config.kv_lengths[h.e.batch]);
    h.say(rule.allowed.row().name, std::move(words));
}

/// States which keys are masked by something other than the known rules, as far as stored arrays
/// show it. Returns whether all keys without weight are explained.
bool write_unknown_masks(HeadView& h, const Row& allowed) {
    Row others(h.plan.kv_len, 1), zeros(h.plan.kv_len, 1);
    const Row weights = h.row("attention_weights");
    for (std::size_t key = 0; key < others.size(); ++key) {
        if (allowed[key] != 0 && h.mask[key] == 0) others[key] = 0;
        if (h.e.source.has_unknown_mask && h.mask[key] != 0 && weights[key] == 0) zeros[key] = 0;
    }
    const auto has_some = [](const Row& row) {
        return std::find(row.begin(), row.end(), 0.0) != row.end();
    };
    if (has_some(others))
        h.say("other_masks", {.conditions = {{"follows_rules", has_some(allowed)}},
                              .values = {{"KEYS", counted_keys(h, others)}}});
    if (has_some(zeros)) h.say("zeros", {.values = {{"KEYS", counted_keys(h, zeros)}}});
    return !has_some(zeros);
}

}  // namespace

void write_mask(HeadView& h) {
    h.say("masked_keys");
    HeadView::NamedRows rows;
    Row allowed(h.plan.kv_len, 1);  // by the known rules
    for (const Rule& rule : rules_of(h)) {
        const std::string name(rule.allowed.row().name);
        const Row& of_rule = rows.emplace_back(name, h.row(name)).second;
        write_rule(h, rule, of_rule);
        for (std::size_t key = 0; key < allowed.size(); ++key)
            allowed[key] = std::min(allowed[key], of_rule[key]);
    }
    const bool is_known = !h.e.source.is_stored || write_unknown_masks(h, allowed);
    if (rows.empty() && h.count_masked() == 0) {
        if (is_known) h.say("no_rule");
        return;
    }
    if (is_known) {
        if (allowed == h.mask) h.say("every_rule");
        rows.emplace_back("mask", h.mask);
    }
    h.show_by_key(rows);
}

}  // namespace attn::cli
