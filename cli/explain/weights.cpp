// The view of one head that the parts of its explanation share, and its tables of keys; softmax,
// and the weighted sum of the values, or a step of linear attention.
#include <cmath>
#include <limits>
#include <numeric>

#include "cli/explain/explanation.hpp"
#include "core/operator/score_steps.hpp"
#include "io/text/number_text.hpp"
#include "io/write/report.hpp"

namespace attn::cli {
namespace {

/// Whether the row of this name comes after the mask.
bool is_after_mask(std::string_view name, MaskMethod method) {
    const bool is_weight =
        name == "masked_weights" || name == "weights_before_dropout" || name == "attention_weights";
    const bool enters_softmax =
        name == "biased_scores" || name == "scores_left" || name == "exp_scores";
    return is_weight || (enters_softmax && method == MaskMethod::neg_inf);
}

io::Cells transposed(const io::Cells& cells) {
    io::Cells columns(cells[0].size());
    for (std::size_t i = 0; i < columns.size(); ++i)
        for (const auto& row : cells) columns[i].push_back(row[i]);
    return columns;
}

/// 1 where the query attends to a key. Linear attention has no mask; its state holds no later
/// tokens.
Row mask_of(const Explanation& e, std::size_t head) {
    Row mask(e.plan.kv_len, 1);
    if (e.arrays.has("mask")) return e.arrays.row("mask", head);
    if (e.plan.config.rule)
        for (std::size_t key = e.query() + 1; key < mask.size(); ++key) mask[key] = 0;
    return mask;
}

}  // namespace

HeadView::HeadView(Explanation& of, std::size_t of_head)
    : e(of), plan(of.plan), head(of_head), mask(mask_of(of, of_head)),
      shown(of.shown_keys(of_head)) {}

std::vector<Row> HeadView::rows(std::string_view name, std::size_t end) const {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < end; ++i) rows.push_back(e.arrays.row(name, head, i));
    return rows;
}

std::string HeadView::last_scores() const {
    // A mask after the softmax leaves the scores unchanged.
    if (masks_before_softmax()) return "biased_scores";
    std::string name = "scores";
    for (const StepUse& use : steps_taken(plan.config, e.source.additive_masks.size()))
        name = use.step.emits[use.index].row().name;
    return has(name) ? name : "biased_scores";
}

std::size_t HeadView::key_in_full() const {
    const Row shares = e.shares(head);
    const auto largest = std::ranges::max_element(shares) - shares.begin();
    return e.own_key().value_or(static_cast<std::size_t>(largest));
}

ShownTerms HeadView::shown_terms(bool only_visible) const {
    ShownTerms terms;
    std::ranges::copy_if(shown, std::back_inserter(terms.indices),
                         [&](std::size_t key) { return !only_visible || mask[key] != 0; });
    terms.others = mask.size() - (only_visible ? count_masked() : 0) - terms.indices.size();
    return terms;
}

/// The keys' numbers and labels, if they have any, and below them the rows. A cell is a dot if the
/// key is masked, in weights, and in what the mask has changed before them.
io::Cells HeadView::cells_of(const NamedRows& rows) const {
    io::Cells cells{{"key"}, {"token"}};
    for (const std::size_t key : shown) {
        cells[0].push_back(std::to_string(key));
        cells[1].push_back(e.key_name(key, e.page->widest_label()));
    }
    if (std::equal(cells[0].begin() + 1, cells[0].end(), cells[1].begin() + 1)) cells.pop_back();
    for (const auto& [name, values] : rows) {
        cells.push_back({name});
        const bool is_yes_or_no = name == "mask" || name.starts_with("allowed_by");
        const bool has_dots = is_after_mask(name, plan.config.mask_method);
        for (const std::size_t key : shown)
            cells.back().push_back(is_yes_or_no                 ? io::fixed_text(values[key], 0)
                                   : has_dots && mask[key] == 0 ? std::string(io::masked_cell)
                                                                : e.format.number(values[key]));
    }
    return cells;
}

void HeadView::show_by_key(const NamedRows& rows) {
    PageTable table{cells_of(rows)};
    table.headers = table.cells.size() - rows.size();
    table.may_split = true;
    if (shown.size() > max_shown) table = {transposed(table.cells)};
    e.page->table(table);
}

