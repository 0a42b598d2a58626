// Every array that a computation can record: one table of names, axes and conditions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The kinds of axes. Several have the same name: see `axis_name`.
enum class Axis {
    none,
    batch,
    heads,
    kv_heads,
    cache_heads,  ///< kv_heads, all of them also if some heads are chosen
    heads_apart,  ///< heads of a result that does not concatenate them
    groups,       ///< independent heads, each a layer with its own parameters
    tokens,
    q_len,     ///< query rows that are computed
    past_len,  ///< cached keys
    new_keys,  ///< without the cached ones
    kv_len,
    d_in,
    d_context,
    d_value_input,
    d_k,
    d_v,
    d_out,
    joined,       ///< columns of all heads, concatenated
    query_width,  ///< columns after a projection of one group
    key_width,
    value_width,
    sinks,   ///< logits in the denominator: one, or one for each head
    scalar,  ///< of length 1; in JSON the number alone
    top      ///< the setting of that name: keys listed for each query
};

/// Their names in results, in the same order.
inline constexpr std::string_view scalar_axis = "scalar";
inline constexpr std::string_view axis_names[] = {
    "",         "batch",  "heads",  "heads", "heads", "heads",     "heads", "tokens", "q_len",
    "past_len", "kv_len", "kv_len", "d_in",  "d_in",  "d_in",      "d_k",   "d_v",    "d_out",
    "d_in",     "d_out",  "d_out",  "d_out", "heads", scalar_axis, "top"};
static_assert(std::size(axis_names) == static_cast<std::size_t>(Axis::top) + 1);

/// `heads_apart`: the result does not concatenate the heads.
constexpr std::string_view axis_name(Axis axis, bool heads_apart = false) {
    return axis == Axis::d_out && heads_apart ? "d_v" : axis_names[static_cast<std::size_t>(axis)];
}

/// Conditions for an array to exist in a question, as bits.
namespace needs {
enum Need : unsigned {
    nothing = 0,
    layer = 1U << 0U,  ///< a mode other than sdpa
    projections = 1U << 1U,
    qkv_bias = 1U << 2U,
    out_proj = 1U << 3U,
    out_bias = 1U << 4U,
    norm = 1U << 5U,
    token_ids = 1U << 6U,
    renormalize = 1U << 7U,  ///< the mask after the softmax
    softmax = 1U << 8U,      ///< the mechanism is softmax attention
    linear = 1U << 9U,       ///< the mechanism is linear attention
    operand = 1U << 10U,     ///< the question has this operand
    backward = 1U << 11U,    ///< gradients are asked for
    loss = 1U << 12U,        ///< of a loss, not of a gradient that is given
    sink = 1U << 13U
};
}  // namespace needs

/// Which backends write an array: all, only the reference, or the reference only for explanations;
/// settings cannot name the latter.
enum class From { any, reference, trace };

/// Whether the name `all` has an array: statistics are named one by one, and what a rotation
/// changes is only left out where there is none.
enum class InAll { always, with_rope, never };

struct ArrayRow {
    std::string_view name;
    /// At the positions of (batch, heads, rows, columns); rows of matrices have a fifth axis.
    std::array<Axis, 5> axes;
    unsigned needs;  ///< bits of needs::Need
    From from;
    InAll in_all = InAll::always;
    std::optional<std::size_t> gradient_of = {};  ///< the index of the array; none: no gradient

    /// A weight or a bias; a weight may be transposed, depending on its initialiser or file.
    constexpr bool is_parameter() const {
        return !gradient_of && (needs & (needs::projections | needs::out_proj)) != 0;
    }
    /// An operand as it is given, in its own rank, which may be less than that of the axes.
    constexpr bool is_operand() const { return needs == attn::needs::operand; }
    /// Of a backward pass, and not its loss.
    constexpr bool is_gradient() const {
        return (needs & needs::backward) != 0 && axes[0] != Axis::scalar;
    }
    /// Summarises the weights of a query, or of a key, and is computed without them.
    constexpr bool is_statistic() const { return in_all == InAll::never; }
    /// Has rows of tokens and the axes of operands, in the order that a question chooses.
    constexpr bool has_order() const {
        return axes[0] == Axis::batch && axes[1] != Axis::heads && axes[1] != Axis::kv_heads &&
               axes[2] != Axis::none && axes[2] != Axis::d_k && axes[3] != Axis::kv_len;
    }
    /// Has an element for each query and key.
    constexpr bool counts_queries_and_keys() const {
        return axes[2] == Axis::q_len && axes[3] == Axis::kv_len;
    }
};

