// The explanation of one query that `attn explain` writes, step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/pictures.hpp"
#include "cli/page/fill_template.hpp"
#include "cli/page/page.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/layer.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

using Row = std::vector<double>;

/// Vectors, sums and tables of keys are truncated to this many elements, except with --full.
inline constexpr std::size_t max_shown = 12;

/// An element in row-major order.
double element(const NamedArray& array, std::size_t index);

/// Arrays of one question with one query row, viewed from one batch entry.
class TraceArrays {
public:
    TraceArrays(const std::vector<NamedArray>& arrays, std::size_t query, std::size_t batch,
                std::size_t heads)
        : arrays_(arrays), token_(query), batch_(batch), heads_(heads) {}

    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// Null if there is no such array.
    const NamedArray* find(std::string_view name) const { return array_named(name, arrays_); }

    /// "(heads 2, d_out 4)": every axis with its size.
    std::string shape(std::string_view name) const;

    /// The query's row along the last axis. Keys and values have one row per `index`, parameters
    /// one per index of their first axis. Arrays of one number per query return that number.
    Row row(std::string_view name, std::size_t head = 0, std::size_t index = 0) const;

    /// The row or column of a parameter that produces element `out` of its output.
    Row weights_of(std::string_view name, std::size_t head, std::size_t out) const;

private:
    const NamedArray& get(std::string_view name) const;

    const std::vector<NamedArray>& arrays_;
    std::size_t token_, batch_, heads_;
};

/// The terms of a sum that are written out, by index; the others are combined into one number.
struct ShownTerms {
    std::vector<std::size_t> indices;
    std::size_t others = 0;
    const char* name = "other key";  ///< for one of the others
};

/// The format of numbers: decimals, truncated rows, and for long sums the terms of largest
/// magnitude.
class NumberFormat {
public:
    /// `most` is max_shown, or npos for no limit.
    NumberFormat(int decimals, std::size_t most) : decimals_(decimals), most_(most) {}

    int decimals() const { return decimals_; }
    std::size_t most() const { return most_; }

    std::string number(double value) const;
    /// In parentheses if negative: "(-0.4300)".
    std::string factor(double value) const;

    /// "[0.4300, 0.1500, 0.8900]"; a row longer than `most` is truncated and states its length.
    std::string row(const Row& values, std::size_t most) const;
    std::string row(const Row& values) const { return row(values, most_); }

    /// "0.43*0.12 + 0.15*0.33 = 0.1011": the products of two rows, and a bias that is added last.
    /// Of many products the largest are shown, or those in `shown`.
    std::string products(const Row& a, const Row& b, double result, std::optional<double> bias = {},
                         const std::optional<ShownTerms>& shown = {}) const;

    /// "1.0000 + 0.5000 = 1.5000", of the terms that are shown; `last` is added last.
    std::string total(const Row& values, const ShownTerms& shown, std::optional<double> last,
                      double result) const;

private:
    template <class Text>
    std::string sum(const Row& values, const ShownTerms& shown, std::optional<double> last,
                    double result, Text text_of) const;

    int decimals_;
    std::size_t most_;
};

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
        for (std::size_t n = most; n != 0; --n) {
            table(make(n));
            if (fits(blocks_.back().table, width_.numbers)) return;
            blocks_.pop_back();
        }
        table(make(most));
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
    Plan plan;           ///< of the explained query
    Result result;       ///< the arrays of that query, and the steps between them
    Result maps{};       ///< mask and attention_weights of all queries, if there are pictures
    Result gradients{};  ///< of the loss of all queries, with the rows of this one
    Settings of_gradients{};
    std::vector<std::string> additive_masks{};  ///< keys of the operands, in the order of addition
    std::optional<InputNorm> norm{};            ///< of the input, if its numbers are known
    std::string file{};      ///< path of the result that is explained, or <stdin>; else empty
    bool is_stored = false;  ///< the arrays are those of the file, else they were computed
    std::string lacking{};   ///< why the question of a stored result cannot be computed again
    std::string layer{};     ///< "layer 3 of gpt2": what a model's result is explained of; or empty
    bool has_unknown_mask = false;  ///< a mask was given, but the result lacks its content
};

struct StoredResult : PlannedResult {
    io::ResultView view;
    std::optional<LayerPart> part;  ///< the attention that is explained, of a model's result

    /// Errors: kinds io and usage; kind input for a file that is not a result, or contradicts its
    /// config.
    StoredResult(io::InputFile file, const Request& flags);
};

/// The arrays of the result, with the query of `token` or one in the middle, and the steps of its
/// softmax, which follow from the scores after the masks. Errors: kind usage for a query that it
/// lacks; kind input without attention_weights of each head.
ExplanationSource stored_source(StoredResult& stored, ThreadPool& workers);

/// The stored weights and mask of all queries; empty if the result has some of the queries.
Result stored_maps(const StoredResult& stored, ThreadPool& workers);

/// The row of one query; arrays without an axis of queries as they are.
NamedArray row_of_query(const NamedArray& array, std::size_t row);

/// Compares the final arrays of one query with those of the result, as far as it has them. Errors:
/// kind input if they differ by more than other kernels and rounding explain.
void require_same_result(const StoredResult& stored, const ExplanationSource& computed,
                         ThreadPool& workers);

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
    TraceArrays arrays, maps, gradients;       ///< the source's
    NumberFormat format;
    std::unique_ptr<Page> page;

    /// The settings' sources, the sizes and the conditions that hold on the whole page.
    Words known{};
    Draws draws{};  ///< of a question that was computed

    /// Adds a part of words/ to the page, with `known`, the arrays indexed by this head, and
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
        return plan.config.dropout != 0 && !arrays.has("weights_before_dropout");
    }
    /// The softmax weights. Weights that dropout dropped are 0 if a result has no weights before
    /// dropout.
    Row shares(std::size_t head) const;
    /// The keys in tables, in order: all if they are few, otherwise those with the largest weights
    /// and the query's own.
    std::vector<std::size_t> shown_keys(std::size_t head) const;

    /// An array, indexed by this query, head and batch entry along its axes: "queries[head 1][2]".
    std::string indexed(ArrayId array, std::size_t head = 0) const;
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
        return static_cast<std::size_t>(std::ranges::count(mask, 0.0));
    }
    /// Whether masked keys enter the softmax as -Infinity.
    bool masks_before_softmax() const {
        return count_masked() != 0 && plan.config.mask_method == MaskMethod::neg_inf;
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
void write_draws(Explanation& e);                   ///< of inputs and parameters
void write_after_heads(Explanation& e);             ///< concatenated heads, output, the check

void write_scores(HeadView& h);     ///< the query vector, its scores, their steps
void write_mask(HeadView& h);       ///< which keys are masked, and by which rules
void write_weights(HeadView& h);    ///< softmax, dropout, sum of the values
void write_dropout(HeadView& h);    ///< of a question with --dropout
void write_gradients(HeadView& h);  ///< from the output back, of a question with --backward
void write_step(HeadView& h);       ///< of linear attention, instead of these

}  // namespace attn::cli
