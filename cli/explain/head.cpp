// The view of one head that the parts of its explanation share, and its tables of keys.
#include <cmath>
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
}

}  // namespace attn::cli