namespace arrays_detail {

using enum Axis;
using enum needs::Need;
using enum From;

using Axes = std::array<Axis, 5>;
inline constexpr Axes per_query{batch, heads, q_len}, per_key{batch, heads, q_len, kv_len},
    listed{batch, heads, q_len, top}, of_keys{batch, heads, none, kv_len};

/// In the order of computation.
inline constexpr ArrayRow forward_rows[] = {
    {"token_ids", {none, none, tokens}, token_ids, any},
    {"inputs", {batch, none, tokens, d_in}, layer, any},
    {"context", {batch, none, new_keys, d_context}, operand, any},
    {"value_input", {batch, none, new_keys, d_value_input}, operand, any},
    {"query", {batch, cache_heads, tokens, d_k}, operand, any},
    {"key", {batch, cache_heads, new_keys, d_k}, operand, any},
    {"value", {batch, cache_heads, new_keys, d_v}, operand, any},
    {"past_key", {batch, cache_heads, past_len, d_k}, operand, any},
    {"past_value", {batch, cache_heads, past_len, d_v}, operand, any},
    {"past_state", {batch, cache_heads, d_k, d_v}, operand, any},
    {"decay", {batch, cache_heads, tokens, d_k}, operand, any},
    {"beta", {batch, cache_heads, tokens, d_k}, operand, any},
    // The name `mask` is that of the joined masks, of 0 and 1.
    {"attn_mask", {batch, cache_heads, tokens, kv_len}, operand, any},
    {"key_padding_mask", {batch, none, none, kv_len}, operand, any},
    {"grad_output", {batch, heads_apart, q_len, d_out}, operand, any},
    {"target", {batch, heads_apart, q_len, d_out}, operand, any},
    {"normed_inputs", {batch, none, tokens, d_in}, norm, any},
    {"W_query", {none, groups, query_width, d_in}, projections, any},
    {"b_query", {none, groups, none, query_width}, projections | qkv_bias, any},
    {"W_key", {none, groups, key_width, d_context}, projections, any},
    {"b_key", {none, groups, none, key_width}, projections | qkv_bias, any},
    {"W_value", {none, groups, value_width, d_value_input}, projections, any},
    {"b_value", {none, groups, none, value_width}, projections | qkv_bias, any},
    {"W_out", {none, none, d_out, joined}, out_proj, any},
    {"b_out", {none, none, none, d_out}, out_proj | out_bias, any},
    // Before the rotary embedding; without one they equal `queries` and `keys`.
    {"unrotated_queries", {batch, heads, q_len, d_k}, softmax, any, InAll::with_rope},
    {"unrotated_keys", {batch, kv_heads, new_keys, d_k}, softmax, any, InAll::with_rope},
    {"queries", {batch, heads, q_len, d_k}, nothing, any},
    {"keys", {batch, kv_heads, new_keys, d_k}, nothing, any},
    {"values", {batch, kv_heads, new_keys, d_v}, nothing, any},
    {"scores", per_key, softmax, any},
    {"scaled_scores", per_key, softmax, reference},
    {"capped_scores", per_key, softmax, reference},
    {"biased_scores", per_key, softmax, reference},
    {"mask", per_key, softmax, reference},
    {"masked_scores", per_key, softmax, reference},
    {"masked_weights", per_key, softmax | renormalize, reference},
    {"weights_before_dropout", per_key, softmax, reference},
    {"dropout_mask", per_key, softmax, reference},
    {"attention_weights", per_key, nothing, any},
    {"logsumexp", per_query, softmax, any},
    // Statistics of the weights before dropout, see row_statistics.hpp.
    {"max_score", per_query, softmax, any, InAll::never},
    {"entropy", per_query, softmax, any, InAll::never},
    {"mean_distance", per_query, softmax, any, InAll::never},
    {"argmax_key", per_query, softmax, any, InAll::never},
    {"top_keys", listed, softmax, any, InAll::never},
    {"top_weights", listed, softmax, any, InAll::never},
    {"key_mass", of_keys, softmax, any, InAll::never},
    {"key_max", of_keys, softmax, any, InAll::never},
    {"present_key", {batch, cache_heads, kv_len, d_k}, softmax, any},
    {"present_value", {batch, cache_heads, kv_len, d_v}, softmax, any},
    {"states", {batch, kv_heads, q_len, d_k, d_v}, linear, reference},
    {"present_state", {batch, cache_heads, d_k, d_v}, linear, any},
    {"head_outputs", {batch, heads, q_len, d_v}, nothing, any},
    {"context_vectors", {batch, heads_apart, q_len, d_out}, nothing, any},
};

/// The gradient of the loss with respect to an array, which has its axes.
consteval ArrayRow gradient(std::string_view name, std::string_view of, From from = any) {
    const auto* const found = std::ranges::find(forward_rows, of, &ArrayRow::name);
    if (found == std::end(forward_rows)) throw std::logic_error("no such array");
    ArrayRow row = *found;
    row.name = name;
    row.needs = (row.needs & ~unsigned{operand}) | backward;
    row.from = from;
    row.in_all = InAll::always;
    row.gradient_of = static_cast<std::size_t>(found - std::begin(forward_rows));
    return row;
}

/// From the loss to the operands.
inline constexpr ArrayRow backward_rows[] = {
    {"loss", {scalar}, backward | loss, any},
    gradient("grad_W_out", "W_out"),
    gradient("grad_b_out", "b_out"),
    gradient("grad_head_outputs", "head_outputs"),
    // Linear attention does not compute its outputs from them.
    {"grad_attention_weights", per_key, softmax | backward, reference},
    gradient("grad_weights_before_dropout", "weights_before_dropout", reference),
    gradient("grad_capped_scores", "capped_scores", reference),
    gradient("grad_scaled_scores", "scaled_scores", reference),
    {"grad_scores", per_key, softmax | backward, reference},
    {"grad_sink", {none, sinks}, softmax | backward | sink, any},
    gradient("grad_mask", "attn_mask", reference),
    gradient("grad_key_padding_mask", "key_padding_mask", reference),
    gradient("grad_past_key", "past_key"),
    gradient("grad_past_value", "past_value"),
    gradient("grad_past_state", "past_state"),
    gradient("grad_decay", "decay"),
    gradient("grad_beta", "beta"),
    gradient("grad_queries", "queries"),
    gradient("grad_keys", "keys"),
    gradient("grad_values", "values"),
    gradient("grad_query", "query"),
    gradient("grad_key", "key"),
    gradient("grad_value", "value"),
    gradient("grad_W_query", "W_query"),
    gradient("grad_b_query", "b_query"),
    gradient("grad_W_key", "W_key"),
    gradient("grad_b_key", "b_key"),
    gradient("grad_W_value", "W_value"),
    gradient("grad_b_value", "b_value"),
    gradient("grad_context", "context"),
    gradient("grad_value_input", "value_input"),
    gradient("grad_inputs", "inputs"),
};

/// Only for explanations.
inline constexpr ArrayRow trace_rows[] = {
    // After alibi, after each of at most two formulas, and each of at most two additive masks.
    {"alibi_scores", per_key, softmax, trace},
    {"formula_0_scores", per_key, softmax, trace},
    {"formula_1_scores", per_key, softmax, trace},
    {"bias_0_scores", per_key, softmax, trace},
    {"bias_1_scores", per_key, softmax, trace},
    // 1 where this rule alone allows the key.
    {"allowed_by_bias_0", per_key, softmax, trace},
    {"allowed_by_bias_1", per_key, softmax, trace},
    {"allowed_by_mask", per_key, softmax, trace},
    {"allowed_by_key_padding_mask", per_key, softmax, trace},
    {"allowed_by_causal", per_key, softmax, trace},
    {"allowed_by_window", per_key, softmax, trace},
    {"allowed_by_kv_lengths", per_key, softmax, trace},
    {"allowed_by_formulas", per_key, softmax, trace},
    {"allowed_by_top_k", per_key, softmax, trace},  // and by all rules
    // The row's maximum, the sink included; exp(score - it); exp(sink - it); the denominator.
    {"row_max", per_query, softmax, trace},
    {"exp_scores", per_key, softmax, trace},
    {"exp_sink", per_query, softmax, trace},
    {"softmax_denominator", per_query, softmax, trace},
    // Before the formula of weights.
    {"softmax_weights", per_key, softmax, trace},
    // One step of linear attention: the state before it, e^g, beta, what the decayed state holds
    // for the key, and what is written under the key.
    {"state_before", {batch, kv_heads, q_len, d_k, d_v}, linear, trace},
    {"decay_factors", {batch, kv_heads, q_len, d_k}, linear, trace},
    {"update_rate", {batch, kv_heads, q_len}, linear, trace},
    {"retrieved", {batch, kv_heads, q_len, d_v}, linear, trace},
    {"written", {batch, kv_heads, q_len, d_v}, linear, trace},
    {"row_divisor", per_query, linear, trace},  // of retention
    // The mask after the softmax: the softmax over all keys, and the sum of its unmasked weights.
    {"unmasked_weights", per_key, softmax, trace},
    {"masked_total", per_query, softmax, trace},
};

inline constexpr auto rows = [] {
    std::array<ArrayRow, std::size(forward_rows) + std::size(backward_rows) + std::size(trace_rows)>
        all{};
    auto* to = all.data();
    for (const std::span<const ArrayRow> part :
         {std::span<const ArrayRow>(forward_rows), {backward_rows}, {trace_rows}})
        to = std::ranges::copy(part, to).out;
    return all;
}();

}  // namespace arrays_detail

