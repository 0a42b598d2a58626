// The explanation of one query that `attn explain` writes, step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/explain/trace_arrays.hpp"
#include "cli/page/fill_template.hpp"
#include "cli/page/page.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/result.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// A page in one of the formats, written part by part.
class Page {
public:
    Page(const PageFormat& format, const PageWidth& width) : format_(&format), width_(width) {}

    /// Adds the headings, paragraphs, items and formulas of a filled part of words/, which are
    /// plain words. Headings of heads have level `level_of_heads`.
    void write(std::string_view part, std::size_t level_of_heads);

    /// Lines that are optional to read, under words that describe them.
    void details(const std::string& words, std::vector<std::string> lines);

    void table(PageTable table);

    /// Adds the fullest table that fits. `make(n)` returns the table with at most n of its optional
    /// elements, for n from `most` down to 1. If none fits, adds the fullest.
    template <class Make>
    void fitted_table(std::size_t most, Make make) {
        const PageTable fullest = make(most);
        table(fullest);
        while (most > 1 && !fits(blocks_.back().table, width_.numbers)) {
            blocks_.pop_back();
            table(make(--most));
        }
        if (fits(blocks_.back().table, width_.numbers)) return;
        blocks_.pop_back();
        table(fullest);
    }

    /// Whether the page can hold pictures, which are SVG elements.
    bool shows_pictures() const { return format_->render == render_html; }
    void picture(std::string svg, const std::string& caption);

    /// A token's label within text. HTML isolates it: right-to-left letters do not reorder the text
    /// around it.
    std::string label(const std::string& text) const {
        return shows_pictures() ? "\u2068" + text + "\u2069" : text;
    }
    /// The maximum width of a token's label, in terminal columns.
    std::size_t widest_label() const;

    /// The whole page; called after everything was added.
    std::string text() const { return format_->render(blocks_, width_); }

private:
    const PageFormat* format_;
    PageWidth width_;
    std::vector<Block> blocks_;
};

/// The part of this name of the texts in words/.
std::string_view part_of_page(std::string_view name);

/// Maximum columns of a label within text.
inline constexpr std::size_t max_label_columns = 40;

/// What is explained: a question computed for this purpose, or an existing result.
struct ExplanationSource {
    Plan plan;      ///< of the explained query
    Result result;  ///< the arrays of that query, and the steps between them
    Result maps{};  ///< mask and attention_weights of all queries, if there are pictures
    std::vector<std::string> additive_masks{};  ///< keys of the operands, in the order of addition
    std::optional<InputNorm> norm{};            ///< of the input, if its numbers are known
    std::string file{};      ///< path of the result that is explained, or <stdin>; else empty
    bool is_stored = false;  ///< the arrays are those of the file, else they were computed
    std::string lacking{};   ///< why the question of a stored result cannot be computed again
    std::string layer{};     ///< "layer 3 of gpt2": what a model's result is explained of; or empty
    bool has_unknown_mask = false;  ///< a mask was given, but the result lacks its content
};

/// The names of a part of the page.
using Words = TemplateCase;

/// The state that all parts of the explanation share.
struct Explanation {
    const Request& request;
    const ExplanationSource& source;
    const Plan& plan;   ///< the source's
    AxisLabels labels;  ///< of all queries and keys
    std::size_t batch = 0;
    std::size_t first_head = 0, end_head = 1;  ///< those that are shown
    TraceArrays arrays, maps;                  ///< the source's
    NumberFormat format;
    std::unique_ptr<Page> page;

    /// The settings' sources, the sizes and the conditions that hold on the whole page.
    Words known{};

    /// Adds a part of words/ to the page, with `known`, the places of the arrays for this head, and
    /// these names.
    void say(std::string_view part, Words names = {}, std::size_t head = 0);

    bool is_result() const { return !source.file.empty(); }
    /// Whether the parameters are random numbers.
    bool draws_parameters() const;

    const Settings& settings() const { return plan.config; }
    std::size_t query() const { return plan.first_query; }

    /// The query's position among the keys.
    std::int64_t position() const {
        return static_cast<std::int64_t>(query()) + plan.offset.of(batch);
    }

    /// The query's own key, which is always shown. Empty unless queries and keys are of the same
    /// tokens.
    std::optional<std::size_t> own_key() const;

