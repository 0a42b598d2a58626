// The operations and memory of a model's layers, from parameter shapes alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/base/dtype.hpp"
#include "core/model/block.hpp"
#include "core/model/run_block.hpp"

namespace attn {

struct ModelSpec;
struct ModelInput;
struct ModelRequest;

/// What parts of a layer work on, and what is recorded.
struct PartSize {
    std::size_t tokens = 0, past = 0, encoder_tokens = 0;
    std::size_t width = 0;   ///< of the hidden states
    std::size_t layer = 0;   ///< in errors
    bool is_masked = false;  ///< an attention mask excludes tokens
    bool is_cached = false;  ///< keys and values are kept for later tokens
    const ArrayRequest* wanted = nullptr;
    Dtype dtype = Dtype::float32;
    std::string_view kernel = "auto";
    std::size_t threads = 1;

    double element() const { return static_cast<double>(row_of(dtype).size); }
};

/// All in bytes but for the first and the last.
struct PartCost {
    /// Floating-point operations of the products, two per multiply-add. Masked keys are counted,
    /// norms, activations and the softmax are not.
    double flops = 0;
    double bytes = 0;     ///< the most at any time, without the part's input
    double recorded = 0;  ///< of these, the arrays that are recorded
    double shared = 0;    ///< keys and values for later layers
    double cached = 0;    ///< state for later tokens
    double numbers = 0;   ///< elements of the recorded arrays
};

/// The product, which may be beyond any integer.
inline double times(std::size_t a, std::size_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
}

/// x W^T + b for each of `rows` rows, with its output and the decoded part of the weight.
PartCost cost_of(const LinearMap& map, std::size_t rows, const PartSize& size);
PartCost cost_of(const FeedForward& part, std::size_t rows, const PartSize& size);
/// Every token is computed by all experts that it chooses. Memory is that of all tokens choosing
/// the same expert.
PartCost cost_of(const Experts& part, const PartSize& size);
PartCost cost_of(const AttentionPart& part, const PartSize& size, bool is_cross = false);
PartCost cost_of(const TransformerBlock& block, const PartSize& size);

/// Steps one after the other: operations and what is kept add up, the most memory counts.
void add_step(PartCost& cost, const PartCost& step);

struct ModelCost {
    double flops = 0;
    double memory = 0;   ///< bytes at the peak
    double kept = 0;     ///< bytes of the result
    double numbers = 0;  ///< elements of the result
};

/// Of run_model(). Tokens and width of `size` come from the input, which must be token ids or
/// hidden states. Generating counts as if no token ended it early. Errors: those of make_plan.
ModelCost measure_model(const ModelSpec& model, const ModelInput& input,
                        const ModelRequest& request, PartSize size);

}  // namespace attn