void HeadView::show_with_bars(const NamedRows& rows) {
    PageTable table{transposed(cells_of(rows))};
    table.may_split = true;
    const Row& last = rows.back().second;
    double largest = 0;
    for (const std::size_t key : shown)
        if (std::isfinite(last[key])) largest = std::max(largest, std::abs(last[key]));
    for (const std::size_t key : shown)
        table.bars.push_back(largest == 0 ? 0 : std::abs(last[key]) / largest);
    table.bar_header = "of the largest";
    e.page->table(table);
}

void HeadView::show_vectors(std::string_view numbers, const std::string& vectors_name,
                            const std::vector<Row>& vectors, const std::string& dimension) {
    const io::Cells names = cells_of({{std::string(numbers), row(numbers)}});
    const auto make = [&](std::size_t most) {
        io::Cells cells = names;
        cells.push_back({vectors_name + " (" + dimension + ")"});
        for (const std::size_t key : shown)
            cells.back().push_back(e.format.row(vectors[key], most));
        PageTable table{transposed(cells)};
        table.may_fold = true;
        return table;
    };
    const std::size_t most = e.format.most();
    const bool is_cut = !vectors.empty() && vectors[0].size() > most;
    is_cut ? e.page->fitted_table(most, make) : e.page->table(make(most));
}

void write_head(Explanation& e, std::size_t head) {
    HeadView h(e, head);
    const Plan& g = e.plan;
    Row others = e.has_only_kept() ? h.row("attention_weights") : e.shares(head);
    const std::size_t left_out = others.size() - h.shown.size();
    for (const std::size_t key : h.shown) others[key] = 0;
    const double weight = std::accumulate(others.begin(), others.end(), 0.0);
    h.say("head", {{"is_grouped", g.kv_heads != g.heads},
                   {"leaves_out", left_out != 0},
                   {"leaves_one", left_out == 1},
                   {"GROUP", g.heads / g.kv_heads},
                   {"KEY_HEAD", head * g.kv_heads / g.heads},
                   {"SHOWN", h.shown.size()},
                   {"OTHERS", left_out},
                   {"WEIGHT", e.format.number(weight)}});
    if (g.config.rule) return write_step(h);
    write_scores(h);
    write_mask(h);
    write_weights(h);
    if (!e.source.gradients.arrays.empty()) write_gradients(h);
}

