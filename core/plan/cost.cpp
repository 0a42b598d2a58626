// What a question costs; see cost.hpp.
#include "core/plan/cost.hpp"

#include <algorithm>
#include <initializer_list>
#include <thread>

#include "core/kernels/kernel.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

double product(std::initializer_list<std::size_t> sizes) {
    double result = 1;
    for (std::size_t size : sizes) result *= static_cast<double>(size);
    return result;
}

/// Numbers of the matrices that a layer projects.
double numbers_of_tokens(const Plan& plan) {
    if (!row_of(plan.mode).projects) return 0;
    const double inputs = product({plan.batch, plan.q_len, plan.d_in});
    return row_of(plan.mode).context
               ? inputs + product({plan.batch, plan.kv_len - plan.past_len, plan.d_context})
               : inputs;
}

double numbers_of_operands(const OperandShapes& operands) {
    double numbers = 0;
    for (const Shape* shape :
         {&operands.inputs, &operands.context, &operands.query, &operands.key, &operands.value,
          &operands.past_key, &operands.past_value, &operands.mask, &operands.key_padding_mask}) {
        double size = shape->empty() ? 0 : 1;
        for (std::size_t length : *shape) size *= static_cast<double>(length);
        numbers += size;
    }
    return numbers;
}

double flops_of(const Plan& plan) {
    const auto numbers = [&](ArrayId array) { return plan.numbers<double>(array); };
    const auto times = [&](std::size_t rows, double parameters) {
        return product({plan.batch, rows}) * parameters;
    };
    // Queries are projected before the one of `token` is taken.
    const double projections =
        times(plan.q_len, numbers("W_query")) +
        times(plan.kv_len - plan.past_len, numbers("W_key") + numbers("W_value")) +
        times(plan.rows, numbers("W_out"));
    return 2 * (projections + numbers("scores") * product({plan.d_k + plan.d_v}));
}

}  // namespace

MemoryNeed memory_need(const Plan& plan, const OperandShapes& operands) {
    const bool fused = plan.backend->is_fused();
    const auto numbers = [&](ArrayId array) { return plan.numbers<double>(array); };
    double parameters = 0;
    for (std::size_t place = 0; place < emitted_arrays.size(); ++place)
        if (emitted_arrays[place].is_parameter()) parameters += numbers(ArrayId(place));

    const double query = product({plan.batch, plan.heads, plan.q_len, plan.d_k});
    const double key = numbers("present_key"), value = numbers("present_value");
    const double tokens = numbers_of_tokens(plan);
    const double context = numbers("head_outputs") + numbers("context_vectors");
    // Projections read the tokens and lay their parameters out anew; neither outlives them.
    double layer = query + key + value + parameters + std::max(tokens + parameters, context);
    double steps = 0;
    // Every thread of a fused kernel has a tile of queries and one of their context.
    if (fused)
        layer += product(
            {std::thread::hardware_concurrency(), kernels::most_lanes, plan.d_k + plan.d_v});
    if (!fused) {
        // The reference gives every head keys of its own, has them transposed while it makes the
        // scores, and values after that; at most so many steps are there at once.
        layer += product({plan.heads / plan.kv_heads}) * (key + std::max(key, value));
        steps = numbers("scores") * (plan.mask_method == MaskMethod::renormalize ? 9 : 6);
    }
    // Streams need a few MiB only.
    plan.emit.for_each([&](ArrayId array) {
        if (!array.row().counts_queries_and_keys())
            layer += numbers(array);
        else if (!plan.streams)
            steps += numbers("scores");  // a mean over heads is taken of all of them
    });
    const auto element = static_cast<double>(row_of(plan.dtype).size);
    const double taken = sizeof(double) * numbers_of_operands(operands) +
                         element * (row_of(plan.mode).projects ? tokens : key);
    return {std::max(taken, element * layer), element * steps};
}

Cost cost_of(const Plan& plan, const MemoryNeed& need) {
    std::uint64_t numbers = 0;
    plan.emit.for_each([&](ArrayId array) { numbers += plan.numbers<std::uint64_t>(array); });
    return {flops_of(plan), need.layer + need.steps, numbers};
}

}  // namespace attn
