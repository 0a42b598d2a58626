// The walk through one query: what `attn explain` says, step by step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/explain/walk_arrays.hpp"
#include "cli/explain/walk_page.hpp"
#include "cli/request/labels.hpp"
#include "cli/request/request.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/result.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// Columns of a label in words.
inline constexpr std::size_t widest_name = 40;

/// What is walked through: a question that was computed for it, or a result that was there.
struct WalkSource {
    Plan plan;      ///< of the query that is walked through
    Result result;  ///< the arrays of that query, and steps between them
    Result maps{};  ///< mask and attention_weights of all queries, where there are pictures
    std::vector<std::string> additive_masks{};  ///< keys of the operands, in the order of adding
    std::optional<InputNorm> norm{};            ///< of the input, where its numbers are known
    std::string file{};     ///< of a result: the path, or <stdin>; empty: it was computed
    std::string missing{};  ///< arrays that a result does not have, as a list
    std::optional<std::uint64_t> digits{};  ///< behind the point, where it was rounded to them
    bool has_one_query = false;             ///< of a result that was computed with --token
    bool has_unknown_mask = false;  ///< a mask was given, and a result does not have its content
};

/// What every part of the walk needs.
struct Walk {
    const Request& request;
    const WalkSource& source;
    const Plan& plan;   ///< the source's
    AxisLabels labels;  ///< of all queries and keys
    std::size_t batch = 0;
    std::size_t first_head = 0, end_head = 1;  ///< those that are shown
    WalkArrays arrays, maps;                   ///< the source's
    NumberWords words;
    std::unique_ptr<Page> page;

    bool is_result() const { return !source.file.empty(); }
    /// Whether the parameters, and the embedding of the input, are random numbers.
    bool draws_parameters() const;
    bool draws_inputs() const { return request.text.has_value(); }

    const Settings& settings() const { return plan.config; }
    std::size_t query() const { return plan.first_query; }

    /// From a query's index to its position among the keys.
    std::int64_t offset() const { return plan.offset.of(batch); }
    std::int64_t position() const { return static_cast<std::int64_t>(query()) + offset(); }

    /// "p = 1 + 2 = 3, the query's position among the keys (...)".
    std::string position_words() const;

    /// The query's own key, which is always shown: where queries and keys are of the same tokens.
    std::optional<std::size_t> own_key() const;

    /// Whether the weights are those that dropout has left, and no others are known.
    bool has_only_kept() const {
        return plan.dropout.p != 0 && !arrays.has("weights_before_dropout");
    }
    /// Whether all is there that the query is made of.
    bool projects_query() const;
    /// The weights as the softmax gives them; of those that dropout has dropped 0, where a result
    /// does not say more.
    Row shares(std::size_t head) const;
    /// Keys in tables: all where they are few, else those with the largest weights and the own one,
    /// in their order.
    std::vector<std::size_t> shown_keys(std::size_t head) const;
    /// How many keys are left out and what they weigh; empty where there are none.
    std::string left_out_words(std::size_t head) const;

    /// Names of what is attended to: without a cache present_key is keys, and the same of values.
    std::string keys_name() const { return plan.past_len == 0 ? "keys" : "present_key"; }
    std::string values_name() const { return plan.past_len == 0 ? "values" : "present_value"; }
    /// Of the weights that come out of the softmax.
    std::string weights_name() const {
        return plan.dropout.p == 0 ? "attention_weights" : "weights_before_dropout";
    }

    std::string command() const;
    /// An array with the places of this query, head and batch entry among its axes:
    /// "queries[head 1][2]".
    std::string place(ArrayId array, std::size_t head = 0) const;
    /// `1 "journey"`, or `1` where there are no labels.
    std::string query_label() const;
    /// The label alone, or "query 1".
    std::string query_name() const;
    /// The label alone, at most so many columns of it, or the number where there is none.
    std::string key_name(std::size_t key, std::size_t columns = widest_name) const;
    std::string key_label(std::size_t key) const;

    /// Where a setting comes from: "--heads 2", "model/config.json: n_head 2" or "the default of
    /// --heads".
    std::string source_of(const std::string& key) const;
    std::string seed_source() const;
    /// The same of an operand: "--mask mask.json".
    std::string operand_source(const std::string& key) const;

    /// The matrix of one head, where it is there and the page has pictures.
    void draw(std::string_view name, std::size_t head, const std::string& caption);

    /// "queries[1] = [...]   (d_k 3)".
    std::string vector_line(const std::string& place, const Row& values,
                            const std::string& dimension) const;
};

/// A setting as it was given, 0.5, rather than with the page's digits.
std::string setting_text(double value);

/// "kv_len 6".
std::string sized(const char* name, std::size_t size);

/// What the query looks at, in one sentence or one a head.
void walk_answer(Walk& walk);
/// The model's norm before the layer, where there is one.
void walk_norm(Walk& walk);
/// What its new vector is made of, in a sentence.
std::string ending_words(const Walk& walk);
void walk_to_heads(Walk& walk);                ///< the question, the input, the projections
void walk_head(Walk& walk, std::size_t head);  ///< from the query vector to its context
void walk_from_heads(Walk& walk);              ///< joined heads, output, the check

}  // namespace attn::cli
