// One head of the explanation: the query vector, its scores and their steps, and which keys are
// masked.
#include <bit>
#include <cmath>

#include "cli/explain/explanation.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/operator/score_steps.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

/// Whether the query before the rotary embedding is known and differs from the one after it.
bool is_rotated(const HeadView& h) {
    return h.e.settings().rope && h.has("unrotated_queries");
}

/// Shows the query before and after the rotation, one of its angles, and one key. Cached keys were
/// rotated when they were new.
void write_rotation(HeadView& h) {
    const Settings& s = h.e.settings();
    const NumberFormat& f = h.e.format;
    const std::size_t past = h.plan.past_len;
    const RopeAngles angles = h.plan.rope.angles();
    const auto position = [&](std::size_t axis) {
        return h.plan.query_positions.at(h.e.batch, past + h.e.query(), axis);
    };
    std::string at = io::number_text(position(0));
    for (std::size_t axis = 1; axis < h.plan.position_axes(); ++axis)
        at += ", " + io::number_text(position(axis));
    const bool is_half = *s.rope == Rope::half;
    const Row before = h.row("unrotated_queries"), after = h.row("queries");
    const std::size_t partner = is_half ? *s.rope_dims / 2 : 1, key = h.key_in_full();
    const double angle = position(angles.axis.front()) * angles.frequencies.front();
    const bool shows_key = key >= past && h.has("unrotated_keys") && h.has("present_key");
    Words words{{"rope_half", is_half},
                {"slowed", s.rope_scaling != nullptr},
                {"turns_some", *s.rope_dims < h.plan.d_k},
                {"at_start", at.find_first_not_of("0, ") == std::string::npos},
                {"times", angles.factor != 1},
                {"FACTOR", f.factor(angles.factor)},
                {"by_ids", s.position_ids != nullptr},
                {"shows_key", shows_key},
                {"DIMS", *s.rope_dims},
                {"HALF", *s.rope_dims / 2},
                {"BASE", io::number_text(*s.rope_base)},
                {"AT", at},
                {"BEFORE", f.row(before)},
                {"X", f.factor(before[0])},
                {"Y", f.factor(before[partner])},
                {"ANGLE", f.factor(angle)},
                {"FIRST", f.number(after[0])},
                {"AFTER", f.row(after)}};
    if (shows_key) {
        const Row key_before = h.e.arrays.row("unrotated_keys", h.head, key - past);
        words.add({{"KEY_LABEL", h.e.key_label(key)},
                   {"KEY", key - past},
                   {"KEY_BEFORE", f.row(key_before)},
                   {"KEY_AFTER", f.row(h.e.arrays.row("present_key", h.head, key))}});
    }
    h.say("rotary", std::move(words));
}

void write_query(HeadView& h) {
    const Explanation& e = h.e;
    const Plan& g = h.plan;
    const ArrayId query = is_rotated(h) ? ArrayId("unrotated_queries") : "queries";
    const ArrayId input =
        g.has(ArrayId("normed_inputs").row()) ? ArrayId("normed_inputs") : "inputs";
    // Whether everything that the query is computed from is known.
    const bool is_turned = e.settings().rope && !is_rotated(h),
               is_projected = !is_turned && !g.config.qk_norm && h.has("W_query") &&
                              h.has(input.row().name) && (h.has("b_query") || !g.config.qkv_bias),
               is_wrapper = e.settings().style == Style::wrapper;
    const Row numbers = h.row(query.row().name);
    Words words{{"is_projected", is_projected},
                {"turned", is_turned},
                {"is_unit", g.config.qk_norm},
                {"PLACE", e.indexed(query, h.head)},
                {"ROW", e.format.row(numbers)}};
    if (is_projected) {
        const std::size_t first = is_wrapper ? 0 : h.head * g.d_k;
        std::optional<double> bias;
        if (h.has("b_query")) bias = h.row("b_query")[first];
        const bool is_row = e.arrays.find("W_query")->axes.back() == "d_in";
        words.add({{"shares_matrix", !is_wrapper && g.heads > 1},
                   {"X", e.indexed(input)},
                   {"LINE", is_row ? "row" : "column"},
                   {"FIRST", first},
                   {"LAST", first + g.d_k - 1},
                   {"SUM", e.format.products(e.arrays.row(input.row().name),
                                             e.arrays.weights_of("W_query", h.head, first),
                                             numbers[0], bias)}});
    }
    h.say("query", std::move(words));
    if (is_rotated(h)) write_rotation(h);
}

/// Shows one score in full, then all of them.
void write_products(HeadView& h) {
    const Explanation& e = h.e;
    const bool has_products = h.has("queries") && h.has("present_key");
    if (!has_products) {
        h.say("scores", {{"has_products", false}});
        return h.show_by_key({{"scores", h.row("scores")}});
    }
    const std::vector<Row> keys = h.rows("present_key", h.plan.kv_len);
    const std::size_t key = h.key_in_full();
    h.say("scores",
          {{"has_products", true},
           {"turned", e.settings().rope && !is_rotated(h)},
           {"PAST", h.plan.past_len},
           {"PAST_KEY", e.operand_source("past_key")},
           {"KEY_LABEL", e.key_label(key)},
           {"KEY", key},
           {"SUM", e.format.products(h.row("queries"), keys[key], h.row("scores")[key])}});
    h.show_vectors("scores", h.plan.past_len == 0 ? "keys" : "present_key", keys,
                   "d_k " + std::to_string(h.plan.d_k));
}

