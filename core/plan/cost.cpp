// What a question costs; see cost.hpp.
#include "core/plan/cost.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "core/kernels/kernel.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

using Sizes = std::vector<std::size_t>;

constexpr std::array<std::string_view, 10> step_arrays{"scores",
                                                       "scaled_scores",
                                                       "capped_scores",
                                                       "biased_scores",
                                                       "mask",
                                                       "masked_scores",
                                                       "masked_weights",
                                                       "dropout_mask",
                                                       "attention_weights",
                                                       "weights_before_dropout"};

bool is_step(std::string_view name) {
    return std::find(step_arrays.begin(), step_arrays.end(), name) != step_arrays.end();
}

std::size_t new_keys(const Geometry& g) {
    return g.kv_len - g.past_len;
}

/// Sizes whose product is an array's number of numbers, for every name in `array_names`. Parameters
/// that a question does not have are 0; of the rest it may have fewer than are here.
std::map<std::string_view, Sizes> sizes_of_arrays(const Settings& s, const Operands& operands,
                                                  const Geometry& g) {
    const std::size_t projected = row_of(s.mode).projects && s.init != Init::none ? 1 : 0;
    const std::size_t bias = projected == 1 && s.qkv_bias ? 1 : 0;
    const std::size_t out = *s.out_proj ? *s.d_out : 0, out_bias = *s.out_bias ? *s.d_out : 0;
    const std::size_t rows = g.rows(s);
    const Sizes context =
        *s.out_proj ? Sizes{g.batch, rows, *s.d_out} : Sizes{g.batch, g.heads, rows, g.d_v};
    std::map<std::string_view, Sizes> sizes{
        {"token_ids", {operands.token_ids.size()}},
        {"inputs", {g.batch, g.q_len, g.d_in}},
        {"normed_inputs", {g.batch, g.q_len, g.d_in}},
        {"W_query", {projected, g.heads, g.d_k, g.d_in}},
        {"b_query", {bias, g.heads, g.d_k}},
        {"W_key", {projected, g.kv_heads, g.d_k, g.d_context}},
        {"b_key", {bias, g.kv_heads, g.d_k}},
        {"W_value", {projected, g.kv_heads, g.d_v, g.d_context}},
        {"b_value", {bias, g.kv_heads, g.d_v}},
        {"W_out", {out, g.heads, g.d_v}},
        {"b_out", {out_bias}},
        {"queries", {g.batch, g.heads, rows, g.d_k}},
        {"keys", {g.batch, g.kv_heads, new_keys(g), g.d_k}},
        {"values", {g.batch, g.kv_heads, new_keys(g), g.d_v}},
        {"logsumexp", {g.batch, g.heads, rows}},
        {"present_key", {g.batch, g.kv_heads, g.kv_len, g.d_k}},
        {"present_value", {g.batch, g.kv_heads, g.kv_len, g.d_v}},
        {"head_outputs", {g.batch, g.heads, rows, g.d_v}},
        {"context_vectors", context}};
    for (std::string_view name : step_arrays)
        sizes.emplace(name, Sizes{g.batch, g.heads, rows, g.kv_len});
    if (s.average_heads) sizes["attention_weights"] = {g.batch, rows, g.kv_len};
    return sizes;
}

template <class Number>
Number product(const Sizes& sizes) {
    Number result{1};
    for (std::size_t size : sizes) result *= static_cast<Number>(size);
    return result;
}

double flops_of(const Settings& s, const Geometry& g,
                const std::map<std::string_view, Sizes>& sizes) {
    const auto numbers = [&](std::string_view name) { return product<double>(sizes.at(name)); };
    const auto times = [&](std::size_t rows, double parameters) {
        return product<double>({g.batch, rows}) * parameters;
    };
    // Queries are projected before the one of `token` is taken.
    const double projections = times(g.q_len, numbers("W_query")) +
                               times(new_keys(g), numbers("W_key") + numbers("W_value")) +
                               times(g.rows(s), numbers("W_out"));
    return 2 * (projections + numbers("scores") * product<double>({g.d_k + g.d_v}));
}

/// Numbers of the matrices that a layer projects.
double tokens_of(const Settings& s, const Geometry& g) {
    if (!row_of(s.mode).projects) return 0;
    const double inputs = product<double>({g.batch, g.q_len, g.d_in});
    return row_of(s.mode).context ? inputs + product<double>({g.batch, new_keys(g), g.d_context})
                                  : inputs;
}

double numbers_of(const Operands& operands) {
    double numbers = 0;
    for (const Array<double>* operand :
         {&operands.inputs, &operands.context, &operands.query, &operands.key, &operands.value,
          &operands.past_key, &operands.past_value, &operands.mask, &operands.key_padding_mask})
        if (operand->dimension() != 0) numbers += static_cast<double>(operand->size());
    return numbers;
}

}  // namespace

MemoryNeed memory_need(const Settings& s, const Operands& operands, const Geometry& g,
                       bool may_stream) {
    const bool fused = choose_kernels(s, g).attention != nullptr;
    const bool streams = fused && may_stream && streams_weights(s, g);
    const std::map<std::string_view, Sizes> sizes = sizes_of_arrays(s, operands, g);
    const auto numbers = [&](std::string_view name) { return product<double>(sizes.at(name)); };
    double parameters = 0;
    for (const auto& [name, size] : sizes)
        if (name.starts_with("W_") || name.starts_with("b_")) parameters += product<double>(size);

    const double query = product<double>({g.batch, g.heads, g.q_len, g.d_k});
    const double key = numbers("present_key"), value = numbers("present_value");
    const double tokens = tokens_of(s, g);
    const double context = numbers("head_outputs") + numbers("context_vectors");
    // Projections read the tokens and lay their parameters out anew; neither outlives them.
    double layer = query + key + value + parameters + std::max(tokens + parameters, context);
    double steps = 0;
    // Every thread of a fused kernel has a tile of queries and one of their context.
    if (fused)
        layer += product<double>(
            {std::thread::hardware_concurrency(), kernels::most_lanes, g.d_k + g.d_v});
    if (!fused) {
        // The reference gives every head keys of its own, has them transposed while it makes the
        // scores, and values after that; at most so many steps are there at once.
        layer += product<double>({g.heads / g.kv_heads}) * (key + std::max(key, value));
        steps = numbers("scores") * (s.mask_method == MaskMethod::renormalize ? 9 : 6);
    }
    // Streams need a few MiB only.
    for (const std::string& name : s.emit)
        if (!is_step(name))
            layer += numbers(name);
        else if (!streams)
            steps += numbers("scores");  // a mean over heads is taken of all of them
    const double element = s.dtype == Dtype::float32 ? sizeof(float) : sizeof(double);
    const double taken =
        sizeof(double) * numbers_of(operands) + element * (row_of(s.mode).projects ? tokens : key);
    return {std::max(taken, element * layer), element * steps};
}

Cost cost_of(const Settings& settings, const Operands& operands, bool may_stream) {
    const Geometry g = geometry_of(settings, operands);
    const std::map<std::string_view, Sizes> sizes = sizes_of_arrays(settings, operands, g);
    const MemoryNeed need = memory_need(settings, operands, g, may_stream);
    std::uint64_t numbers = 0;
    for (const std::string& name : settings.emit) numbers += product<std::uint64_t>(sizes.at(name));
    return {shapes_of(settings, g), flops_of(settings, g, sizes), need.layer + need.steps, numbers};
}

}  // namespace attn
