#include "core/plan/cost.hpp"

#include "core/plan/product.hpp"

namespace attn {
namespace {

double flops_of(const Plan& plan) {
    const auto numbers = [&](ArrayId array) { return plan.numbers<double>(array); };
    const auto times = [&](std::size_t rows, double parameters) {
        return product({plan.batch, rows}) * parameters;
    };
    // All queries are projected before the row of `token` is selected.
    const double projections =
        times(plan.q_len, numbers("W_query")) +
        times(plan.kv_len - plan.past_len, numbers("W_key") + numbers("W_value")) +
        times(plan.rows, numbers("W_out"));
    return 2 * (projections + numbers("scores") * product({plan.d_k + plan.d_v}));
}

}  // namespace

Cost cost_of(const Plan& plan, const MemoryNeed& need, const PlanOptions& options) {
    std::uint64_t numbers = 0;
    plan.emit.for_each([&](ArrayId array) { numbers += plan.numbers<std::uint64_t>(array); });
    return {flops_of(plan), need.total(), memory_of_answer(plan, options), numbers};
}

}  // namespace attn
