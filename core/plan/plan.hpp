// One plan for one question: every size and every choice, resolved before a number is computed.
#pragma once

#include "core/operator/shown_axes.hpp"
#include "core/plan/operand_shapes.hpp"

namespace attn {

struct Backend;

/// The sizes in a result. d_k and d_v are those of one head, d_out is the width of the context
/// vectors, q_len counts the computed rows.
struct Shapes {
    std::size_t batch, heads, kv_heads, q_len, kv_len, d_in, d_k, d_v, d_out;
};

struct Plan {
    Settings config;         ///< with every default filled in
    OperandShapes operands;  ///< what the plan was made from, with `config`

    std::size_t batch = 1, heads = 1, kv_heads = 1;
    std::size_t q_len = 0;     ///< all queries, even if only one row is computed
    std::size_t past_len = 0;  ///< cached keys, before the new ones
    std::size_t kv_len = 0;    ///< cached and new keys
    /// Columns of the input, and of the sources of keys and of values.
    std::size_t d_in = 0, d_context = 0, d_value_input = 0;
    std::size_t d_k = 0, d_v = 0;  ///< of one head
    std::size_t d_out = 0;         ///< of the context vectors

    std::size_t first_query = 0, rows = 0;  ///< of scores and context: what is computed
    std::size_t first_key = 0, keys = 0;    ///< of the kv_len keys: those that are used
    PositionOffset offset;                  ///< from a query's index to its position among the keys

    std::size_t top = 0;    ///< keys of each query in top_keys and top_weights
    ShownAxes shown;        ///< with the chosen heads, if not all
    bool projects = false;  ///< queries, keys and values are projections of inputs
    bool packed = false;    ///< given heads are concatenated in the columns, (.., len, heads * d)

    RopeSettings rope;
    TokenPositions query_positions, key_positions;  ///< by the index among all keys
    std::size_t position_axes() const {
        return std::max(query_positions.axes(), key_positions.axes());
    }
    std::vector<NamedFormula> mask_formulas;

    unsigned met = needs::nothing;  ///< the conditions that hold, bits of needs::Need
    ArraySet emit;
    const Backend* backend = nullptr;  ///< never null in a finished plan
    bool streams = false;              ///< weights and scores are recomputed while they are written
    std::string_view widest;           ///< the key of the largest width that was set

    Shapes shapes() const { return {batch, heads, kv_heads, rows, kv_len, d_in, d_k, d_v, d_out}; }

    /// The values of formulas' variables of sizes.
    ExpressionSizes expression_sizes() const {
        return {batch,  heads,  q_len,
                kv_len, offset, arithmetic_of(config.dtype) == NumberType::float32};
    }

    /// Whether the causal mask and the window are rules of their own, not parts of formulas.
    bool has_causal_rule() const {
        return *config.causal && config.prefix_len.empty() && config.cu_seqlens == nullptr &&
               !config.masks_by_position();
    }
    bool has_window_rule() const {
        return !config.window.empty() && !config.keep_first && config.cu_seqlens == nullptr &&
               !config.masks_by_position();
    }

    /// (kv_heads, d_k), in the dtype; empty: none.
    std::vector<double> bonus() const;
    bool normalizes() const { return config.normalize == Normalize::retention; }
    bool has_plain_decay() const { return config.decay_form == DecayForm::plain; }

    /// Whether the context is computed. Linear attention's states come with it.
    bool needs_context() const {
        return config.backward || emit.has("context_vectors") || emit.has("head_outputs") ||
               (met & needs::linear) != 0;
    }

    /// Whether each head is a separate layer, with its own parameters and dropout.
    bool independent_heads() const { return shown.independent_heads; }

    /// Whether projections have weights: those of a layer, unless `Init::none` leaves them out.
    bool has_parameters() const { return (met & needs::projections) != 0; }

    /// Otherwise they are given, or there are none.
    bool draws_parameters() const { return has_parameters() && !operands.weights; }

    /// Of the parameters, given or drawn.
    WeightShapes weight_shapes() const;

    /// Whether true in a boolean mask means attend.
    bool keeps_true() const { return config.mask_true == MaskTrue::keep; }

    /// The cached keys that are used, and the new ones, counted from the first new one.
    KeyRange past_keys() const {
        return {std::min(first_key, past_len), std::min(first_key + keys, past_len)};
    }
    KeyRange new_keys() const {
        return {std::max(first_key, past_len) - past_len,
                std::max(first_key + keys, past_len) - past_len};
    }

    /// A query that a causal mask hides keys from, also if there are fewer keys than queries.
    std::size_t middle_query() const;

    /// Whether a weight is stored as (d_in, d_out), not as (d_out, d_in).
    bool is_transposed(ArrayId array) const;

    /// The names of an array's axes, in stored order: a parameter may be transposed, and rows of
    /// tokens are in the settings' order, but not while they are computed.
    std::vector<std::string_view> axes_of(ArrayId array) const;
    std::vector<std::string_view> computed_axes_of(ArrayId array) const;

    /// The sizes of these axes.
    Shape shape_of(ArrayId array) const;

    /// Whether an array exists in this question.
    bool has(const ArrayRow& array) const {
        if (array.is_operand()) return !operand_shape(array).empty();
        return (array.needs & ~met) == 0 &&
               (!array.gradient_of || is_differentiable(all_arrays[*array.gradient_of]));
    }

    /// Whether the question has the array, and it is not a boolean mask.
    bool is_differentiable(const ArrayRow& array) const;

    /// The shape of an operand that is recorded as it is given; empty if the question lacks it.
    const Shape& operand_shape(const ArrayRow& array) const;

    /// The size of an axis. A double also holds sizes beyond any machine's memory.
    template <class Number>
    Number size_of(Axis axis) const;

    /// The number of elements of an array; 0 if the question does not have it.
    template <class Number>
    Number numbers(ArrayId array) const;
};

/// Inputs of a plan besides its settings.
struct PlanOptions {
    bool stream = false;          ///< large arrays of weights may be computed while they are read
    bool trace = false;           ///< every step of one query, one in the middle by default
    bool computed_order = false;  ///< of axes, in place of the settings'

    /// The keys that are used, of all that the question has; the rest is another part's. All if not
    /// given.
    std::optional<KeyRange> keys = {};

    /// Replace the settings' own, where given; `Plan::config` keeps the settings' emit.
    std::optional<std::vector<std::string>> emit = {};
    std::string_view kernel = {};
};

/// Fills in every default, checks every setting against the others and against the shapes, and
/// selects the backend. Errors: SettingError of kind usage, shape, input or unsupported.
Plan make_plan(Settings settings, const OperandShapes& operands, const PlanOptions& options = {});

}  // namespace attn