/// All rows, and those that a setting can name.
inline constexpr std::span<const ArrayRow> all_arrays(arrays_detail::rows);
inline constexpr std::span<const ArrayRow> emitted_arrays = all_arrays.first(
    std::ranges::find(all_arrays, From::trace, &ArrayRow::from) - all_arrays.begin());

/// The name of all gradients and the loss in a list of arrays.
inline constexpr std::string_view all_gradients = "gradients";

/// The index of the row of this name; all_arrays.size() if there is none.
constexpr std::size_t index_of_array(std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(all_arrays, name, &ArrayRow::name) -
                                    all_arrays.begin());
}

/// The index of a row in `all_arrays`. A string literal is looked up, and checked, at compile time.
struct ArrayId {
    std::size_t index;

    constexpr explicit ArrayId(std::size_t i) : index(i) {}
    consteval ArrayId(const char* name) : index(index_of_array(name)) {
        if (index == all_arrays.size()) throw std::logic_error("no such array");
    }

    constexpr const ArrayRow& row() const { return all_arrays[index]; }
    /// Of a gradient, the array that it is of; else itself.
    constexpr ArrayId base() const { return ArrayId(row().gradient_of.value_or(index)); }
    constexpr bool operator==(const ArrayId&) const = default;
};

/// The row of this name among `rows`, a prefix of `all_arrays`; or nothing.
constexpr std::optional<ArrayId> find_array(std::string_view name,
                                            std::span<const ArrayRow> rows = emitted_arrays) {
    const std::size_t index = index_of_array(name);
    return index < rows.size() ? std::optional(ArrayId(index)) : std::nullopt;
}