/// The names of the parts of score steps in words/head.txt.
Words step_words(const HeadView& h, const StepUse& use) {
    const Explanation& e = h.e;
    const Plan& plan = h.plan;
    const double root = 1 / std::sqrt(static_cast<double>(plan.d_k)),
                 scale = scale_of(plan.config, *plan.config.scale, h.head);
    const bool has_init = e.settings().init != Init::none;
    const std::size_t heads = plan.heads, power = std::bit_floor(heads);
    const bool slopes_given = !plan.config.alibi_slopes.empty(),
               is_geometric =
                   plan.config.slope_formula == SlopeFormula::geometric || power == heads,
               is_second = !is_geometric && h.head >= power;
    const std::size_t of = is_geometric ? heads : is_second ? 2 * power : power;
    const std::vector<std::string>& masks = e.source.additive_masks;
    const std::vector<NamedFormula>& formulas = plan.config.score_formulas;
    const bool is_formula = use.step.kernel == StepKind::formula;
    return {{"scale_is_one", !e.request.has("scale") && !has_init},
            {"scale_is_root", scale == root},
            {"has_init", has_init},
            {"is_signed", plan.config.alibi_distance == AlibiDistance::from_query},
            {"is_geometric", !slopes_given && is_geometric},
            {"has_formula", !slopes_given},
            {"has_two_formulas", !slopes_given && !is_geometric},
            {"SCALE", e.format.number(scale)},
            {"EXACT_SCALE", io::number_text(scale)},
            {"ROOT", e.format.number(root)},
            {"SOFTCAP", io::number_text(plan.config.softcap)},
            {"OPTION", is_formula ? e.source_of(formulas[use.index].key) : ""},
            {"FORMULA", is_formula ? formulas[use.index].formula.text : ""},
            {"STEP", is_second ? 2 * (h.head - power) + 1 : h.head + 1},
            {"OF", of},
            {"SLOPE", e.format.number(alibi_slope(plan.config, heads, h.head))},
            {"POWER", power},
            {"TWICE", 2 * power},
            {"MASK", use.index < masks.size() ? e.operand_source(masks[use.index]) : ""}};
}

/// Shows each active step, with the scores before and after it.
void write_steps(HeadView& h) {
    std::string before = "scores";
    for (const StepUse& use : steps_taken(h.plan.config, h.e.source.additive_masks.size())) {
        const std::string after(use.step.emits[use.index].row().name);
        if (h.has(after)) {  // otherwise the result lacks it
            h.say(use.step.key, step_words(h, use));
            HeadView::NamedRows rows;
            if (h.has(before)) rows.emplace_back(before, h.row(before));
            rows.emplace_back(after, h.row(after));
            h.show_by_key(rows);
        }
        before = after;
    }
}

}  // namespace

void write_scores(HeadView& h) {
    if (h.has("queries")) write_query(h);
    if (h.has("scores")) write_products(h);
    write_steps(h);
}

namespace {

/// `2 of 6 keys: 2 "starts" to 3 "with"`: those at which `allowed` is 0.
std::string counted_keys(const HeadView& h, const Row& allowed) {
    std::string text = std::to_string(std::ranges::count(allowed, 0.0));
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

/// "doc[q] == doc[k]", or several with && between them.
std::string formulas_text(const Plan& plan) {
    std::string text;
    for (const auto& [key, formula] : plan.mask_formulas) {
        const bool is_one = plan.mask_formulas.size() == 1;
        text += (text.empty() ? "" : " && ") + (is_one ? formula.text : "(" + formula.text + ")");
    }
    return text;
}

void write_rule(HeadView& h, const Rule& rule, const Row& allowed) {
    const Plan& g = h.plan;
    const auto masked = std::ranges::count(allowed, 0.0);
    Words words{
        {"keeps_true", g.keeps_true()},
        {"masks_none", masked == 0},
        {"masks_all", masked == std::ssize(allowed)},
        {"OPERAND", rule.operand},
        {"FORMULA", formulas_text(g)},
        {"by_ids", g.config.position_ids != nullptr},
        {"QPOS", io::number_text(g.query_positions.at(h.e.batch, g.past_len + h.e.query()))},
        {"KEYS", counted_keys(h, allowed)}};
    if (const auto& window = g.config.window; !window.empty())
        words.add({{"has_left", window[0] >= 0},
                   {"has_right", window[1] >= 0},
                   {"FIRST", end_of_window('-', window[0])},
                   {"LAST", end_of_window('+', window[1])}});
    if (!g.config.kv_lengths.empty())
        words.add({{"LENGTH", std::to_string(g.config.kv_lengths[h.e.batch])}});
    if (g.config.top_k) words.add({{"TOP_K", std::to_string(*g.config.top_k)}});
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
    const auto has_some = [](const Row& row) { return std::ranges::find(row, 0.0) != row.end(); };
    if (has_some(others))
        h.say("other_masks",
              {{"follows_rules", has_some(allowed)}, {"KEYS", counted_keys(h, others)}});
    if (has_some(zeros)) h.say("zeros", {{"KEYS", counted_keys(h, zeros)}});
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
