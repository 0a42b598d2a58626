
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/layer/layer.hpp"
#include "core/plan/backend.hpp"

namespace attn {

double flops_of(const Plan& plan) {
    const auto numbers = [&](ArrayId array) { return plan.numbers<double>(array); };
    // All queries are projected before the row of `token` is selected.
    const double projections =
        product_of_sizes(plan.batch, plan.q_len, numbers("W_query")) +
        product_of_sizes(plan.batch, plan.new_keys().end - plan.new_keys().first,
                         numbers("W_key") + numbers("W_value")) +
        product_of_sizes(plan.batch, plan.rows, numbers("W_out"));
    // A product has two gradients; those of attention recompute the scores.
    const double of_projections = plan.config.backward ? 3 : 1,
                 of_attention = plan.config.backward ? 3.5 : 1;
    return 2 * (of_projections * projections + of_attention * multiply_adds(plan));
}

Cost measure(const Plan& plan, std::size_t threads) {
    Cost cost;
    cost.flops = flops_of(plan);
    plan.emit.for_each([&](ArrayId id) { cost.numbers += plan.numbers<std::uint64_t>(id); });
    ThreadPool pool(threads);
    MemoryMeter meter(MemoryMeter::Run::dry);
    Operands operands = allocate_operands(plan.operands, plan.config.dtype);
    cost.operand_bytes = meter.bytes();
    Result result = compute(plan, std::move(operands), pool);
    result.weights.reset();
    cost.answer_memory = meter.bytes();
    // Two pieces of each stream: the first is freed once the second is there.
    for (const NamedArray& array : result.arrays)
        if (array.stream)
            std::visit(
                [](const auto& rows) {
                    auto piece = rows.next();
                    piece = rows.next();
                },
                *array.stream);
    cost.memory = meter.peak();
    return cost;
}

void require_memory(const Plan& plan, const Cost& cost) {
    if (cost.memory <= unchecked_memory) return;
    double largest = 0;  // of the other arrays
    ArraySet::of([&](const ArrayRow& row) {
        return !row.counts_queries_and_keys() && !row.is_operand();
    }).for_each([&](ArrayId id) { largest = std::max(largest, plan.numbers<double>(id)); });
    const double weights = plan.numbers<double>("scores");
    const auto element = static_cast<double>(row_of(arithmetic_of(plan.config.dtype)).size);
    const bool are_stored = weights * element <= cost.memory;  // kernels may not store them
    const bool is_layer = plan.projects;
    if (is_layer && !(are_stored && weights > largest))
        require_memory(cost.memory, std::string(plan.widest), "a layer of this width");
    else
        require_memory(
            cost.memory, is_layer ? "inputs" : "query",
            concat("the weights (", plan.batch, ", ", plan.size_of<std::uint64_t>(Axis::heads),
                   ", ", plan.q_len, ", ", plan.kv_len, ")"));
}

}  // namespace attn
