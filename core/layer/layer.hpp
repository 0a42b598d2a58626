// Attention layers: self, causal, multihead and cross with their parameters, and the bare operator.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/operator/attention.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// The keys that each query may attend to, by all masks of the question; -Infinity of an additive
/// mask counts too. The plan must be made for these operands.
Mask mask_of(const Plan& plan, const Operands& operands);

struct Draws {
    std::vector<DrawnArray> arrays{};  ///< see RandomStream::drawn; without --text's
    Dropout dropout{};
    /// The 32-bit draws of the seed's stream up to the end of the question, those that it skips
    /// included, or the GPU's offset; 0 if it draws nothing.
    std::uint64_t end = 0;
};
/// Draws everything; a result has their number already.
Draws draws_of(const Plan& plan);

/// Where the generator of the plan's dropout is after it, in the numbers of dropout_skip. p is not
/// 0.
std::uint64_t end_of_dropout(const Plan& plan, const Dropout& dropout);

/// What a layer has besides its tokens. `call` has no queries, keys and values.
template <class T>
struct LayerParts {
    std::shared_ptr<const LayerWeights<T>> weights;  ///< null without projections
    AttentionCall<T> call;                           ///< masks, score steps, sinks and dropout
    std::uint64_t draws = 0;                         ///< see Draws::end; 0 in a dry run
};

/// In the dtype of the plan.
using AnyLayerParts = std::variant<LayerParts<float>, LayerParts<double>>;

/// Draws or takes the weights, and takes the masks of `operands`.
AnyLayerParts take_parts(const Plan& plan, Operands& operands);

/// Attention over some keys of a question, without its sinks.
struct KeyPart {
    RealArray context;  ///< (batch, heads, rows, d_v), normalised over these keys
    /// (batch, heads, rows); -Infinity of a query that adds nothing, see RowSum.
    Array<double> logsumexp;
    RealArray out_weight;  ///< (d_out, heads * d_v), if the layer projects its heads
    RealArray out_bias;    ///< (d_out), if it has one
};

/// Computes the part of the plan's keys, which MergedRows joins with others (merge.hpp). Operands
/// are those of the whole question, of which only the plan's keys are projected; new keys, values
/// and a context may have those rows alone. They are freed after their last use. The question has a
/// softmax, and the mask method neg_inf.
KeyPart compute_part(const Plan& plan, Operands&& operands, ThreadPool& pool);

/// The arrays context_vectors, head_outputs and logsumexp, of those in `plan.emit`, from the joined
/// parts of all keys, sinks included: `part` has float64 context.
Result result_of_rows(const Plan& plan, KeyPart part, ThreadPool& pool);

/// Computes the arrays of `plan.emit`. The plan must be made for these operands, which are freed
/// after their last use. Streams of the result use the threads while they are read.
Result compute(const Plan& plan, Operands&& operands, ThreadPool& pool);

struct Cost {
    /// Floating-point operations of the projections, the scores and the products with the values,
    /// two per multiply-add. Masked keys are counted, biases and the softmax are not.
    double flops = 0;
    std::uint64_t numbers = 0;  ///< elements of all recorded arrays

    double memory = 0;         ///< bytes of all arrays at the peak, operands included
    double operand_bytes = 0;  ///< before anything is computed
    double answer_memory = 0;  ///< still in use while the result is written
};

double flops_of(const Plan& plan);

/// Accepts sizes beyond any machine's memory.
Cost measure(const Plan& plan, std::size_t threads = 1);

/// Throws a SettingError if a question of this cost needs too much memory, at the key that takes
/// the larger part; see require_memory in core/base/memory.hpp.
void require_memory(const Plan& plan, const Cost& cost);

}  // namespace attn