inline std::vector<std::string> names_of_arrays() {
    std::vector<std::string> names;
    for (const ArrayRow& array : emitted_arrays) names.emplace_back(array.name);
    return names;
}

/// The gradient with respect to an array; nothing if there is none.
constexpr std::optional<ArrayId> gradient_by(ArrayId array) {
    for (std::size_t index = 0; index < all_arrays.size(); ++index)
        if (all_arrays[index].gradient_of == array.index) return ArrayId(index);
    return std::nullopt;
}

/// The scores after each additive mask, and where each of these masks allows a key.
inline constexpr ArrayId bias_scores[] = {"bias_0_scores", "bias_1_scores"},
                         allowed_by_biases[] = {"allowed_by_bias_0", "allowed_by_bias_1"};

class ArraySet {
public:
    constexpr ArraySet() = default;
    constexpr ArraySet(std::initializer_list<ArrayId> ids) {
        for (ArrayId id : ids) add(id);
    }

    /// The arrays of these names; unknown names are ignored.
    template <class Names>
    static constexpr ArraySet named(const Names& names) {
        ArraySet set;
        for (const auto& name : names)
            if (const auto id = find_array(name, all_arrays)) set.add(*id);
        return set;
    }

    /// The arrays for whose rows `is_member` is true.
    template <class IsMember>
    static constexpr ArraySet of(IsMember is_member) {
        ArraySet set;
        for (std::size_t index = 0; index < all_arrays.size(); ++index)
            if (is_member(all_arrays[index])) set.add(ArrayId(index));
        return set;
    }

    constexpr bool has(ArrayId id) const {
        return (bits_[id.index / 64] >> id.index % 64 & 1U) != 0;
    }
    constexpr void add(ArrayId id) { bits_[id.index / 64] |= std::uint64_t{1} << id.index % 64; }
    constexpr void add(const ArraySet& other) {
        for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
    }

    constexpr std::size_t size() const {
        std::size_t size = 0;
        for (std::uint64_t word : bits_) size += static_cast<std::size_t>(std::popcount(word));
        return size;
    }

    /// Calls `use` for each, in the order of computation.
    template <class Use>
    void for_each(Use use) const {
        for (std::size_t index = 0; index < all_arrays.size(); ++index)
            if (has(ArrayId(index))) use(ArrayId(index));
    }

private:
    std::array<std::uint64_t, (all_arrays.size() + 63) / 64> bits_{};
};

}  // namespace attn
