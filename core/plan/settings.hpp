// The settings of one attention computation: modes, choices and their names, one struct.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "core/base/cuda_random.hpp"
#include "core/operator/choices.hpp"
#include "core/operator/mask.hpp"
#include "core/operator/rope.hpp"
#include "core/operator/score_steps.hpp"
#include "core/plan/initialiser.hpp"

namespace attn {

enum class Mode { self, causal, multihead, cross, sdpa, linear };

/// How outputs are computed from queries, keys and values.
enum class Mechanism { softmax, linear };

/// What a mode starts from: inputs, which it projects, or queries, keys and values.
enum class Source { inputs, operands, either };

/// When a result has a heads axis.
enum class HeadsAxis {
    never,
    named,    ///< if the setting `heads` is given
    always,   ///< of one head unless `heads` is given
    of_query  ///< as in the query's shape, and so it is for every mode where one is given
};

struct ModeRow {
    Mode mode;
    std::string_view name;
    Source source;
    bool context;  ///< keys and values come from a different input than the queries
    HeadsAxis heads_axis;
    bool causal;  ///< unless set otherwise
    Mechanism mechanism = Mechanism::softmax;

    /// Whether queries, keys and values are projected from inputs. `given`: they are given.
    constexpr bool projects(bool given) const {
        return source == Source::inputs || (source == Source::either && !given);
    }
};

inline constexpr std::array<ModeRow, 6> mode_rows{
    {{Mode::self, "self", Source::inputs, false, HeadsAxis::never, false},
     {Mode::causal, "causal", Source::inputs, false, HeadsAxis::never, true},
     {Mode::multihead, "multihead", Source::inputs, false, HeadsAxis::always, true},
     {Mode::cross, "cross", Source::inputs, true, HeadsAxis::named, false},
     {Mode::sdpa, "sdpa", Source::operands, true, HeadsAxis::of_query, false},
     {Mode::linear, "linear", Source::either, false, HeadsAxis::named, true, Mechanism::linear}}};

constexpr const ModeRow& row_of(Mode mode) {
    return mode_rows[static_cast<std::size_t>(mode)];
}
static_assert(are_in_order(mode_rows, &ModeRow::mode));

/// The row of this name, or null.
constexpr const ModeRow* mode_named(std::string_view name) {
    return find_row(mode_rows, &ModeRow::name, name);
}

/// A set of modes, one bit each.
using Modes = unsigned;
constexpr Modes in(Mode mode) {
    return 1u << static_cast<unsigned>(mode);
}

constexpr Modes every_mode = (1u << mode_rows.size()) - 1;

enum class Style { split, wrapper };
enum class CausalAlign { top_left, bottom_right };
enum class MaskTrue { keep, drop };
/// What masks compare: indices in the sequence, or position ids.
enum class MaskBy { index, position };

inline constexpr Names<Style, 2> style_names{
    {{Style::split, "split"}, {Style::wrapper, "wrapper"}}};
inline constexpr Names<CausalAlign, 2> causal_align_names{
    {{CausalAlign::top_left, "top-left"}, {CausalAlign::bottom_right, "bottom-right"}}};
inline constexpr Names<MaskTrue, 2> mask_true_names{
    {{MaskTrue::keep, "keep"}, {MaskTrue::drop, "drop"}}};
inline constexpr Names<MaskBy, 2> mask_by_names{
    {{MaskBy::index, "index"}, {MaskBy::position, "position"}}};

/// A generator's seed, -2^63 to 2^64-1: a negative one is kept as its two's complement.
struct Seed {
    std::uint64_t bits = 0;
    bool negative = false;
};

/// Su et al., "RoFormer" (2021), section 3.2.2.
inline constexpr double default_rope_base = 10000;

struct LinearSettings {
    std::optional<Rule> rule;
    std::vector<double> decay, beta;  ///< constants: one for all key heads, or one each
    std::optional<DecayForm> decay_form;
    /// RWKV-6's u, (kv_heads, d_k) or one number: the factor of a token's own key when its output
    /// is read, before its decay and its update; null: outputs are read after both.
    std::shared_ptr<const Array<double>> bonus;
    std::optional<Normalize> normalize;
    /// Queries and keys are divided by sqrt(sum of squares + 1e-6); in modes with a softmax by
    /// their L2 norm, or 1e-12.
    bool qk_norm = false;
};

/// One question. An empty optional means the default, which may depend on the input's shape;
/// `make_plan` (plan.hpp) fills all of them in.
struct Settings : ScoreSettings, MaskSettings, LinearSettings {
    Mode mode = Mode::self;
    NumberType dtype = NumberType::float32;  ///< of the arithmetic and of results
    /// The type that given keys and values, and parameters, are quantised to before use: float8.
    std::optional<NumberType> quantised_type;
    /// With bfloat16 and float16: the type of the steps of a softmax, and of sums of products after
    /// each addition; float32 or the dtype.
    std::optional<NumberType> softmax_dtype, accumulate;
    NumberType softmax_type() const { return softmax_dtype.value_or(NumberType::float32); }
    NumberType sum_type() const { return accumulate.value_or(NumberType::float32); }

