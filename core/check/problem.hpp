// A question with its numbers in float64, as the search and the error bounds compute it, and the
// conventions of a computation of attention: everything in which two correct-looking programs
// differ. A question's own are one set of values; the search changes them one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/number_type.hpp"
#include "core/base/thread_pool.hpp"
#include "core/check/backward_convention.hpp"
#include "core/check/other_dropouts.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/operator/arrays.hpp"
#include "core/operator/choices.hpp"
#include "core/plan/operand_table.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// The tensors that projections make, and the output.
enum class Tensor { query, key, value, out };
constexpr std::size_t index_of(Tensor tensor) {
    return static_cast<std::size_t>(tensor);
}
template <class T>
using PerTensor = std::array<T, 4>;  // by Tensor

/// How the columns of (tokens, heads * d) become heads.
enum class HeadSplit {
    columns,      ///< head h has columns h * d to (h + 1) * d
    reshaped,     ///< read as (heads, tokens, d); operands of that shape: as (tokens, heads, d)
    joined,       ///< operands (heads, tokens, d): as columns in order, which are then `reshaped`
    interleaved,  ///< head h has columns h, h + heads, ...
    packed,       ///< queries, keys and values side by side are read as (heads, 3, d) columns
    unpacked,     ///< the inverse: stored as (heads, 3, d) columns, read as (3, heads, d)
};

/// Which key head a query head uses: h / group, h % kv_heads, 0, or h / group from the last one.
enum class HeadGroups { blocks, interleaved, first, reversed };

/// The order of what is done to scores before the softmax. A formula of scores follows alibi.
enum class ScoreStage { scale, softcap, alibi, bias, block };  ///< bias: additive masks
inline constexpr std::array default_score_order{
    ScoreStage::scale, ScoreStage::softcap, ScoreStage::alibi, ScoreStage::bias, ScoreStage::block};

/// How masked keys are excluded.
enum class Blocking {
    before,       ///< their scores are replaced before the softmax
    renormalize,  ///< their weights are set to 0 after it, and rows are divided by their sums
    after,        ///< their weights are set to 0 after it, rows not divided
};

enum class AlibiSlopes {
    asked,      ///< the question's; as published if it has none
    from_one,   ///< 2^(-8 (h + 1) / heads)
    from_zero,  ///< 2^(-8 h / heads)
    published,  ///< as from_one for powers of two; else the paper's own interleaving
    reversed,   ///< those asked, of the heads in the opposite order
    slow,       ///< 2^(-4 (h + 1) / heads)
};

/// How a mask that is an operand enters; true is 1.
enum class MaskUse {
    blocks,      ///< excludes keys
    added,       ///< to the scores
    multiplied,  ///< the scores are multiplied by it where masks are added
    ignored
};

/// What kv_lengths and a key_padding_mask exclude.
enum class PaddingAxis { keys, queries, both };

/// The axis over which weights add up to 1.
enum class SoftmaxAxis { keys, queries, heads, batch };

/// The arrays that a program may have rounded to a smaller type.
enum class Rounded {
    inputs,         ///< sources, and cached keys and values
    parameters,     ///< weights and biases of projections
    unrotated,      ///< queries, keys and values before the rotation
    projected,      ///< and after it
    score_factors,  ///< queries and keys where they are multiplied, not where they are stored
    products,       ///< of queries and keys
    scores,         ///< that enter the softmax
    weights,
    output_factors,  ///< weights and values where they are multiplied, not where they are stored
    outputs,         ///< of heads
    context          ///< after the output projection
};

/// What is given as the logsumexp of scores s with the largest m.
enum class StatedSum { logsumexp, without_max, max_and_log2, smoothed, without_sink, max, sum };

/// Where an output is taken from that is in another order: a mirrored axis, or the next or the
/// previous one of the tokens or heads.
enum class OutputOrder {
    own,
    batch,
    heads,
    next_head,
    tokens,
    next_token,
    previous_token,
    columns,
    reshaped  ///< the memory of (tokens, heads) as (heads, tokens)
};
enum class OutputNorm { none, layer, rms };

// NOLINTBEGIN(modernize-use-nullptr): a defaulted <=> compares with 0.
struct OutputConvention {
    OutputOrder order = OutputOrder::own;
    double factor = 1;
    bool adds_source = false;  ///< what the queries are made of: a residual connection
    OutputNorm norm = OutputNorm::none;

