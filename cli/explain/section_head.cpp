#include "cli/explain/section_head.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/operator/score_steps.hpp"
#include "io/text/number_text.hpp"
#include "io/write/report.hpp"

namespace attn::cli {
namespace {

/// Whether the array holds only 0 and 1, as masks do.
bool is_yes_or_no(const std::string& name) {
    return name == "mask" || name.starts_with("allowed_by");
}

/// Whether the row of this name comes after the mask.
bool is_after_mask(const std::string& name, MaskMethod method) {
    constexpr std::string_view weights[] = {"masked_weights", "weights_before_dropout",
                                            "attention_weights"};
    constexpr std::string_view before_softmax[] = {"biased_scores", "scores_left", "exp_scores"};
    const auto has = [&](const auto& names) {
        return std::find(std::begin(names), std::end(names), name) != std::end(names);
    };
    return has(weights) || (method == MaskMethod::neg_inf && has(before_softmax));
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
    if (e.plan.rule)
        for (std::size_t key = e.query() + 1; key < mask.size(); ++key) mask[key] = 0;
    return mask;
}

}  // namespace

HeadView::HeadView(Explanation& e, std::size_t head)
    : e_(e), arrays_(e.arrays), format_(e.format), page_(*e.page), s_(e.settings()), g_(e.plan),
      head_(head), mask_(mask_of(e, head)), shown_(e.shown_keys(head)) {}

std::string HeadView::last_scores() const {
    // A mask after the softmax leaves the scores unchanged.
    if (masks_before_softmax()) return "biased_scores";
    std::string name = "scores";
    for (const StepUse& use : steps_taken(g_, e_.source.additive_masks.size()))
        name = use.step.emits[use.index].row().name;
    return arrays_.has(name) ? name : "biased_scores";
}

std::string HeadView::name_of_last_scores() const {
    const std::string name = last_scores();
    const std::vector<StepUse> steps = steps_taken(g_, e_.source.additive_masks.size());
    const bool is_biased = std::any_of(steps.begin(), steps.end(),
                                       [](const StepUse& use) { return use.step.adds_terms; });
    return name == "biased_scores" && !is_biased ? "scores_left" : name;
}

std::size_t HeadView::key_in_full() const {
    const Row shares = e_.shares(head_);
    const auto largest = std::max_element(shares.begin(), shares.end()) - shares.begin();
    return e_.own_key().value_or(static_cast<std::size_t>(largest));
}

ShownTerms HeadView::shown_terms(bool only_visible) const {
    ShownTerms terms;
    std::copy_if(shown_.begin(), shown_.end(), std::back_inserter(terms.places),
                 [&](std::size_t key) { return !only_visible || attends_to(key); });
    const auto masked = std::count(mask_.begin(), mask_.end(), 0.0);
    const std::size_t all = mask_.size() - (only_visible ? static_cast<std::size_t>(masked) : 0);
    terms.others = all - terms.places.size();
    return terms;
}

io::Cells HeadView::names_of_keys() const {
    io::Cells cells{{"key"}, {"token"}};
    bool named = false;
    for (std::size_t key : shown_) {
        cells[0].push_back(std::to_string(key));
        cells[1].push_back(e_.key_name(key, page_.widest_label()));
        named = named || cells[1].back() != cells[0].back();
    }
    if (!named) cells.pop_back();
    return cells;
}

std::string HeadView::cell(const std::string& name, const Row& values, std::size_t key) const {
    if (is_yes_or_no(name)) return io::fixed_text(values[key], 0);
    const bool is_masked = !attends_to(key) && is_after_mask(name, s_.mask_method);
    return is_masked ? std::string(io::masked_cell) : format_.number(values[key]);
}

void HeadView::show_by_key(const std::vector<std::pair<std::string, Row>>& rows) {
    PageTable table{names_of_keys()};
    table.headers = table.cells.size();
    table.may_split = true;
    for (const auto& [name, values] : rows) {
        table.cells.push_back({name});
        for (std::size_t key : shown_) table.cells.back().push_back(cell(name, values, key));
    }
    if (shown_.size() > max_shown) table = {transposed(table.cells)};
    page_.table(table);
}

void HeadView::show_with_bars(const std::vector<std::pair<std::string, Row>>& rows) {
    io::Cells cells = names_of_keys();
    for (const auto& [name, values] : rows) {
        cells.push_back({name});
        for (std::size_t key : shown_) cells.back().push_back(cell(name, values, key));
    }
    PageTable table{transposed(cells)};
    table.may_split = true;
    double largest = 0;
    for (std::size_t key : shown_)
        if (std::isfinite(rows.back().second[key]))
            largest = std::max(largest, std::abs(rows.back().second[key]));
    for (std::size_t key : shown_)
        table.bars.push_back(largest == 0 ? 0 : std::abs(rows.back().second[key]) / largest);
    table.bar_header = "of the largest";
    page_.table(table);
}

void HeadView::show_vectors(const std::string& number_name, const Row& numbers,
                            const std::string& vector_name, const std::vector<Row>& vectors,
                            const std::string& shape) {
    io::Cells names = names_of_keys();
    names.push_back({number_name});
    for (std::size_t key : shown_) names.back().push_back(cell(number_name, numbers, key));
    const auto make = [&](std::size_t most) {
        io::Cells cells = names;
        cells.push_back({vector_name + " " + shape});
        for (std::size_t key : shown_) cells.back().push_back(format_.row(vectors[key], most));
        PageTable table{transposed(cells)};
        table.may_fold = true;
        return table;
    };
    const bool is_cut = !vectors.empty() && vectors[0].size() > format_.most();
    if (is_cut) return page_.fitted_table(format_.most(), make);
    page_.table(make(format_.most()));
}

void write_head(Explanation& e, std::size_t head) {
    const Plan& g = e.plan;
    if (g.heads > 1) e.page->heading(2, "Head " + std::to_string(head));
    if (g.kv_heads != g.heads)
        e.page->paragraph("Grouped heads (" + e.source_of("kv_heads") +
                          "): " + std::to_string(g.heads / g.kv_heads) +
                          " heads share one key head; this one uses key head " +
                          std::to_string(head * g.kv_heads / g.heads) + " of " +
                          sized("kv_heads", g.kv_heads) + ".");
    const std::string left_out = e.left_out_words(head);
    if (!left_out.empty()) e.page->paragraph(left_out);
    if (g.rule) return write_step(e, head);
    write_scores(e, head);
    write_mask(e, head);
    write_weights(e, head);
}

}  // namespace attn::cli
