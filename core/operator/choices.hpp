// The operator's alternatives, and their names.
#pragma once

#include "core/base/names.hpp"

namespace attn {

enum class Rope { half, interleaved };
enum class MaskMethod { neg_inf, renormalize };
enum class DropoutStream { mt19937, mkl, cuda };
/// The kernels of scaled_dot_product_attention on a GPU, each of which draws in its own order.
enum class DropoutKernel { math, efficient, flash };
/// The recurrences of linear attention; see core/linear/linear.hpp.
enum class Rule { linear, gated, delta, gated_delta };

/// What the outputs and weights of linear attention are divided by.
enum class Normalize { none, retention };
/// What a decay is: the logarithm of the state's factor, or the factor.
enum class DecayForm { log, plain };
/// The context vectors' sum, their mean, or the mean of squared differences from a target.
enum class Loss { sum, mean, mse };
/// The order of (batch, heads, sequence, d) in arrays of tokens that are given or results.
enum class QkvFormat { bhsd, bshd, sbhd };

constexpr bool has_decay(Rule rule) {
    return rule == Rule::gated || rule == Rule::gated_delta;
}
/// Whether the state is corrected by what it holds for the key, at the rate beta.
constexpr bool has_beta(Rule rule) {
    return rule == Rule::delta || rule == Rule::gated_delta;
}

inline constexpr Names<Rope, 2> rope_names{
    {{Rope::half, "half"}, {Rope::interleaved, "interleaved"}}};
inline constexpr Names<MaskMethod, 2> mask_method_names{
    {{MaskMethod::neg_inf, "neg-inf"}, {MaskMethod::renormalize, "renormalize"}}};
inline constexpr Names<DropoutStream, 3> dropout_stream_names{{{DropoutStream::mt19937, "mt19937"},
                                                               {DropoutStream::mkl, "mkl"},
                                                               {DropoutStream::cuda, "cuda"}}};
inline constexpr Names<DropoutKernel, 3> dropout_kernel_names{
    {{DropoutKernel::math, "math"},
     {DropoutKernel::efficient, "efficient"},
     {DropoutKernel::flash, "flash"}}};
inline constexpr Names<QkvFormat, 3> qkv_format_names{
    {{QkvFormat::bhsd, "bhsd"}, {QkvFormat::bshd, "bshd"}, {QkvFormat::sbhd, "sbhd"}}};
inline constexpr Names<Loss, 3> loss_names{
    {{Loss::sum, "sum"}, {Loss::mean, "mean"}, {Loss::mse, "mse"}}};
inline constexpr Names<DecayForm, 2> decay_form_names{
    {{DecayForm::log, "log"}, {DecayForm::plain, "plain"}}};
inline constexpr Names<Normalize, 2> normalize_names{
    {{Normalize::none, "none"}, {Normalize::retention, "retention"}}};
inline constexpr Names<Rule, 4> rule_names{{{Rule::linear, "linear"},
                                            {Rule::gated, "gated"},
                                            {Rule::delta, "delta"},
                                            {Rule::gated_delta, "gated_delta"}}};

}  // namespace attn