    auto operator<=>(const OutputConvention&) const = default;
};

/// What divides a row of linear attention: nothing, RetNet's max(sqrt(sum of decays), |sum of
/// weights|), or the same with the sum of the weights' magnitudes.
enum class RowDivisor { none, retention, magnitudes };

/// Where linear attention takes a state, and what its rows are divided by.
struct StateConvention {
    bool corrects_undecayed = false;  ///< the delta rules' error is that before the decay
    bool decays_after = false;        ///< a token's own key and value decay with the others
    bool reads_previous = false;      ///< a query reads the state before its own token
    RowDivisor divisor = RowDivisor::none;

    auto operator<=>(const StateConvention&) const = default;
};

struct AlibiConvention {
    bool is_on = false;
    double sign = 1;
    AlibiSlopes slopes = AlibiSlopes::asked;
    AlibiDistance distance = AlibiDistance::absolute;
    bool is_scaled = false;  ///< the slopes are multiplied by the scale

    auto operator<=>(const AlibiConvention&) const = default;
};

struct MaskConvention {
    MaskUse use = MaskUse::blocks;
    bool nonzero_keeps = true;  ///< else numbers other than 0 exclude keys
    double factor = 1;          ///< of what is added

    auto operator<=>(const MaskConvention&) const = default;
};

struct RopeConvention {
    std::optional<Rope> pairs;  ///< none: not rotated
    double base = 0;
    std::size_t dims = 0;
    std::size_t frequency_dims = 0;  ///< D of base^(-2m/D); 0: `dims`
    std::shared_ptr<const RopeScaling> scaling;
    /// Positions of query 0 and of the first new key, or what is added to the question's ids.
    std::int64_t first_query = 0, first_key = 0;
    bool by_ids = false;
    std::uint64_t period = 0;            ///< positions start again after so many; 0: they do not
    int query_times = 1, key_times = 1;  ///< how often each is rotated; -1: backwards
    int value_times = 0;                 ///< likewise, at the positions of the keys

    auto operator<=>(const RopeConvention&) const = default;
};

/// The rules that exclude keys by their position. `offset` leads from a query's index to its
/// position among the keys, one for all batch entries, or one each.
struct BandConvention {
    bool causal = false;
    std::int64_t causal_shift = 0;  ///< a query sees keys up to its position + this
    bool causal_reversed = false;   ///< sees keys from its position + the shift on instead
    std::vector<std::int64_t> offset{0};
    std::int64_t left = -1, right = -1;       ///< the window; -1 is unbounded
    std::vector<std::int64_t> window_offset;  ///< empty: as `offset`

    auto operator<=>(const BandConvention&) const = default;
};

/// From the sources to the queries, keys and values, and from the outputs of heads to the output.
struct ProjectionConvention {
    /// The weight, which is then stored as (d_in, d_out) and read as (d_out, d_in), or the other
    /// way round; without projections the operand, of whose matrices (len, columns) are read as
    /// (columns, len). Where both sizes are equal that is the transpose.
    PerTensor<bool> transposed{};
    PerTensor<bool> adds_bias{};
    HeadSplit split = HeadSplit::columns;   ///< of queries, keys and values
    HeadSplit merged = HeadSplit::columns;  ///< of the outputs of heads
    bool projects_out = true;               ///< else the joined heads are the context vectors
    /// The tensor that is used in place of each: {query, key, value} if none are exchanged.
    std::array<Tensor, 3> used{Tensor::query, Tensor::key, Tensor::value};
    /// The source that each is projected from, and the weight and bias that project it.
    std::array<Tensor, 3> projected_from{Tensor::query, Tensor::key, Tensor::value};
    std::array<Tensor, 3> projected_by{Tensor::query, Tensor::key, Tensor::value};
    HeadGroups groups = HeadGroups::blocks, value_groups = HeadGroups::blocks;
    bool qk_norm = false;  ///< new queries and keys are divided by their L2 norms
    RopeConvention rope;

    auto operator<=>(const ProjectionConvention&) const = default;
};

/// Which keys each query attends to, instead of the question's rules by position.
struct PositionRule {
    Expression formula;
    std::string flag;  ///< with which attn computes it; or empty
};