    std::optional<QkvFormat> qkv_format;
    std::optional<bool> batch_first;  ///< else tokens come before batch entries
    QkvFormat order() const {
        if (!batch_first.value_or(true)) return QkvFormat::sbhd;
        return qkv_format.value_or(cu_seqlens == nullptr ? QkvFormat::bhsd : QkvFormat::bshd);
    }

    std::optional<std::uint64_t> context_length;  ///< longest input allowed, in tokens

    std::optional<std::uint64_t> d_out, d_k, d_v;  ///< widths over all heads (wrapper: of one head)
    std::optional<std::uint64_t> heads, kv_heads;

    Init init = Init::linear;
    std::vector<double> init_numbers;  ///< of its form: a gain, a mean and a standard deviation
    Rng rng = Rng::torch;
    Seed seed;
    /// 32-bit draws skipped before the first draw that is used; on a GPU, the generator's offset.
    std::uint64_t rng_skip = 0;
    /// The shape of an input that is drawn before the parameters, as torch.rand or torch.randn, or
    /// of the query, and so of the key and the value; at most one is given.
    std::vector<std::uint64_t> rand, randn;
    /// In place of 0 to 1, the range of `rand`, or of its integers, without the end; or empty.
    std::vector<double> uniform;
    std::vector<std::int64_t> randint;
    const std::vector<std::uint64_t>& drawn_shape() const { return randn.empty() ? rand : randn; }
    /// The order in which parameters are drawn: query, key, value and out, which may be left out
    /// and is the last then; empty: this one.
    std::vector<std::string> draw_order;
    bool qkv_joined = false;  ///< the three projections are one tensor, which is drawn once
    bool qkv_bias = false;
    std::optional<bool> out_proj, out_bias;
    Style style = Style::split;

    std::optional<bool> causal;
    std::optional<CausalAlign> causal_align;
    std::optional<MaskTrue> mask_true;  ///< the meaning of `true` in boolean masks
    MaskMethod mask_method = MaskMethod::neg_inf;
    std::optional<MaskBy> mask_by;
    bool masks_by_position() const { return mask_by == MaskBy::position; }
    Expression prob_mod;   ///< of the weights before dropout, which are not divided by their sum
    ExpressionArrays let;  ///< arrays that formulas name

    /// Factors of quantised keys and values, which are applied when these are read.
    std::shared_ptr<const Array<double>> key_scale, value_scale;

    std::optional<double> scale;
    std::optional<Rope> rope;
    std::optional<double> rope_base;
    std::optional<std::uint64_t> rope_dims;  ///< leading dimensions of a head that are rotated
    std::shared_ptr<const RopeScaling> rope_scaling;  ///< null: none
    /// (tokens) or (batch, tokens), with mrope_section (axes, tokens) or (axes, batch, tokens):
    /// integers that the rotation and formulas take in place of the indices; of the queries, and
    /// of the new keys or of all keys if they are others; or null.
    std::shared_ptr<const Array<double>> position_ids, key_position_ids;
    std::vector<double> sink;  ///< one logit per head in the softmax's denominator
    double softmax_plus = 0;   ///< added to the denominator: a sink of its logarithm
    /// The logits in the denominator, in either form.
    std::vector<double> sinks() const {
        return softmax_plus == 0 ? sink : std::vector{std::log(softmax_plus)};
    }
    std::shared_ptr<const Array<double>> relative_bias;  ///< (buckets, heads), as in T5
    std::optional<std::uint64_t> relative_buckets;       ///< empty: the rows of it
    std::optional<double> relative_max_distance;         ///< empty: 128

    double dropout = 0;  ///< probability of dropping a weight, 0 to 1
    std::optional<Seed> dropout_seed;
    std::optional<std::uint64_t> dropout_skip;
    DropoutStream dropout_stream = DropoutStream::mt19937;
    std::optional<DropoutKernel> dropout_kernel;  ///< of the stream cuda; empty: F.dropout
    /// Of the GPU whose stream is drawn from; empty: an H100's, and where none is.
    std::optional<std::uint64_t> multiprocessors, threads_per_multiprocessor;
    GpuThreads gpu() const {
        return {multiprocessors.value_or(GpuThreads().multiprocessors),
                threads_per_multiprocessor.value_or(GpuThreads().threads_per_multiprocessor)};
    }
    /// Whether dropout goes on where the draws of inputs and parameters end: one generator has
    /// both.
    bool continues_stream() const {
        return !dropout_seed && (dropout_stream == DropoutStream::cuda) == (rng == Rng::cuda);
    }

    bool backward = false;     ///< gradients too, of the loss or from grad_output
    std::optional<Loss> loss;  ///< empty: sum, or the operand grad_output

    std::optional<std::uint64_t> token;  ///< the only query row to compute, from 0
    std::vector<std::uint64_t> rows;     ///< the first query row to compute, and the end; or empty
    std::optional<std::uint64_t> top;    ///< keys of each query in top_keys and top_weights
    std::vector<std::string> emit{"context_vectors", "attention_weights"};
    std::vector<std::uint64_t> head;  ///< that arrays of each head hold, in order; empty: all
    bool average_heads = false;       ///< attention_weights are their mean over the heads

    std::string_view kernel = "auto";  ///< a backend_name() (backend.hpp)

    /// A given setting has the value that would follow without it, or no effect. Set by make_plan.
    bool may_follow = false;
};

}  // namespace attn