namespace {

/// Vectors of more elements are not written out as sums.
constexpr std::size_t max_written = 4;

/// The key whose exponential is written out: the one whose score is, or another if that one is the
/// maximum.
std::size_t power_in_full(const HeadView& h, const Row& powers) {
    std::vector<std::size_t> keys = h.shown_terms(h.masks_before_softmax()).indices;
    const std::size_t key = h.key_in_full();
    if (std::ranges::binary_search(keys, key)) keys.insert(keys.begin(), key);
    const auto less =
        std::ranges::find_if(keys, [&](std::size_t other) { return powers[other] != 1; });
    return less == keys.end() ? keys.front() : *less;
}

/// The displayed name of the softmax's scores, which differs if nothing was added to them and some
/// keys are only masked.
std::string name_of_scores(const HeadView& h) {
    const std::vector<StepUse> steps = steps_taken(h.plan.config, h.e.source.additive_masks.size());
    const bool is_biased =
        std::ranges::any_of(steps, [](const StepUse& use) { return use.step.adds_terms; });
    const std::string name = h.last_scores();
    return name == "biased_scores" && !is_biased ? "scores_left" : name;
}

/// Maximum, exponentials and denominator, which both mask methods have in common.
void write_powers(HeadView& h) {
    const NumberFormat& f = h.e.format;
    const double maximum = h.number("row_max"), total = h.number("softmax_denominator");
    const Row powers = h.row("exp_scores"), scores = h.row(h.last_scores());
    const bool leaves_some = h.masks_before_softmax();
    const std::vector<double> sinks = h.plan.config.sinks();
    std::optional<double> exp_sink;
    if (!sinks.empty()) exp_sink = h.number("exp_sink");
    const std::size_t key = power_in_full(h, powers);
    h.say("powers",
          {{"leaves_some", leaves_some},
           {"is_finite", std::isfinite(maximum) && std::isfinite(total)},
           {"SINK", exp_sink ? io::number_text(sinks[sinks.size() == 1 ? 0 : h.head]) : ""},
           {"OPTION", h.e.source_of(h.plan.config.softmax_plus == 0 ? "sink" : "softmax_plus")},
           {"MAXIMUM", f.number(maximum)},
           {"EXP_SINK", f.number(exp_sink.value_or(0))},
           {"KEY", key},
           {"SCORE", f.number(scores[key])},
           {"FACTOR", f.factor(maximum)},
           {"POWER", f.number(powers[key])}});
    h.show_by_key({{name_of_scores(h), scores}, {"exp_scores", powers}});
    h.say("denominator", {{"SUM", f.total(powers, h.shown_terms(leaves_some), exp_sink, total)},
                          {"LOGSUMEXP", f.number(h.number("logsumexp"))}});
}

void show_weights(HeadView& h) {
    const bool has_dropout = h.has("weights_before_dropout") && h.plan.config.dropout != 0;
    if (h.plan.config.prob_mod) {
        if (h.has("softmax_weights"))
            h.show_with_bars({{"softmax_weights", h.row("softmax_weights")}});
        h.say("prob_mod", {{"FORMULA", h.plan.config.prob_mod.text}});
    }
    if (!h.e.has_only_kept())
        h.show_with_bars(
            {{has_dropout ? "weights_before_dropout" : "attention_weights", h.e.shares(h.head)}});
    h.e.draw("attention_weights", h.head, "The weights of all queries, a row each");
}

void write_softmax(HeadView& h) {
    const bool masks_all = h.count_masked() == h.mask.size();
    const std::string log =
        h.has("logsumexp") ? h.e.format.number(h.number("logsumexp")) : std::string();
    h.say("softmax",
          {{"masks_all", masks_all}, {"masks_some", h.count_masked() != 0}, {"LOGSUMEXP", log}});
    if (!masks_all && h.has("exp_scores")) {
        write_powers(h);
        h.say("weights", {{"is_finite", std::isfinite(h.number("softmax_denominator"))}});
    }
    show_weights(h);
}

void write_renormalized(HeadView& h) {
    const bool has_steps = h.has("exp_scores");
    const Row scores = has_steps ? h.row(h.last_scores()) : Row{0};
    const bool is_infinite = std::ranges::all_of(
        scores, [](double score) { return score == -std::numeric_limits<double>::infinity(); });
    h.say("renormalize", {{"is_infinite", is_infinite}});
    if (!has_steps || is_infinite) return show_weights(h);
    write_powers(h);
    h.say("masked_weights");
    const Row left = h.row("masked_weights");
    h.show_by_key({{"unmasked_weights", h.row("unmasked_weights")}, {"masked_weights", left}});
    const double total = h.number("masked_total");
    h.say("masked_total", {{"masks_all", h.count_masked() == h.mask.size()},
                           {"is_usable", total >= row_of(h.plan.config.dtype).least_normal()},
                           {"SUM", h.e.format.total(left, h.shown_terms(true), {}, total)}});
    show_weights(h);
}

void write_values(HeadView& h) {
    if (!h.has("present_value") || !h.has("head_outputs")) return;
    std::vector<Row> values = h.rows("present_value", h.plan.kv_len);
    Row weights = h.row("attention_weights");
    const Row context = h.row("head_outputs");
    h.say("values");
    h.show_vectors("attention_weights", h.plan.past_len == 0 ? "values" : "present_value", values,
                   "d_v " + std::to_string(h.plan.d_v));
    // Masked values take no part, whatever they contain.
    for (std::size_t key = 0; key < h.plan.kv_len; ++key)
        if (h.mask[key] == 0) {
            weights[key] = 0;
            values[key].assign(h.plan.d_v, 0);
        }
    std::string sums;
    const std::string indexed = h.e.indexed("head_outputs", h.head);
    for (std::size_t i = 0; i < std::min(h.plan.d_v, max_written); ++i) {
        Row column;
        for (const Row& value : values) column.push_back(value[i]);
        (sums += i == 0 ? "" : "\n") += indexed;
        (sums += "[") += std::to_string(i) + "] = ";
        sums += h.e.format.products(weights, column, context[i], {}, h.shown_terms(true));
    }
    h.say("head_outputs", {{"leaves_sums", h.plan.d_v > max_written},
                           {"SUMS", sums},
                           {"ROW", h.e.format.row(context)}});
}

}  // namespace

void write_weights(HeadView& h) {
    h.plan.config.mask_method == MaskMethod::neg_inf ? write_softmax(h) : write_renormalized(h);
    write_dropout(h);
    write_values(h);
}

