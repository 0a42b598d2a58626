// The explanation of one query that `attn explain` writes, step by step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/explain/trace_arrays.hpp"
#include "cli/page/page.hpp"
#include "cli/question/labels.hpp"
#include "cli/request/request.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/result.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

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
    std::string lacking{};   ///< why a stored result cannot be computed again
    std::string layer{};     ///< "layer 3 of gpt2": what a model's result is explained of; or empty
    bool has_unknown_mask = false;  ///< a mask was given, but the result lacks its content
};

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

    bool is_result() const { return !source.file.empty(); }
    /// Whether the parameters are random numbers, whether the embedding of the input is, and
    /// whether the input itself is.
    bool draws_parameters() const;
    bool draws_words() const { return request.text.has_value(); }
    bool draws_inputs() const { return !settings().drawn_shape().empty(); }

    const Settings& settings() const { return plan.config; }
    std::size_t query() const { return plan.first_query; }

    /// The offset from a query's index to its position among the keys.
    std::int64_t offset() const { return plan.offset.of(batch); }
    std::int64_t position() const { return static_cast<std::int64_t>(query()) + offset(); }

    /// "p = 1 + 2 = 3, the query's position among the keys (...)".
    std::string position_words() const;

    /// The query's own key, which is always shown. Empty unless queries and keys are of the same
    /// tokens.
    std::optional<std::size_t> own_key() const;

    /// Whether only the weights that dropout kept are known.
    bool has_only_kept() const {
        return plan.dropout.p != 0 && !arrays.has("weights_before_dropout");
    }
    /// Whether everything that the query is computed from is known.
    bool projects_query() const;
    /// The softmax weights. Weights that dropout dropped are 0 if a result has no weights before
    /// dropout.
    Row shares(std::size_t head) const;
    /// The keys in tables, in order: all if they are few, otherwise those with the largest weights
    /// and the query's own.
    std::vector<std::size_t> shown_keys(std::size_t head) const;
    /// The number of keys that are not shown and their total weight; empty if all are shown.
    std::string left_out_words(std::size_t head) const;

    /// The arrays that the query attends to: without a cache, present_key is keys, and
    /// present_value is values.
    std::string keys_name() const { return plan.past_len == 0 ? "keys" : "present_key"; }
    std::string values_name() const { return plan.past_len == 0 ? "values" : "present_value"; }
    /// The array that the softmax gives.
    std::string weights_name() const {
        return plan.dropout.p == 0 ? "attention_weights" : "weights_before_dropout";
    }

    std::string command() const;
    /// An array, indexed by this query, head and batch entry along its axes: "queries[head 1][2]".
    std::string place(ArrayId array, std::size_t head = 0) const;
    /// `1 "journey"`, or `1` if there are no labels.
    std::string query_label() const;
    /// The label only, or "query 1".
    std::string query_name() const;
    /// The label only, cut to at most `columns` columns, or the index if there is none.
    std::string key_name(std::size_t key, std::size_t columns = max_label_columns) const;
    std::string key_label(std::size_t key) const;

    /// The source of a setting: "--heads 2", "model/config.json: n_head 2" or "the default of
    /// --heads".
    std::string source_of(const std::string& key) const;
    std::string seed_source() const;
    /// The source of an operand: "--mask mask.json".
    std::string operand_source(const std::string& key) const;

    /// Draws the matrix of one head, if it exists and the page shows pictures.
    void draw(std::string_view name, std::size_t head, const std::string& caption);

    /// "queries[1] = [...]   (d_k 3)".
    std::string vector_line(const std::string& place, const Row& values,
                            const std::string& dimension) const;
};

/// A setting as it was given, 0.5, not rounded to the page's decimals.
std::string setting_text(double value);

/// "kv_len 6".
std::string sized(const char* name, std::size_t size);

/// States what the query attends to, in one sentence or one per head.
void write_answer(Explanation& e);
/// Explains the model's norm before the layer, if there is one.
void write_norm(Explanation& e);
/// States in one sentence what the query's new vector consists of.
std::string ending_words(const Explanation& e);
void write_before_heads(Explanation& e);            ///< the question, the input, the projections
void write_head(Explanation& e, std::size_t head);  ///< from the query vector to its context
void write_after_heads(Explanation& e);             ///< concatenated heads, output, the check

}  // namespace attn::cli
