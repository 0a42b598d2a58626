// One plan for one question: every size and every choice, settled before a number is computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/arrays.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/operand_shapes.hpp"
#include "core/plan/settings.hpp"

namespace attn {

struct Backend;

/// The sizes that an answer reports. d_k and d_v are those of one head, d_out is the width of the
/// context vectors, q_len counts the rows that are computed.
struct Shapes {
    std::size_t batch, heads, kv_heads, q_len, kv_len, d_in, d_k, d_v, d_out;
};

/// What a question costs, before it is computed.
struct Cost {
    /// Floating point operations of the projections, the scores and the mixing of the values, two a
    /// multiply-add; blocked keys are counted, biases and the softmax are not.
    double flops = 0;
    double memory = 0;          ///< bytes that core needs at its peak, about
    double answer_memory = 0;   ///< bytes that are still there while the answer is written
    std::uint64_t numbers = 0;  ///< in all emitted arrays
};

/// Where a layer's parameters come from, and which of them there are.
struct Parameters {
    enum class Source { none, drawn, given };

    Source source = Source::none;
    Init init = Init::none;
    Seed seed;
    std::uint64_t skip = 0;  ///< 32-bit draws thrown away before the first weight
    bool qkv_bias = false, out_proj = false, out_bias = false;
};

/// The rotary embedding; without frequencies there is none.
struct RopePlan {
    Rope pairs = Rope::half;
    std::vector<double> frequencies;  ///< of each pair, in radians a position
};

struct DropoutPlan {
    double p = 0;  ///< probability of dropping a weight
    DropoutStream stream = DropoutStream::mt19937;
    bool has_own_generator = false;  ///< else the draws go on after those of the parameters
    Seed seed;
    std::uint64_t skip = 0;
};

struct Plan : ScoreModifiers, MaskSettings {
    Settings config;  ///< every default filled in: for those who show it, nothing computes by it

    Mode mode = Mode::self;
    Dtype dtype = Dtype::float32;

    std::size_t batch = 1, heads = 1, kv_heads = 1;
    std::size_t q_len = 0;     ///< all queries, also where one row of them is computed
    std::size_t past_len = 0;  ///< cached keys, before the new ones
    std::size_t kv_len = 0;    ///< cached and new keys
    std::size_t d_in = 0,
                d_context = 0;     ///< columns of the input and of what gives keys and values
    std::size_t d_k = 0, d_v = 0;  ///< of one head
    std::size_t d_out = 0;         ///< of the context vectors

    std::size_t first_query = 0, rows = 0;  ///< of scores and context: what is computed
    PositionOffset offset;                  ///< from a query's index to its place among the keys

    ShownAxes shown;
    bool packed = false;  ///< sdpa: heads lie side by side in the columns, (.., len, heads * d)

    Parameters parameters;

    double scale = 1;
    bool causal = false;
    bool keeps_true = true;  ///< a boolean mask lets pass where it is true
    MaskMethod mask_method = MaskMethod::neg_inf;
    std::vector<double> sink;  ///< a logit a head; empty: none
    RopePlan rope;
    DropoutPlan dropout;

    unsigned met = needs::nothing;  ///< what the question has, bits of needs::Need
    ArraySet emit;
    const Backend* backend = nullptr;  ///< what computes it; always there once planned
    bool streams = false;  ///< weights and scores are computed once more while they are written
    Cost cost;

    Shapes shapes() const { return {batch, heads, kv_heads, rows, kv_len, d_in, d_k, d_v, d_out}; }

    /// Whether each head is a layer by itself, with parameters and a dropout of its own.
    bool independent_heads() const { return shown.independent_heads; }

    /// Whether an array exists in this question.
    bool has(const ArrayRow& array) const { return (array.needs & ~met) == 0; }

    /// The size of an axis. A double also holds those that no machine has room for.
    template <class Number>
    Number size_of(Axis axis) const;

    /// How many numbers an array has; of one that the question does not have: 0.
    template <class Number>
    Number numbers(ArrayId array) const;
};

/// What is wanted of a plan besides its settings.
struct PlanOptions {
    bool stream = false;      ///< large arrays of weights may be computed while they are read
    bool trace = false;       ///< every step of one query, one in the middle by default
    std::size_t threads = 1;  ///< that share out the work
    double text_bytes = 0;    ///< texts of the question that stay in memory
    double text_bytes_while_reading = 0;  ///< texts that are released once they are read

    /// Instead of the settings' own, where they are given; `Plan::config` keeps the settings' emit.
    std::optional<std::vector<std::string>> emit = {};
    std::string_view kernel = {};
    std::optional<std::uint64_t> token = {};
};

/// Fills in every default, checks every setting against the others and against the shapes, and
/// chooses what computes the question.
/// Errors: SettingError of kind usage, shape, input or unsupported.
Plan make_plan(Settings settings, const OperandShapes& operands, const PlanOptions& options = {});

}  // namespace attn
