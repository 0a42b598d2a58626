// The steps on scores between the product and the softmax: a table, in the order in which they are
// applied.
#pragma once

#include "core/base/number_type.hpp"
#include "core/base/step_kind.hpp"
#include "core/expression/rows.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

class Broadcast;

/// ALiBi's factors of key - position, head by head.
enum class SlopeFormula {
    /// 2^(-8 (h + 1) / heads) for a power of two. Otherwise the slopes of the next lower power n,
    /// then every second one of 2n heads, as in Press et al.'s own code, BLOOM, MPT and Baichuan.
    published,
    geometric,  ///< 2^(-8 (h + 1) / heads) for any number of heads
};
inline constexpr Names<SlopeFormula, 2> slope_formula_names{
    {{SlopeFormula::published, "published"}, {SlopeFormula::geometric, "geometric"}}};

/// What the slopes are multiplied by, with the key's index k and the query's position p.
enum class AlibiDistance {
    absolute,    ///< -|k - p|, as encoders and FlashAttention have it
    from_query,  ///< k - p, which favours keys after the query
    from_start,  ///< k
};
inline constexpr Names<AlibiDistance, 2> alibi_distance_names{
    {{AlibiDistance::absolute, "absolute"}, {AlibiDistance::from_query, "signed"}}};

inline constexpr double default_max_distance = 128;

/// Buckets of distances between key and query. Distant buckets grow logarithmically (Raffel et al.
/// 2020, arXiv 1910.10683).
struct DistanceBuckets {
    std::size_t count = 32;
    double max_distance = default_max_distance;
    bool both_sides = true;  ///< otherwise only keys before the query

    std::size_t of(std::size_t query, std::size_t key) const;
};

/// The settings of the steps, except a scale of all heads.
struct ScoreSettings {
    double softcap = 0;  ///< c of c tanh(x / c); 0 is off
    bool alibi = false;
    std::optional<AlibiDistance> alibi_distance;  ///< empty: absolute
    std::optional<SlopeFormula> slope_formula;    ///< empty: published, or given slopes
    std::vector<double> alibi_slopes;             ///< one for each head; empty: by the formula
    std::vector<double> head_scales;              ///< one for each head; empty: the scale of all
    Expression score_mod;                         ///< of the score; empty: none
    std::vector<NamedFormula> score_formulas;     ///< in order, `score_mod` last; set by make_plan
};

/// The scores of one query, and the inputs of its steps. `position` is the query's position among
/// the keys, with cached length and alignment.
struct ScoreRow {
    const ScoreSettings& asked;
    double scale;
    const Broadcast* biases;  ///< additive masks
    std::size_t heads, d_k;
    std::size_t batch, head, query;
    std::int64_t position;
    const ExpressionSizes* sizes;           ///< of formulas
    std::size_t first_key;                  ///< the number of key 0 in formulas
    NumberType type = NumberType::float32;  ///< that tensor programs round each operation to

    template <class T>
    T round(T x) const {
        return is_rounded(type) ? rounded(x, type) : x;
    }
};

/// Changes the scores of a row against all keys, each operation rounded to T as in tensor programs.
/// `index` counts the applications of a repeated step.
template <class T>
using ApplyStep = void (*)(std::span<T> scores, const ScoreRow& row, std::size_t index);

/// Multiplies gradients of the step's results by its derivative at these scores, its input; of a
/// formula the settings have the derivative instead.
template <class T>
using StepBack = void (*)(std::span<T> gradients, std::span<const T> scores, const ScoreRow& row,
                          std::size_t index);

struct ScoreStep {
    std::string_view key;  ///< the setting or operand that enables it
    /// How often it is applied: 0 is off.
    std::size_t (*times)(const ScoreSettings& asked, std::size_t additive_masks);
    std::pair<ApplyStep<float>, ApplyStep<double>> apply;
    std::pair<StepBack<float>, StepBack<double>> back;  ///< null: the derivative is 1
    /// The scores after each application; a step that is off does not change them.
    std::span<const ArrayId> emits;
    StepKind kernel;                                  ///< its form in fused kernels
    double (*number)(const ScoreRow& row) = nullptr;  ///< of the kernels' form; null: none
    bool uses_position = false;                       ///< the alignment of queries and keys matters
    bool adds_terms = false;                          ///< adds a term for each key to the scores
    /// A setting that must be in the range of the type; null: none.
    double (*must_fit_dtype)(const ScoreSettings& asked) = nullptr;
    /// Kernels divide its input by this together with the scale; null: by nothing.
    double (*input_divisor)(const ScoreRow& row) = nullptr;
};

/// The keys of `score_steps()`, for tables with a row for each.
inline constexpr std::string_view score_step_keys[] = {"scale", "softcap", "alibi", "score_mod",
                                                       "mask"};

std::span<const ScoreStep> score_steps();

/// One application of a step.
struct StepUse {
    const ScoreStep& step;
    std::size_t index;
};

/// The steps of a question, in order.
std::vector<StepUse> steps_taken(const ScoreSettings& asked, std::size_t additive_masks);

/// Of one head, where `scale` is that of all.
inline double scale_of(const ScoreSettings& asked, double scale, std::size_t head) {
    return asked.head_scales.empty() ? scale : asked.head_scales[head];
}

double alibi_slope(const ScoreSettings& asked, std::size_t heads, std::size_t head);

/// Whether a step of the question depends on positions.
bool uses_position(const ScoreSettings& asked);

}  // namespace attn