struct Conventions : ProjectionConvention {
    // Scores. Each stage is applied to what the one before gives, masked scores included.
    double scale = 1;
    std::vector<double> head_scales;  ///< factors on it, one for each head; empty: none
    double softcap = 0;               ///< 0 is off
    bool softcap_multiplies = true;   ///< c tanh(x / c); else tanh(x / c)
    std::array<ScoreStage, 5> order = default_score_order;
    AlibiConvention alibi;

    // Masks.
    BandConvention band;
    std::shared_ptr<const PositionRule> rule;  ///< instead of the band and of formulas; or null
    std::vector<std::uint64_t> kv_lengths;     ///< empty: all keys are valid
    bool lengths_from_end = false;             ///< the last keys are the valid ones
    std::uint64_t first_key = 0;               ///< keys before it are excluded
    PaddingAxis padding = PaddingAxis::keys;   ///< others only where q_len == kv_len
    std::array<MaskConvention, mask_operands.size()> masks;
    bool mask_transposed = false;  ///< the mask's last two axes are swapped; they are equal
    bool mask_tiled = false;       ///< entry b, head h has the mask of entry (b heads + h) % batch
    Blocking blocking = Blocking::before;
    double masked_value = -HUGE_VAL;
    bool masked_value_is_added = false;  ///< else it replaces the score
    bool empty_rows_are_nan = false;     ///< of queries whose keys are all excluded; else 0

    // Weights.
    SoftmaxAxis axis = SoftmaxAxis::keys;
    std::vector<double> sink;    ///< empty: none
    bool sink_from_max = false;  ///< a row's sink is its largest score, plus `sink` if any
    double softmax_plus = 0;     ///< if above 0, added in place of e^sink
    std::shared_ptr<const Expression> weights;  ///< of a score, instead of a softmax; or null
    bool sums_to_one = false;                   ///< these weights are divided by their sum
    StatedSum stated_sum = StatedSum::logsumexp;
    double sum_factor = 1, log_factor = 1;  ///< log_factor ln(sum_factor sum(e^s))
    OutputConvention output;
    StateConvention state;
    BackwardConvention backward;
    bool drops = false;  ///< the question's dropout is applied
    bool rescales_dropout = true;
    std::size_t dropout_draws = 0;  ///< 0: the question's; else an index of other_dropouts, plus 1
    std::optional<std::size_t> flipped;  ///< the weight that only one of the two masks keeps
    double weight_factor = 1;            ///< the weights are multiplied by it after the softmax
    /// The question's formulas.
    bool mask_mod = false, relative_bias = false, score_mod = false, prob_mod = false;
    bool modifies_scores() const { return relative_bias || score_mod; }

    /// Arrays that are rounded to a type after they are computed.
    struct Rounding {
        Rounded what;
        NumberType to;
        auto operator<=>(const Rounding&) const = default;
    };
    std::vector<Rounding> roundings;

    auto operator<=>(const Conventions&) const = default;
};
// NOLINTEND(modernize-use-nullptr)

/// Rows of numbers and, where they were asked for, bounds on their errors: else these are 0, or
/// none.
struct Numbers {
    std::size_t rows = 0, columns = 0;
    std::vector<double> value;
    std::vector<double> error;       ///< of numbers that are too large
    std::vector<double> below = {};  ///< of those too small; empty: the same

    double below_at(std::size_t i) const { return below.empty() ? error[i] : below[i]; }
    /// Of another program's number.
    double bound(std::size_t i, double theirs) const {
        return theirs < value[i] ? below_at(i) : error[i];
    }
    /// In either direction.
    double bound(std::size_t i) const { return std::max(error[i], below_at(i)); }
};

/// A weight as nn.Linear stores it, (d_out, d_in), and its bias, or no numbers. Those of
/// independent heads are one below the other.
struct ProjectionNumbers {
    std::size_t d_out = 0, d_in = 0;
    std::size_t groups = 1;  ///< independent heads
    bool in_out = false;     ///< the question stores it as (d_in, d_out)
    std::vector<double> weight, bias;
};

/// How the heads of a source that is not projected lie in memory.
enum class HeadsIn {
    columns,  ///< (batch, tokens, heads * d)
    axis,     ///< (batch, heads, tokens, d)
    copies,   ///< (batch, tokens, d): every head has all of it
};