    /// Whether only the weights that dropout kept are known.
    bool has_only_kept() const {
        return plan.dropout.p != 0 && !arrays.has("weights_before_dropout");
    }
    /// The softmax weights. Weights that dropout dropped are 0 if a result has no weights before
    /// dropout.
    Row shares(std::size_t head) const;
    /// The keys in tables, in order: all if they are few, otherwise those with the largest weights
    /// and the query's own.
    std::vector<std::size_t> shown_keys(std::size_t head) const;

    /// An array, indexed by this query, head and batch entry along its axes: "queries[head 1][2]".
    std::string place(ArrayId array, std::size_t head = 0) const;
    /// `1 "journey"`, or `1` if there are no labels.
    std::string query_label() const;
    /// `"journey"`, or `query 1`.
    std::string called() const;
    /// The label only, cut to at most `columns` columns, or the index if there is none.
    std::string key_name(std::size_t key, std::size_t columns = max_label_columns) const;
    std::string key_label(std::size_t key) const;

    /// The source of a setting: "--heads 2", "model/config.json: n_head 2" or "the default of
    /// --heads".
    std::string source_of(std::string_view key) const;
    /// The source of an operand: "--mask mask.json".
    std::string operand_source(std::string_view key) const;

    /// Draws the matrix of one head, if it exists and the page shows pictures.
    void draw(std::string_view name, std::size_t head, const std::string& caption);
};

/// The names that hold on the whole page.
Words known_words(const Explanation& e);

/// A setting as it was given, 0.5, not rounded to the page's decimals.
std::string setting_text(double value);

/// "3": a size or an index.
template <class Integer>
std::string text_of(Integer number) {
    return std::to_string(number);
}

/// One head of the explanation.
struct HeadView {
    HeadView(Explanation& of, std::size_t head);

    bool has(std::string_view name) const { return e.arrays.has(name); }
    Row row(std::string_view name) const { return e.arrays.row(name, head); }
    double number(std::string_view name) const { return row(name).front(); }
    std::string written(std::string_view name) const { return e.format.row(row(name)); }
    /// The rows of all keys, or of the first `end`.
    std::vector<Row> rows(std::string_view name, std::size_t end) const;

    void say(std::string_view part, Words names = {}) { e.say(part, std::move(names), head); }

    /// The array of the scores that enter the softmax: that of the last step, or the one after the
    /// mask.
    std::string last_scores() const;

    std::size_t count_masked() const {
        return static_cast<std::size_t>(std::count(mask.begin(), mask.end(), 0.0));
    }
    /// Whether masked keys enter the softmax as -Infinity.
    bool masks_before_softmax() const {
        return count_masked() != 0 && plan.mask_method == MaskMethod::neg_inf;
    }

    /// The key whose score is written out: the query's own, or the one with the largest weight.
    std::size_t key_in_full() const;

    /// The keys of the tables as terms of a sum over all keys, or over the visible ones.
    ShownTerms shown_terms(bool only_visible) const;

    using NamedRows = std::vector<std::pair<std::string, Row>>;
    /// Rows of one number per key, under the keys' names.
    void show_by_key(const NamedRows& rows);
    /// The same with one line per key, and bars of the last row.
    void show_with_bars(const NamedRows& rows);
    /// One vector per key, preceded by a number.
    void show_vectors(std::string_view numbers, const std::string& vectors_name,
                      const std::vector<Row>& vectors, const std::string& dimension);

    Explanation& e;
    const Plan& plan;
    std::size_t head;
    Row mask;                        ///< 1 where the query attends to a key
    std::vector<std::size_t> shown;  ///< keys in tables

private:
    io::Cells cells_of(const NamedRows& rows) const;
};

void write_before_heads(Explanation& e);  ///< the answer, the question, the input, the projections
void write_head(Explanation& e, std::size_t head);  ///< from the query vector to its context
void write_after_heads(Explanation& e);             ///< concatenated heads, output, the check

/// What the query attends to: "garden 86 %, it 5 % and 3 more 9 %", or an item for each head.
std::string answer_words(const Explanation& e);
/// What the query's new vector consists of.
std::string mixture_words(const Explanation& e);

void write_scores(HeadView& h);   ///< the query vector, its scores, their steps
void write_mask(HeadView& h);     ///< which keys are masked, and by which rules
void write_weights(HeadView& h);  ///< softmax, dropout, sum of the values
void write_step(HeadView& h);     ///< of linear attention, in place of these

}  // namespace attn::cli