namespace {

/// Rows of a state that are written out, and numbers that are as sums.
constexpr std::size_t max_state_rows = 8, max_sums = 2;

/// A line for each row of a state.
std::string state_words(const HeadView& h, const std::string& indexed, std::string_view name) {
    const std::vector<Row> rows = h.rows(name, std::min(h.plan.d_k, max_state_rows));
    std::string lines;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        (lines += i == 0 ? "" : "\n") += indexed;
        (lines += "[") += std::to_string(i) + "] = " + h.e.format.row(rows[i]);
    }
    if (rows.size() < h.plan.d_k)
        lines += "\n... and so on for all of d_k " + std::to_string(h.plan.d_k);
    return lines;
}

/// What the decayed state holds for the key: the first numbers as sums over the rows of the state.
std::string sums_of_retrieved(const HeadView& h, const Row& key) {
    const Row retrieved = h.row("retrieved"), factors = h.row("decay_factors");
    const std::vector<Row> state = h.rows("state_before", h.plan.d_k);
    std::string lines;
    for (std::size_t j = 0; j < std::min(retrieved.size(), max_sums); ++j) {
        Row column;
        for (std::size_t i = 0; i < state.size(); ++i) {
            const double decayed = state[i][j] * factors[i];
            column.push_back(row_of(h.plan.config.dtype).round(decayed));
        }
        (lines += j == 0 ? "" : "\n") += "retrieved[" + std::to_string(j) + "] = ";
        lines += h.e.format.products(key, column, retrieved[j]);
    }
    return lines;
}

void write_vectors(HeadView& h) {
    const auto row_of_token = [&](std::string_view name) {
        if (!h.has(name)) return std::string();
        return h.e.format.row(h.e.arrays.row(name, h.head, h.e.query()));
    };
    h.say("vectors", {{"has_norm", h.e.settings().qk_norm},
                      {"QUERY_ROW", h.has("queries") ? h.written("queries") : ""},
                      {"KEY_ROW", row_of_token("keys")},
                      {"VALUE_ROW", row_of_token("values")}});
}

void write_update(HeadView& h) {
    if (has_decay(*h.plan.config.rule)) {
        const Row factors = h.row("decay_factors");
        const bool is_one = std::equal(factors.begin() + 1, factors.end(), factors.begin());
        h.say("decay", {{"is_one", is_one},
                        {"is_plain", h.plan.has_plain_decay()},
                        {"RULE", name_of(rule_names, *h.plan.config.rule)},
                        {"DECAY", h.e.format.number(factors[0])},
                        {"DECAYS", h.e.format.row(factors)}});
    }
    Words words{{"is_delta", has_beta(*h.plan.config.rule)}};
    if (has_beta(*h.plan.config.rule))
        words.add({{"SUMS", sums_of_retrieved(h, h.e.arrays.row("keys", h.head, h.e.query()))},
                   {"RETRIEVED", h.written("retrieved")},
                   {"BETA", h.e.format.number(h.number("update_rate"))},
                   {"WRITTEN", h.written("written")}});
    h.say("written", std::move(words));
}

void write_token_weights(HeadView& h) {
    h.say("token_weights");
    h.show_with_bars({{"attention_weights", h.row("attention_weights")}});
    h.e.draw("attention_weights", h.head, "The weights of all queries, a row each");
    if (h.has("values") && h.has("head_outputs") && h.plan.operands["past_state"].empty())
        h.show_vectors("attention_weights", "values", h.rows("values", h.plan.kv_len),
                       "d_v " + std::to_string(h.plan.d_v));
}

}  // namespace

void write_step(HeadView& h) {
    write_vectors(h);
    if (h.has("state_before"))
        h.say("state_before", {{"is_first", h.e.query() == 0},
                               {"STATE", state_words(h, "state_before", "state_before")}});
    if (h.has("written")) write_update(h);
    if (h.has("states"))
        h.say("state_after", {{"STATE", state_words(h, h.e.indexed("states", h.head), "states")}});
    if (h.has("head_outputs"))
        h.say("reading", {{"SCALE", h.e.format.number(*h.plan.config.scale)},
                          {"DIVISOR", h.has("row_divisor") ? h.written("row_divisor") : ""},
                          {"ROW", h.written("head_outputs")}});
    if (h.has("attention_weights")) write_token_weights(h);
}

}  // namespace attn::cli