/// Whether a query attends to a key, in another program's weights.
enum class SeenKey : char { excluded, attended, unknown };

/// The weights of another program, given or recovered from its outputs: (batch, heads, rows,
/// kv_len).
struct SeenWeights {
    std::vector<double> weights;
    std::vector<SeenKey> keys;
    struct At {
        std::size_t batch, head, row;
    };
    std::optional<At> departs;  ///< the first query whose keys are not those of the question
};

/// What is computed, with nothing left to decide but the conventions. Without projections, the
/// sources of queries, keys and values are the operands.
struct Problem {
    Plan plan;       ///< of the question; its type does not count
    Numbers inputs;  ///< (batch * tokens, d_in), before the norm; or empty
    /// (batch * tokens, columns), after the norm of inputs; heads side by side, also where they are
    /// an axis in memory.
    std::array<Numbers, 3> source;  ///< of queries, keys and values
    HeadsIn heads_in = HeadsIn::columns;
    PerTensor<std::optional<ProjectionNumbers>> projection;
    std::optional<InputNorm> input_norm, query_norm, key_norm;
    ByOperand<std::optional<OperandNumbers>> operands;  ///< caches, gates and masks
    std::vector<char> dropout_kept;  ///< 0 and 1, (batch, heads, rows, kv_len); or empty
    double kept_weight = 1;          ///< 1 / (1 - p)
    std::vector<OtherDropout> other_dropouts;
    std::optional<SeenWeights> seen;
    std::vector<double> bonus;  ///< of linear attention, (kv_heads, d_k); or empty
    /// How the other --qkv-layout splits the combined QKV tensor; empty: a config determines the
    /// layout, or the weights are separate tensors.
    std::optional<HeadSplit> other_layout;

    Conventions asked;  ///< the question's own

    /// Empty where the operand is absent.
    std::span<const double> numbers(OperandId operand) const {
        return operands[operand] ? operands[operand]->values : std::span<const double>();
    }
    /// The mask of `mask_operands`, if it is given.
    const std::optional<OperandNumbers>& mask(std::size_t which) const {
        return operands[*mask_operands[which]];
    }
    std::size_t head_count(Tensor tensor) const {
        return tensor == Tensor::query ? plan.heads : plan.kv_heads;
    }
    /// New ones, of each batch entry.
    std::size_t tokens(Tensor tensor) const {
        return source[index_of(tensor)].rows / std::max<std::size_t>(plan.batch, 1);
    }
    /// The position that a rotation has for a new token.
    double position(const RopeConvention& rope, Tensor tensor, std::size_t batch, std::size_t token,
                    std::size_t axis = 0) const;
    /// Whether the sizes of the tensors that the conventions use fit together.
    bool fits(const Conventions& conventions) const;
};

/// Whether the mask of `mask_operands` is given as a boolean one, or an additive one.
inline bool has_mask(const Problem& problem, std::size_t which, bool is_boolean) {
    return problem.mask(which) && problem.mask(which)->is_boolean == is_boolean;
}

/// `operands` are those that the plan was made for, complete: they are rounded to its type first.
/// `result` is the plan's, of which the weights are taken and, where there is dropout, the array
/// dropout_mask, which it must have.
Problem make_problem(const Plan& plan, const Operands& operands, const Result& result);

/// The problem of a question: the same inputs, rounded to its type, the same parameters, drawn in
/// its type if they are drawn, and the same dropout mask. The question's arrays without rounding
/// are the rows of a Candidate with `asked`. The plan must be made for the operands.
Problem exact_question(const Plan& plan, const Operands& operands, ThreadPool& pool);

// Which of a computation's conventions have an effect.

/// Whether the conventions exclude keys; additive masks are read for -infinity.
bool excludes_keys(const Problem& problem, const Conventions& c);

/// Moves the stages of scores that do nothing to the end of their order, sorted. Returns how many
/// do something.
std::size_t move_idle_stages(Conventions& c, bool excludes);

/// The conventions with those reset that the array does not depend on. They are equal only if the
/// array's numbers are, which may be equal for different ones.
Conventions relevant_conventions(const Problem& problem, Conventions conventions, ArrayId array);

}  // namespace attn
