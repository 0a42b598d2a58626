#include "core/check/exact.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/layer/layer.hpp"

namespace attn {

Problem exact_question(const Plan& plan, const Operands& operands, ThreadPool& pool) {
    const bool draws = plan.parameters.source == Parameters::Source::drawn;
    const bool drops = plan.dropout.p != 0;
    if (!draws && !drops) return make_problem(plan, operands, {{}, operands.weights});
    PlanOptions options;
    options.emit = std::vector<std::string>{drops ? "dropout_mask" : "queries"};
    if (drops) options.kernel = "reference";
    Settings settings = plan.config;
    settings.head.clear();  // the problem has all heads
    const Plan drawing = make_plan(std::move(settings), plan.operands, options);
    Operands used = operands;
    return make_problem(plan, operands, compute(drawing, std::move(used), pool));
}

}  // namespace attn
