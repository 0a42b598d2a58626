// The estimated cost of a question: its arithmetic against the sizes of its products. Sizes:
// dry_run_test.cpp.
#include "tests/support/drawn_layer.hpp"
#include "tests/support/planned.hpp"

namespace cost_test {

using namespace attn;

TEST_CASE("cost: the arithmetic of drawn layers and operators is that of their products") {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        const test::DrawnLayer layer = test::drawn_layer(seed);
        const Plan plan = test::plan_of(layer.settings, layer.operands);
        if (plan.config.mode == Mode::linear) continue;
        CAPTURE(layer.words);
        // Scores and weights of the rows that are computed; all rows are projected.
        std::size_t products = plan.heads * plan.rows * plan.kv_len * (plan.d_k + plan.d_v);
        const std::size_t new_keys = plan.kv_len - plan.past_len;
        if (plan.projects)
            products += plan.q_len * plan.d_in * plan.heads * plan.d_k +
                        new_keys * plan.d_context * plan.kv_heads * (plan.d_k + plan.d_v);
        if (plan.has(ArrayId("W_out").row()))
            products += plan.rows * plan.heads * plan.d_v * plan.d_out;
        CHECK(measure(plan).flops == 2 * static_cast<double>(plan.batch * products));
    }
}

}  // namespace cost_test
